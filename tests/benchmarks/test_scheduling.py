"""The benchmark of the task scheduler: the curve of a run, the verdict, and a run on a tiny network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import objective_curve, scheduling, scheduling_report
from benchmarks.objective_curve import PAUSE_S, Point, Weights
from benchmarks.scheduling_report import STRATEGIES, Run, Seed, Settings
from tests.cli.tiny_model import NUM_TASKS, write_tiny_model
from tilewright.records import Record, RecordLog, read_records
from tilewright.schedule import Trace

ROUND_SIZE = 2
TRIALS = ROUND_SIZE * NUM_TASKS + 4
SETTINGS = Settings(("zoo:a", "zoo:b"), "5f3a", 100, 2)


def trial(task: str, number: int, latency_s: float | None, time: float = 0.0) -> Record:
    trace = Trace.from_json([{"step": "split", "stage": "C", "arguments": ["i", [number]]}])
    return Record(task, "", "llvm", 2, trace, "OK" if latency_s else "RUN_ERROR", latency_s, time=time)


def seed_of(gradient_ms: tuple[float, ...], round_robin_ms: tuple[float, ...], end_ms: tuple[float, float]) -> Seed:
    """Values at 0, 10, 20, ... trials and seconds, as estimated and measured again; and the networks' latencies."""
    runs = {
        strategy: Run(tuple(Point(10 * n, 10.0 * n, ms, ms) for n, ms in enumerate(values)), {"a": end})
        for strategy, values, end in zip(STRATEGIES, (gradient_ms, round_robin_ms), end_ms, strict=True)
    }
    return Seed(0, 8, runs)


GOOD = seed_of((20.0, 10.0, 8.0, 7.0, 6.0), (20.0, 16.0, 12.0, 10.0, 8.0), (6.0, 8.0))


def test_measuring_a_program_again_is_no_trial() -> None:
    first, second = trial("a", 1, 3.0), trial("a", 2, 2.0)
    finalist = trial("a", 1, 2.5)
    assert objective_curve.trials_of([first, second, finalist]) == [first, second]


def test_a_curve_falls_with_each_improvement() -> None:
    trials = [
        trial("a", 1, 3e-3),
        trial("b", 1, None),  # counts with its first valid program until then
        trial("a", 2, 2e-3, time=100.0),
        trial("a", 3, 9e-3, time=101.0),
        trial("b", 2, 5e-3, time=103.0),
        trial("b", 3, 4e-3, time=104.0),
        trial("a", 4, None, time=106.0),
    ]
    again = {(record.task, record.trace): 2 * record.latency_s for record in trials if record.latency_s is not None}
    again["b", trials[5].trace] = 11e-3  # its trial was a lucky one
    points = objective_curve.curve(trials, 2, Weights({"a": 10, "b": 1, "c": 1}, {"c": 1e-3}), again)
    assert [point.trials for point in points] == [0, 1, 3, 4, 5]
    assert [point.estimated_ms for point in points] == pytest.approx([36, 26, 26, 25, 25])
    assert [point.again_ms for point in points] == pytest.approx([71, 51, 51, 51, 51])
    assert [point.elapsed_s for point in points] == pytest.approx([0, 0, 3, 4, 6])


def test_a_pause_takes_no_time() -> None:
    trials = [
        trial("a", 1, 3.0),
        trial("a", 2, 2.0, 10.0),
        trial("a", 3, 1.0, 11.0 + PAUSE_S),
        trial("a", 4, 0.5, 99.0),
    ]
    again = {(record.task, record.trace): 1.0 for record in trials}
    points = objective_curve.curve(trials, 1, Weights({"a": 1}, {}), again)
    assert [point.elapsed_s for point in points] == pytest.approx([0, 0, 0, 88 - PAUSE_S])


def test_the_figures_are_of_the_trials_after_the_first_rounds() -> None:
    assert GOOD.figures("gradient", "again_ms") == pytest.approx(
        {"start": 20, "25%": 10, "50%": 8, "75%": 7, "100%": 6, "area": 11.25, "area by time": 11.25, "networks": 6}
    )
    assert GOOD.ratios("again_ms")["area"] == pytest.approx(11.25 / 14.5)
    assert GOOD.reached_after == 0.5


def test_time_is_compared_as_long_as_both_ran() -> None:
    fast = Run((Point(0, 0.0, 20.0, 20.0), Point(40, 10.0, 10.0, 10.0)), {"a": 10.0})
    seed = Seed(0, 8, {"gradient": fast, "round_robin": GOOD.runs["round_robin"]})
    assert seed.span_s == 10.0
    assert seed.figures("round_robin", "again_ms")["area by time"] == pytest.approx(20)


@pytest.mark.parametrize(
    ("seed", "passes"),
    [
        (GOOD, True),
        (seed_of((20.0, 10.0, 8.0), (20.0, 16.0, 8.0), (8.1, 8.0)), True),  # 1 % is noise
        (seed_of((20.0, 10.0, 8.0), (20.0, 16.0, 8.0), (8.3, 8.0)), False),  # slower in the end
        (seed_of((20.0, 16.0, 6.0), (20.0, 16.0, 8.0), (6.0, 8.0)), False),  # no faster on the way
    ],
)
def test_the_gradient_must_be_lower_on_the_way_and_no_worse_in_the_end(seed: Seed, passes: bool) -> None:
    assert scheduling_report.passed([seed]) is passes
    assert scheduling_report.as_table([seed], SETTINGS).endswith("pass" if passes else "FAIL")


def test_the_median_seed_decides() -> None:
    bad = seed_of((20.0, 20.0, 20.0), (20.0, 10.0, 8.0), (20.0, 8.0))
    assert bad.reached_after is None
    assert scheduling_report.passed([GOOD, bad, GOOD])
    assert not scheduling_report.passed([bad, GOOD, bad])
    assert "after this part of the trials: 50%, never" in scheduling_report.as_table([GOOD, bad], SETTINGS)


def test_results_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "scheduling.json"
    assert scheduling_report.read(path) == (None, {})
    path.write_text(scheduling_report.as_json([GOOD], SETTINGS))
    assert scheduling_report.read(path) == (SETTINGS, {0: GOOD})


def test_the_curves_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "plot.png"
    scheduling_report.plot([GOOD, GOOD], SETTINGS, path)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(scheduling, "ROUND_SIZE", ROUND_SIZE)
    monkeypatch.setattr("tilewright.tuning.task_scheduler.scheduler.ROUND_SIZE", ROUND_SIZE)
    folder = ["--records", str(tmp_path / "records"), "--networks", write_tiny_model(tmp_path)]
    return [*folder, "--seeds", "1", "--threads", "1", "--rounds", "1", "--format", "json"]


def run(options: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    scheduling.main([*options, "--trials", str(TRIALS)])
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_both_strategies_start_alike_and_a_stopped_run_goes_on(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(options, capsys)
    (seed,) = first["seeds"]
    assert 0 < seed["first_trials"] <= ROUND_SIZE * NUM_TASKS  # the space of a task may be smaller than a round
    num_further = TRIALS - seed["first_trials"]
    assert [seed["runs"][strategy]["points"][-1]["trials"] for strategy in STRATEGIES] == [num_further] * 2
    starts = [seed["runs"][strategy]["points"][0] for strategy in STRATEGIES]
    assert starts[0] == starts[1]
    assert all(latency_ms > 0 for run in seed["runs"].values() for latency_ms in run["networks_ms"].values())

    with monkeypatch.context() as patch:
        patch.setattr(scheduling, "run", None)  # nothing is measured again
        assert run(options, capsys) == run([*options, "--report"], capsys) == first

    (tmp_path / "records" / scheduling.OUTPUT).unlink()
    (path,) = (tmp_path / "records").glob("*gradient*.jsonl")
    kept = list(read_records(path))[: TRIALS - 3]
    path.unlink()
    RecordLog(path).extend(kept)
    monkeypatch.setattr(scheduling, "_time_networks", lambda setup, seed, order: {s: {"tiny": 1.0} for s in order})
    (seed,) = run(options, capsys)["seeds"]
    assert seed["runs"]["gradient"]["points"][-1]["trials"] == num_further
    assert list(read_records(path))[: len(kept)] == kept
    assert len(objective_curve.trials_of(read_records(path))) == TRIALS


def test_trials_for_the_first_rounds_alone_are_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert scheduling.main([*options, "--trials", str(ROUND_SIZE * NUM_TASKS)]) == 2
    assert "nothing is left for a strategy" in capsys.readouterr().err


def test_what_is_not_there_cannot_be_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scheduling.main(["--report", "--records", str(tmp_path)]) == 2
    assert "run without --report" in capsys.readouterr().err
    assert scheduling.main(["--case", "no-such-case"]) == 2
    assert "no case matches" in capsys.readouterr().err
