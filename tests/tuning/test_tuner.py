"""Tuning as a whole: it finds valid programs, keeps records, resumes, and survives being stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.tuning.fake_measurer import FakeMeasurer
from tilewright import te
from tilewright.cost_model import RandomModel
from tilewright.errors import NoValidCandidateError, TilewrightError, UsageError
from tilewright.measure import Context, MeasureOptions
from tilewright.records import RecordLog, fastest, latest, read_records
from tilewright.schedule import Trace
from tilewright.search import STRATEGIES, EvolutionarySearch
from tilewright.space import Candidate, Population, plain_schedule
from tilewright.target import Target
from tilewright.te import Task
from tilewright.tuning.tuner import Progress, tune
from tilewright.tuning.untuned import default_trace
from tilewright.workloads import parse

TASK = parse("gmm:48x40x56")
NATIVE = Target.native()
NEVER_BUILDS = MeasureOptions(compiler="tests.failing_compiler:compile_nothing")


def test_the_result_compiles_to_a_kernel_that_computes_the_task() -> None:
    seen: list[Progress] = []
    result = tune(TASK, trials=24, threads=1, seed=1, on_progress=seen.append)
    assert len(result.records) == 24
    assert [p.num_trials for p in seen] == list(range(1, 25))
    assert result.best.latency_s is not None
    a, b = (np.random.default_rng(0).normal(size=t.shape).astype(np.float32) for t in TASK.inputs)
    np.testing.assert_allclose(result.compile()(a, b), a @ b, rtol=1e-4, atol=1e-4)


def test_the_result_prints_as_a_few_lines(tmp_path: Path) -> None:
    result = tune(TASK, trials=2, threads=1, records=tmp_path / "gmm.jsonl", measurer=FakeMeasurer(NATIVE, 1))
    best = replace(result.best, latency_s=1e-5)
    shown = replace(result, best=best, elapsed_s=1.25, path="gmm.jsonl")
    assert result.path == str(tmp_path / "gmm.jsonl")
    assert str(shown).splitlines() == [
        f"task: {TASK.name}",
        "best: 0.01 ms, 21.5 GFLOP/s on 1 threads",
        "trials: 2 in 1.2 s",
        "records: gmm.jsonl",
    ]
    assert str(replace(shown, path=None)).splitlines()[-1] == "trials: 2 in 1.2 s"
    assert repr(shown) == f"<TuneResult of {TASK.name}: 0.01 ms, 21.5 GFLOP/s after 2 trials>"


def test_any_expression_is_tuned_the_same_way() -> None:
    x = te.placeholder((30, 70), name="X")
    k = te.reduce_axis(70, name="k")
    top = te.compute((30,), lambda i: te.max(x[i, k], axis=k), name="T")
    out = te.compute((30, 70), lambda i, j: te.exp(x[i, j] - top[i]), name="out")
    result = tune(Task([x], [out]), trials=6, threads=2)
    a = np.random.default_rng(0).normal(size=(30, 70)).astype(np.float32)
    np.testing.assert_allclose(result.compile()(a), np.exp(a - a.max(axis=1, keepdims=True)), rtol=1e-5)


def test_a_second_run_goes_on_from_the_records(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    first = tune(TASK, trials=10, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    second = tune(TASK, trials=20, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    assert [r.trace for r in second.records[:10]] == [r.trace for r in first.records]
    assert len(latest(read_records(path))) == 20
    assert len(list(read_records(path))) == 30, (
        "nothing is lost, and only the 5 last finalists of a run are measured again"
    )
    third = tune(TASK, trials=20, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    assert len(latest(read_records(path))) == 20
    assert fastest(read_records(path)) is not None
    assert third.best.latency_s is not None


def test_a_record_that_does_not_apply_is_set_aside_and_tuning_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    first = tune(TASK, trials=3, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    illegal = Trace.from_json([{"step": "unroll", "stage": "nowhere", "arguments": ["i"]}])
    RecordLog(path).append(replace(first.best, trace=illegal, latency_s=1e-9))
    line = len(path.read_text().splitlines())
    with pytest.warns(UserWarning, match=f"records.jsonl:{line}: the record is set aside.*there is no stage 'nowhere'"):
        result = tune(TASK, trials=4, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    assert len(result.records) == 4
    assert result.best.trace != illegal


def test_records_of_the_same_task_under_other_names_count(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    tune(TASK, trials=10, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    left, right = te.placeholder((48, 56), name="left"), te.placeholder((56, 40), name="right")
    inner = te.reduce_axis(56, name="inner")
    product = te.compute((48, 40), lambda y, x: te.sum(left[y, inner] * right[inner, x], axis=inner), name="product")
    task = Task([left, right], product)
    assert task.hash == TASK.hash
    result = tune(task, trials=10, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    assert len(result.records) == 10, "no trial is made again"
    a, b = (np.random.default_rng(0).normal(size=t.shape).astype(np.float32) for t in task.inputs)
    np.testing.assert_allclose(result.compile()(a, b), a @ b, rtol=1e-4, atol=1e-4)
    again = tune(TASK, trials=10, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    assert len(again.records) == 10, "a program under two names is one"


def test_records_of_the_version_before_count(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    tune(TASK, trials=4, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    native = str(Target.native())
    path.write_text(path.read_text().replace(native, native.partition(" -l1d=")[0]))
    assert {record.target for record in read_records(path)} == {native.partition(" -l1d=")[0]}
    assert len(tune(TASK, trials=4, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1)).records) == 4, (
        "no trial is made again"
    )
    assert len({record.trace for record in read_records(path)}) == 4


def test_records_of_other_threads_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    tune(TASK, trials=4, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    assert len(tune(TASK, trials=4, records=path, threads=2, measurer=FakeMeasurer(NATIVE, 2)).records) == 4
    assert len(latest(read_records(path))) == 8


def test_records_of_another_context_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    a, w = te.placeholder((8, 16), name="A"), te.placeholder((16, 32), name="W", constant=True)
    k = te.reduce_axis(16, name="k")
    task = Task([a, w], te.compute((8, 32), lambda i, j: te.sum(a[i, k] * w[k, j], axis=k), name="C"))
    warm = tune(task, trials=3, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    cold = tune(task, trials=3, records=path, threads=1, context="cold-64K", measurer=FakeMeasurer(NATIVE, 1))
    assert {record.context for record in warm.records} == {"warm"}
    assert {record.context for record in cold.records} == {cold.best.context} == {"cold-64K"}
    assert len(latest(read_records(path))) == 6
    again = tune(
        task, trials=3, records=path, threads=1, context=Context.parse("cold-64K"), measurer=FakeMeasurer(NATIVE, 1)
    )
    assert [record.trace for record in again.records] == [record.trace for record in cold.records], "none is new"


def test_a_task_without_constants_is_warm_in_any_context(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    tune(TASK, trials=2, records=path, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    result = tune(TASK, trials=2, records=path, threads=1, context="cold-8M", measurer=FakeMeasurer(NATIVE, 1))
    assert {record.context for record in read_records(path)} == {"warm"}
    assert len(latest(read_records(path))) == len(result.records) == 2


@pytest.mark.parametrize("search", ["random", "evolutionary"])
def test_strategies_and_models_are_chosen_by_name_or_instance(search: str) -> None:
    result = tune(
        TASK, trials=20, threads=1, search=search, cost_model=RandomModel(seed=0), measurer=FakeMeasurer(NATIVE, 1)
    )
    assert result.best.status == "OK"


def test_a_budget_ends_the_run_early() -> None:
    start = time.monotonic()
    result = tune(TASK, trials=100_000, threads=1, budget_s=0.3, measurer=FakeMeasurer(NATIVE, 1))
    assert len(result.records) < 100_000
    assert time.monotonic() - start < 60


def test_the_shortest_budget_gives_the_untuned_program(tmp_path: Path) -> None:
    for _ in range(2):
        result = tune(TASK, threads=1, budget_s=1e-9, records=tmp_path / "r", measurer=FakeMeasurer(NATIVE, 1))
        assert [record.status for record in result.records] == ["OK"]


def test_nothing_valid_says_how_often_and_why() -> None:
    with pytest.raises(NoValidCandidateError) as error:
        tune(TASK, trials=3, threads=1, measure=NEVER_BUILDS)
    assert "none of 3 candidates is valid (BUILD_ERROR 3)" in str(error.value)
    assert "this compiler builds nothing" in str(error.value)


@pytest.mark.parametrize("search", STRATEGIES)
def test_a_space_without_legal_candidates_leaves_the_plain_program(
    monkeypatch: pytest.MonkeyPatch, search: str
) -> None:
    monkeypatch.setattr(Population, "legal", lambda population, target: np.zeros(len(population), np.bool_))
    result = tune(TASK, trials=4, threads=1, search=search, measurer=FakeMeasurer(NATIVE, 1))
    assert [record.status for record in result.records] == ["OK"]
    assert result.best.trace == plain_schedule(TASK, result.target, 1).trace


def start_tuner(path: Path, trials: int, max_file_bytes: int | None = None) -> subprocess.Popen[str]:
    # A shell starts background jobs with interrupts ignored, and those who run tests may be one.
    command = [
        "env",
        "--default-signal=INT",
        sys.executable,
        "-m",
        "tilewright",
        "tune",
        "gmm:96x96x96",
        "--threads",
        "1",
    ]
    command += ["--trials", str(trials), "--records", str(path)]
    if max_file_bytes is not None:  # a disk that is full for this process
        command = ["prlimit", f"--fsize={max_file_bytes}", *command]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_records(path: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(RecordLog(path).read()) >= count:
            return
        time.sleep(0.02)
    pytest.fail(f"no {count} records within a minute")


def test_killed_with_9_and_resumed_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    tuner = start_tuner(path, 400)
    wait_for_records(path, 8)
    tuner.kill()
    tuner.communicate()
    before = list(read_records(path))
    assert len(before) >= 8
    resumed = start_tuner(path, len(before) + 4)
    output, errors = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, errors
    after = list(read_records(path))
    assert after[: len(before)] == before
    assert len(latest(after)) == len(before) + 4
    assert len(after) == len(before) + 4 + 5, "and the last finalists, measured again"
    assert "best:" in output
    assert "s = tw.Schedule(task)" in output


def test_interrupted_it_saves_says_so_and_leaves_no_process(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    tuner = start_tuner(path, 5000)
    wait_for_records(path, 8)
    tuner.send_signal(signal.SIGINT)
    _, errors = tuner.communicate(timeout=60)
    assert tuner.returncode == 130
    assert "every finished trial is in" in errors
    assert errors.splitlines()[-1] == f"the best so far: tilewright records best {path}"
    assert len(list(read_records(path))) >= 8
    children = subprocess.run(["pgrep", "-P", str(tuner.pid)], capture_output=True, text=True, check=False)
    assert children.stdout == ""


def test_two_tuners_share_a_record_file(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    both = [start_tuner(path, 12) for _ in range(2)]
    for tuner in both:
        _, errors = tuner.communicate(timeout=180)
        assert tuner.returncode == 0, errors
    assert len(list(read_records(path))) >= 12


def test_a_full_disk_ends_the_run_plainly_and_keeps_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    one = tune(TASK, trials=1, threads=1).records[0]
    log = RecordLog(path)
    while not path.exists() or path.stat().st_size < 385_000:
        log.extend([one] * 4)
    before = len(list(read_records(path)))
    tuner = start_tuner(path, 400, max_file_bytes=400_000)
    _, errors = tuner.communicate(timeout=120)
    assert tuner.returncode == 1
    assert "Traceback" not in errors
    assert f"the record file {path} cannot be used" in errors
    assert len(list(read_records(path))) > before


def test_a_device_is_no_record_file() -> None:
    with pytest.raises(TilewrightError, match="is no regular file"):
        tune(TASK, trials=1, records="/dev/full")


def test_the_program_of_the_untuned_task_is_the_first_trial() -> None:
    result = tune(TASK, trials=4, threads=1, measurer=FakeMeasurer(NATIVE, 1))
    assert result.records[0].trace == default_trace(TASK, result.target, threads=1)


def test_a_first_round_of_one_trial_does_not_search() -> None:
    """Networks with few trials give each task one at first, and a search costs more than measuring what it finds."""
    asked: list[int] = []

    class Counting(EvolutionarySearch):
        def ask(self, n: int) -> list[Candidate]:
            asked.append(n)
            return super().ask(n)

    for trials, expected in ((1, []), (4, [3])):
        asked.clear()
        result = tune(TASK, trials=trials, threads=1, search=Counting, measurer=FakeMeasurer(NATIVE, 1))
        assert len(result.records) == trials
        assert asked == expected


def test_exact_tuning_neither_tries_nor_takes_up_algorithms_that_round_more(tmp_path: Path) -> None:
    task, target = parse("c2d:1x12x12x16,16,3x3,s1,p1"), Target.native()
    path = tmp_path / "conv.jsonl"
    fake = FakeMeasurer(target, 2)
    free = tune(task, trials=48, threads=2, records=path, cost_model=RandomModel(), measurer=fake)
    assert {record.trace.is_exact for record in free.records} == {True, False}
    exact = tune(task, trials=48, threads=2, records=path, exact=True, cost_model=RandomModel(), measurer=fake)
    assert all(record.trace.is_exact for record in exact.records)
    assert exact.best.trace.is_exact
    num_taken_up = sum(record.trace.is_exact for record in free.records)
    assert [record.trace for record in exact.records[:num_taken_up]] == [
        record.trace for record in free.records if record.trace.is_exact
    ]


def test_a_program_of_winograd_is_measured_and_checked_as_it_rounds() -> None:
    task = parse("c2d:1x8x8x16,16,3x3,s1,p1")
    result = tune(task, trials=12, threads=1, search="random", seed=2)
    found = [record for record in result.records if not record.trace.is_exact]
    assert found
    assert {record.status for record in found} == {"OK"}


def test_a_task_whose_results_rounding_moves_far_has_valid_programs() -> None:
    """The logarithm of a sum that is nearly zero is off by more than the sum is, however the sum is computed."""
    a, b = te.placeholder((200, 64), name="A"), te.placeholder((64, 200), name="B")
    k = te.reduce_axis(64, name="k")
    product = te.compute((200, 200), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="product")
    out = te.compute((200, 200), lambda i, j: te.log(te.abs(product[i, j])), name="out")
    result = tune(Task([a, b], [out]), trials=3, threads=1)
    assert [record.status for record in result.records] == ["OK"] * 3


def test_a_measurer_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="measurer is 5; it must be a Measurer"):
        tune(TASK, trials=1, threads=1, measurer=5)  # type: ignore[arg-type]
