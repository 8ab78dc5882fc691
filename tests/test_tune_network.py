"""`tune_network`: one network or several, tuned, compiled, and compared with what they were before."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tilewright as tw
from tests.cli.tiny_model import INPUT_SHAPE, NUM_TASKS, write_tiny_model
from tests.tuning.fake_measurer import FakeMeasurer
from tilewright.deploy.choice import Choice
from tilewright.errors import TilewrightError, UsageError
from tilewright.measure import Measurement
from tilewright.network import read_network, tune_network, tune_network_for
from tilewright.network.several_devices import _Start
from tilewright.records import read_records
from tilewright.runtime import Timing
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.tuning.task_scheduler import NetworkProgress

X = np.random.default_rng(0).standard_normal(INPUT_SHAPE, np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def tuned(model: str) -> tw.TunedNetwork:
    return tw.tune_network(model, trials=2 * NUM_TASKS, threads=1)


def test_the_result_runs_and_can_be_saved(tuned: tw.TunedNetwork, model: str, tmp_path: Path) -> None:
    (expected,) = tw.InferenceSession(model, threads=1).run(None, {"input": X})
    tuned.save(tmp_path / "tiny.tw")
    for session in (tuned.session(), tw.InferenceSession(str(tmp_path / "tiny.tw"))):
        np.testing.assert_allclose(session.run(None, {"input": X})[0], expected, rtol=1e-4, atol=1e-5)


def test_without_a_file_the_programs_found_are_those_of_the_network(tuned: tw.TunedNetwork) -> None:
    assert tuned.tuned.num_tuned == tuned.tuned.num_tasks == NUM_TASKS
    assert tuned.untuned.num_tuned == 0
    assert tuned.estimate_s > 0


def test_the_faster_one_is_the_result(tuned: tw.TunedNetwork) -> None:
    fast, slow = Timing(1, (1.0, 1.0)), Timing(1, (2.0, 2.0))
    parts = (tuned.name, tuned.untuned, tuned.tuned)
    assert tw.TunedNetwork(*parts, Choice(untuned=fast, tuned=slow), tuned.result).model is tuned.untuned.model
    won = tw.TunedNetwork(*parts, Choice(untuned=slow, tuned=fast), tuned.result)
    assert won.model is tuned.tuned.model
    assert won.latency_s == 1.0
    assert "1000 ms, 2000 ms with zero trials" in repr(won)


def test_progress_is_told_and_records_are_resumed(model: str, tmp_path: Path) -> None:
    records = tmp_path / "tiny.jsonl"
    trials: list[NetworkProgress] = []
    untuned: dict[str, float] = {}
    kernels: list[tuple[int, int]] = []
    tune_network(
        model,
        trials=NUM_TASKS,
        records=records,
        threads=1,
        on_progress=trials.append,
        on_compile=lambda done, total: kernels.append((done, total)),
        on_untuned=untuned.__setitem__,
    )
    assert len(trials) == NUM_TASKS
    assert untuned.keys() == {"tiny"}
    assert untuned["tiny"] > 0
    assert kernels[-1][0] == kernels[-1][1]
    num_records = len(list(read_records(records)))
    again = tune_network(model, trials=NUM_TASKS, records=records, threads=1)
    assert again.result.num_trials == NUM_TASKS
    assert len(list(read_records(records))) == num_records


def test_several_networks_are_tuned_together_and_told_apart(model: str) -> None:
    content = read_network(model).SerializeToString()
    first, second = tune_network([model, content], trials=NUM_TASKS, threads=1)
    assert (first.name, second.name) == ("tiny", "network")
    assert first.result is second.result
    assert len(first.result.tasks) == NUM_TASKS
    names = [found.name for found in tune_network((content, content), trials=1, threads=1)]
    assert names == ["network", "network-2"]


def test_tasks_are_measured_as_the_network_runs_them_or_as_is_asked(model: str, tmp_path: Path) -> None:
    contexts = []
    for context in (None, "warm"):
        path = tmp_path / f"{context}.jsonl"
        tune_network(model, trials=NUM_TASKS, records=path, threads=1, context=context)
        contexts.append({record.context for record in read_records(path)})
    assert contexts[1] == {"warm"}
    assert any(context.startswith("cold-") for context in contexts[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials is 0"),
        ({"budget_s": -1.0}, "budget_s is -1.0"),
        ({"threads": 0}, "threads is 0"),
        ({"objective": "f9"}, "f9"),
        ({"search": "nowhere"}, "nowhere"),
        ({"context": "lukewarm"}, "lukewarm"),
    ],
)
def test_wrong_options_are_named(model: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tune_network(model, **options)


def test_no_network_is_an_error() -> None:
    with pytest.raises(UsageError, match="at least one network"):
        tune_network([])


def test_a_measurer_measures_elsewhere_and_a_foreign_network_is_the_tuned_one(model: str) -> None:
    board = FakeMeasurer(Target.parse("aarch64"), 1)
    found = tw.tune_network(model, trials=2 * NUM_TASKS, target=board.target, threads=1, measurer=board)
    assert found.choice is None
    assert found.model is found.tuned.model
    assert found.latency_s == found.estimate_s > 0
    assert "with zero trials" not in repr(found)


def test_one_run_tunes_for_several_kinds_of_devices(model: str, tmp_path: Path) -> None:
    measurers = {"here": FakeMeasurer(Target.native(), 1), "board": FakeMeasurer(Target.parse("aarch64"), 1)}
    told: list[str] = []
    records = tmp_path / "both.jsonl"
    found = tune_network_for(
        model, measurers, trials=2 * NUM_TASKS, records=records, on_progress=lambda device, _: told.append(device)
    )
    assert {name: tuned.model.target for name, tuned in found.items()} == {
        name: str(measurer.target) for name, measurer in measurers.items()
    }
    assert {name: told.count(name) for name in measurers} == dict.fromkeys(measurers, 2 * NUM_TASKS)
    targets = {record.target for record in read_records(records)}
    assert targets == {str(measurer.target) for measurer in measurers.values()}


def test_devices_begin_when_all_have_their_first_programs() -> None:
    seen: list[str] = []
    start = _Start(2)

    def begin() -> None:
        start.wait()
        seen.append("begins")

    first = threading.Thread(target=begin)
    first.start()
    seen.append("the other is ready")
    start.wait()
    first.join()
    assert seen == ["the other is ready", "begins"]


def test_nobody_waits_for_a_device_that_never_begins() -> None:
    start = _Start(2)
    waiting = threading.Thread(target=start.wait)
    waiting.start()
    start.abort()
    waiting.join()
    start.wait()


def test_what_goes_wrong_with_one_kind_ends_the_run(model: str) -> None:
    def broken(trace: Trace) -> Measurement:
        raise TilewrightError("the board is gone")

    measurers = {"here": FakeMeasurer(Target.native(), 1), "board": FakeMeasurer(Target.parse("aarch64"), 1, broken)}
    with pytest.raises(TilewrightError, match="the board is gone"):
        tune_network_for(model, measurers, trials=2 * NUM_TASKS)


UNTRIED = {
    "sizes that random numbers do not give": (
        """<ir_version: 8, opset_import: ["" : 17]>
        net (float[3, 4] x, int64[1] size) => (float[n] y) <float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
            product = MatMul(x, w)
            y = Reshape(product, size)
        }""",
        {"x": np.ones((3, 4), np.float32), "size": np.array([6])},
        np.array([16, 20] * 3, np.float32),
    ),
    "strings": (
        """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 2]>
        net (string[1, 4] words) => (float[1, 2] y) <float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
            numbers = ai.onnx.ml.LabelEncoder<keys_strings = ["a", "b"], values_floats = [1.0, 2.0]>(words)
            y = MatMul(numbers, w)
        }""",
        {"words": np.array([["a", "a", "b", "a"]], object)},
        np.array([[21, 26]], np.float32),
    ),
}


@pytest.mark.filterwarnings("ignore:.*have no kernel and run, slowly")
@pytest.mark.parametrize("case", UNTRIED)
def test_the_kernels_of_a_network_that_random_inputs_do_not_run_are_tuned(case: str) -> None:
    text, inputs, expected = UNTRIED[case]
    with pytest.warns(UserWarning, match="does not run on random inputs, so its kernels are tuned"):
        found = tw.tune_network(onnx.parser.parse_model(text), trials=2, threads=1)
    assert found.result.num_trials == 2
    assert found.choice is None
    assert found.model is found.tuned.model
    np.testing.assert_array_equal(found.session().run(None, inputs)[0], expected)
