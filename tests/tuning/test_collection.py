"""Collecting: what is measured, in which context, what is skipped, shared, and kept when it ends early."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tuning.fake_measurer import FakeMeasurer, latency_of, measurement_of
from tilewright import te
from tilewright.cost_model.analytical import score_schedule
from tilewright.errors import CodegenError, RecordFormatError, UsageError
from tilewright.features import Hardware
from tilewright.measure import OK, RUN_ERROR, RUN_TIMEOUT, Context, Measurement
from tilewright.records.dataset import DatasetFolder, TaskPrograms, read_folder
from tilewright.schedule import Trace
from tilewright.space import Candidate, Sketch
from tilewright.target import Target, read_machine
from tilewright.te import Task
from tilewright.tuning import task_collection
from tilewright.tuning.collection import Collected, CollectProgress, TaskSource, collect
from tilewright.tuning.task_collection import COMPARED_TURNS, COMPARED_WITHIN, NUM_COMPARED, SHARED, SLICE, TURNS
from tilewright.tuning.task_scheduler import WeightedTask
from tilewright.workloads import parse

HASWELL, NEHALEM = Target.parse("llvm -mcpu=haswell"), Target.parse("llvm -mcpu=nehalem")
SMALL, LARGE = parse("gmm:32x32x32"), parse("gmm:64x48x32")


def dense(name: str = "W", size: int = 64) -> Task:
    """A product with weights."""
    x = te.placeholder((8, size), name="x")
    w = te.placeholder((size, size), name=name, constant=True)
    k = te.reduce_axis(size, name="k")
    y = te.compute((8, size), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="y")
    return Task([x, w], [y], "dense")


def network(name: str, *tasks: Task, weight: int = 1, **changes: Any) -> TaskSource:
    return TaskSource(name, tuple(WeightedTask(task, weight) for task in tasks), **changes)


def workload(name: str, task: Task) -> TaskSource:
    return network(name, task, is_workload=True)


class Run:
    """One collection with a measurer that runs nothing."""

    def __init__(self, folder: Path, result: Callable[[Trace], Measurement] = measurement_of) -> None:
        self.folder = folder
        self.result = result
        self.progress: list[CollectProgress] = []

    def __call__(
        self, *sources: TaskSource, programs: int = 20, target: Target = HASWELL, threads: int = 2, **options: Any
    ) -> Collected:
        self.measurer = FakeMeasurer(target, threads, self.result)
        self.progress.clear()
        return collect(
            sources,
            DatasetFolder.create(self.folder),
            programs=programs,
            target=target,
            threads=threads,
            measurer=self.measurer,
            on_progress=self.progress.append,
            **options,
        )

    def programs(self, task: Task, device: str = "haswell-2t", context: str = "warm") -> TaskPrograms:
        folder = DatasetFolder(self.folder)
        (found,) = [found for found in folder.devices() if found.name == device]
        return folder.programs(found, folder.part(found, task, context))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "data")


def test_programs_are_measured_and_written(run: Run) -> None:
    collected = run(workload("small", SMALL), workload("large", LARGE))
    assert (collected.num_programs, collected.num_measured, collected.num_tasks) == (40, 40, 2)
    assert collected.is_complete
    programs = run.programs(SMALL)
    traces = [candidate.trace for candidate in programs.candidates()]
    assert len(set(traces)) == 20
    np.testing.assert_allclose(programs.latencies_s, [latency_of(trace) for trace in traces], rtol=1e-6)
    last = run.progress[-1]
    assert (last.num_done, last.num_total, last.time_left_s) == (40, 40, 0)


def test_the_same_command_measures_nothing_and_more_programs_add_to_those_that_are_there(run: Run) -> None:
    run(workload("small", SMALL))
    before = [candidate.trace for candidate in run.programs(SMALL).candidates()]
    assert run(workload("small", SMALL)).num_measured == 0
    assert run.measurer.batches == []
    assert run(workload("small", SMALL), programs=30).num_measured == 10
    after = [candidate.trace for candidate in run.programs(SMALL).candidates()]
    assert after[:20] == before
    assert len(set(after)) == 30
    assert run(workload("small", SMALL), programs=5).num_measured == 0


def test_a_copy_of_a_part_that_somebody_called_otherwise_is_passed_over(run: Run) -> None:
    run(workload("small", SMALL))
    (part,) = (run.folder / "devices" / "haswell-2t").glob("*.npz")
    part.with_name(part.name.replace(".warm.", ".warm.old.")).write_bytes(part.read_bytes())
    assert run(workload("small", SMALL)).num_measured == 0


def test_a_task_of_two_networks_is_measured_once_and_both_know_it(run: Run) -> None:
    run(network("a", dense(), SMALL, weight=3), network("b", dense("V")))
    assert len(run.measurer.traces) == 40
    networks = {network.name: network for network in DatasetFolder(run.folder).networks()}
    assert networks["a"].weights == {dense().hash: 3, SMALL.hash: 3}
    assert networks["b"].weights == {dense().hash: 1}
    assert len(read_folder(run.folder, networks=["b"])) == 20


def test_tasks_are_measured_as_the_first_network_runs_them(run: Run) -> None:
    many = network("many", dense(), weight=100)  # 1.6 MB of weights
    run(many, network("few", dense(), SMALL))
    assert {(batch.task.hash, str(batch.context)) for batch in run.measurer.batches} == {
        (dense().hash, "cold-1536K"),
        (SMALL.hash, "warm"),  # it has no weights
    }
    assert run(network("less", dense())).num_measured == 0  # what is there stays as it is
    asked = run(network("less", dense()), context=Context.parse("cold-8M"))
    assert asked.num_measured == 20
    assert {str(batch.context) for batch in run.measurer.batches} == {"cold-8M"}


def test_workloads_are_warm(run: Run) -> None:
    run(workload("w", dense()))
    assert {str(batch.context) for batch in run.measurer.batches} == {"warm"}


def test_failures_are_kept_as_failures_and_not_measured_again(tmp_path: Path) -> None:
    def every_third(trace: Trace) -> Measurement:
        failed = Measurement(RUN_ERROR, error="it died")
        return failed if latency_of(trace) < 1.33e-3 else measurement_of(trace)

    run = Run(tmp_path / "data", every_third)
    collected = run(workload("small", SMALL))
    assert collected.statuses[RUN_ERROR] >= 1
    programs = run.programs(SMALL)
    assert (~programs.is_valid).sum() == collected.statuses[RUN_ERROR]
    assert run(workload("small", SMALL)).num_measured == 0


def test_a_program_that_takes_too_long_has_a_second_chance(run: Run) -> None:
    times: dict[Trace, int] = {}
    late = Measurement(RUN_TIMEOUT, error="it took too long")

    def slow_at_first(trace: Trace) -> Measurement:
        if run.measurer.batches[-1].turns == COMPARED_TURNS:  # the comparison at the end
            return measurement_of(trace)
        times[trace] = times.get(trace, 0) + 1
        if latency_of(trace) < 1.2e-3:
            return late
        return late if latency_of(trace) < 1.4e-3 and times[trace] == 1 else measurement_of(trace)

    run.result = slow_at_first
    collected = run(workload("large", LARGE), programs=2 * SLICE)
    programs = run.programs(LARGE)
    never = [trace for trace in times if latency_of(trace) < 1.2e-3]
    assert len(programs) == collected.num_programs == 2 * SLICE
    assert (~programs.is_valid).sum() == len(never) >= 1
    assert max(times.values()) == 2
    assert sum(times.values()) == collected.num_measured > 2 * SLICE + len(never)


def interrupted_after(num: int, error: type[BaseException] = KeyboardInterrupt) -> Callable[[Trace], Measurement]:
    """After so many programs, however often each is measured."""
    measured: set[Trace] = set()

    def result(trace: Trace) -> Measurement:
        if len(measured) == num and trace not in measured:
            raise error
        measured.add(trace)
        return measurement_of(trace)

    return result


def test_an_interrupt_loses_nothing_and_the_rest_is_measured_later(tmp_path: Path) -> None:
    run = Run(tmp_path / "data", interrupted_after(27))
    with pytest.raises(KeyboardInterrupt):
        run(workload("small", SMALL), workload("large", LARGE))
    assert len(read_folder(run.folder)) == 27
    run.result = measurement_of
    assert run(workload("small", SMALL), workload("large", LARGE)).num_measured == 13


def test_a_killed_run_loses_at_most_a_slice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path / "data", interrupted_after(SLICE + 5, MemoryError))
    writes: list[int] = []
    write = TaskPrograms.write

    def noting(programs: TaskPrograms, *rest: Any) -> None:
        writes.append(len(programs))
        write(programs, *rest)

    monkeypatch.setattr(TaskPrograms, "write", noting)
    with pytest.raises(MemoryError):
        run(workload("large", LARGE), programs=3 * SLICE)
    assert writes == [SLICE, SLICE + 5]  # the second is what an end with notice adds


def test_a_budget_ends_it_and_says_so(run: Run) -> None:
    collected = run(workload("small", SMALL), workload("large", LARGE), budget_s=1e-6)
    assert not collected.is_complete
    assert collected.num_measured == 0
    assert run(workload("small", SMALL), workload("large", LARGE)).is_complete


def test_other_devices_measure_the_same_programs_where_they_are_legal(run: Run) -> None:
    run(workload("large", LARGE), programs=40)
    ours = {candidate.trace for candidate in run.programs(LARGE).candidates()}
    run(workload("large", LARGE), programs=40, target=NEHALEM, threads=1)
    theirs = run.programs(LARGE, "nehalem-1t")
    shared = theirs.origin == theirs.origins.index(SHARED)
    assert len(theirs) == 40
    assert 5 <= shared.sum() < 40
    assert {theirs.candidate(n).trace for n in np.flatnonzero(shared).tolist()} <= ours
    assert all(population.legal(NEHALEM).all() for population, _ in theirs.populations())
    names = {device.name: device.threads for device in DatasetFolder(run.folder).devices()}
    assert names == {"haswell-2t": 2, "nehalem-1t": 1}


def test_a_renamed_task_shares_programs_too(run: Run) -> None:
    run(network("a", dense("W")))
    run(network("b", dense("V")), target=Target.parse("llvm -mcpu=skylake"))
    context = str(network("a", dense()).context)
    theirs = run.programs(dense(), "skylake-2t", context)
    assert (theirs.origin == theirs.origins.index(SHARED)).sum() == 20
    assert all(batch.task.inputs[1].name == "W" for batch in run.measurer.batches)


def test_a_share_is_measured_again_after_all_others(run: Run) -> None:
    collected = run(workload("small", SMALL), workload("large", LARGE), again=0.5)
    num_again = sum(int(np.isfinite(run.programs(task).again_s).sum()) for task in (SMALL, LARGE))
    assert 10 <= num_again <= 30
    assert collected.num_measured == 40 + num_again
    assert collected.num_programs == 40
    first, second = run.measurer.traces[:40], run.measurer.traces[40:]
    assert len(set(first)) == 40
    assert set(second) <= set(first)
    assert run(workload("small", SMALL), workload("large", LARGE), again=0.5).num_measured == 0
    more = run(workload("small", SMALL), workload("large", LARGE), again=1.0)
    assert more.num_measured == 40 - num_again


def test_the_fastest_of_a_task_are_compared_in_turns_and_have_the_latencies_of_those(run: Run) -> None:
    def result(trace: Trace) -> Measurement:
        is_compared = run.measurer.batches[-1].turns == COMPARED_TURNS
        latency_s = 3 * latency_of(trace) if is_compared else latency_of(trace)
        return Measurement(OK, latency_s, (latency_s,) * (7 if is_compared else 3))

    run.result = result
    collected = run(workload("small", SMALL), programs=40)
    assert collected.num_measured == 40
    (compared,) = [batch for batch in run.measurer.batches if batch.turns == COMPARED_TURNS]
    programs = run.programs(SMALL)
    traces = [candidate.trace for candidate in programs.candidates()]
    plain = np.array([latency_of(trace) for trace in traces])
    expected = [traces[n] for n in np.argsort(plain)[:NUM_COMPARED] if plain[n] <= COMPARED_WITHIN * plain.min()]
    assert list(compared.traces) == expected
    is_compared = np.array([trace in compared.traces for trace in traces])
    np.testing.assert_allclose(programs.latencies_s, np.where(is_compared, 3 * plain, plain), rtol=1e-6)
    np.testing.assert_array_equal(programs.num_runs, np.where(is_compared, 7, 3))
    assert programs.num_compared == 40

    run(workload("small", SMALL), programs=40)
    assert run.measurer.batches == []
    run(workload("small", SMALL), programs=41)
    assert [batch.turns for batch in run.measurer.batches] == [TURNS, COMPARED_TURNS]


def test_the_faster_turn_of_a_program_counts(run: Run) -> None:
    def disturbed(trace: Trace) -> Measurement:
        latency_s = latency_of(trace)
        return Measurement(OK, 1.5 * latency_s, (2 * latency_s, latency_s))

    run.result = disturbed
    run(workload("large", LARGE), programs=2 * SLICE)
    programs = run.programs(LARGE)
    plain = np.array([latency_of(candidate.trace) for candidate in programs.candidates()])
    is_compared = np.isin(np.arange(len(plain)), np.argsort(plain)[:NUM_COMPARED]) & (
        plain <= COMPARED_WITHIN * plain.min()
    )
    np.testing.assert_allclose(programs.latencies_s, np.where(is_compared, 1.5 * plain, plain), rtol=1e-6)


def test_an_interrupted_comparison_is_made_again(run: Run) -> None:
    def interrupt(trace: Trace) -> Measurement:
        if run.measurer.batches[-1].turns == COMPARED_TURNS and trace == run.measurer.batches[-1].traces[1]:
            raise KeyboardInterrupt
        return measurement_of(trace)

    run.result = interrupt
    with pytest.raises(KeyboardInterrupt):
        run(workload("small", SMALL))
    assert run.programs(SMALL).num_compared == 0
    run.result = measurement_of
    assert run(workload("small", SMALL)).num_measured == 0
    assert run.programs(SMALL).num_compared == 20


def test_the_best_so_far_is_told_to_the_measurer(run: Run) -> None:
    run(workload("large", LARGE), programs=2 * SLICE)
    first, second, compared = run.measurer.batches
    assert compared.turns == COMPARED_TURNS
    assert first.best_latency_s is None
    assert second.best_latency_s == pytest.approx(min(map(latency_of, first.traces)))


def test_a_program_without_a_space_is_measured_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(sketches: list[Sketch], *_: object) -> list[tuple[Candidate, str]]:
        return [(Candidate(Sketch(SMALL, (), sketches[0].options, "plain"), ()), "untuned")]

    monkeypatch.setattr(task_collection, "mixture", plain)
    assert run(workload("small", SMALL)).num_measured == 1
    assert run(workload("small", SMALL)).num_measured == 0


def test_a_network_that_is_another_one_now_is_replaced_with_a_warning(run: Run) -> None:
    run(network("a", SMALL))
    with pytest.warns(UserWarning, match="the network a had other tasks, and is replaced"):
        run(network("a", LARGE))
    run(network("a", LARGE, sizes="batch=2"))
    assert {network.title for network in DatasetFolder(run.folder).networks()} == {"a", "a[batch=2]"}


def test_what_cannot_run_here_leaves_no_device(tmp_path: Path) -> None:
    folder = DatasetFolder.create(tmp_path / "data")
    with pytest.raises(CodegenError, match="cannot run code"):
        collect([workload("small", SMALL)], folder, programs=2, target=Target.parse("cortex-a72"), threads=1)
    assert folder.devices() == []


def test_a_broken_part_of_this_device_is_an_error_before_anything_is_measured(run: Run) -> None:
    run(workload("small", SMALL))
    folder = DatasetFolder(run.folder)
    path = folder.part(folder.devices()[0], SMALL, "warm").path
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RecordFormatError, match="restore the file, or remove it"):
        run(workload("small", SMALL), workload("large", LARGE))
    assert path.stat().st_size == 100


def test_a_broken_part_of_another_device_costs_what_would_be_shared(run: Run) -> None:
    run(workload("small", SMALL))
    folder = DatasetFolder(run.folder)
    folder.part(folder.devices()[0], SMALL, "warm").path.write_bytes(b"")
    with pytest.warns(UserWarning, match="left out"):
        assert run(workload("small", SMALL), target=NEHALEM).num_measured == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"programs": 0}, "programs is 0"),
        ({"programs": 10**9}, "programs is 1000000000; it must be at most 100000"),
        ({"again": 1.5}, "again is 1.5"),
        ({"again": float("nan")}, "again is nan"),
        ({"budget_s": -1.0}, "budget_s is -1"),
        ({"device": "a/b"}, "a name has up to 64 letters"),
        ({"device": ""}, "a name has up to 64 letters"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str, run: Run) -> None:
    with pytest.raises(UsageError, match=message):
        run(workload("small", SMALL), **options)


def test_a_device_keeps_the_name_that_it_has(run: Run) -> None:
    assert run(workload("small", SMALL), device="mine").device.name == "mine"
    assert run(workload("small", SMALL)).device.name == "mine"
    with pytest.raises(UsageError, match="knows it as mine"):
        run(workload("small", SMALL), device="yours")


def test_a_name_that_another_device_has_is_refused_and_leaves_none(run: Run) -> None:
    run(workload("small", SMALL), device="mine")
    with pytest.raises(UsageError, match="devices/mine is another one; give it another name"):
        run(workload("small", SMALL), device="mine", threads=1)
    assert [device.name for device in DatasetFolder(run.folder).devices()] == ["mine"]
    assert run(workload("small", SMALL), threads=1).device.name == "haswell-1t"


def test_a_recheck_mends_what_took_much_longer_than_expected(run: Run) -> None:
    hardware = Hardware.from_target(HASWELL, 2)

    def expected_s(trace: Trace) -> float:
        return float(np.exp(-score_schedule(trace.apply(LARGE), 1, hardware)[0])) * 1e-9

    slow: set[Trace] = set()

    def measured(trace: Trace) -> Measurement:
        latency_s = expected_s(trace) * (2 if trace in slow else 1)
        return Measurement(OK, latency_s, (latency_s,) * 2)

    run.result = measured
    run(workload("large", LARGE), programs=40)
    before = run.programs(LARGE)
    order = np.argsort(before.latencies_s)
    liked, disliked = order[[0, 3]], order[-1]
    assert before.latencies_s[disliked] > 3 * before.latencies_s.min()
    slow |= {before.candidate(number).trace for number in (*liked, disliked)}
    (run.folder / "devices").rename(run.folder / "gone")
    run(workload("large", LARGE), programs=40)
    assert run.programs(LARGE).latencies_s[liked] == pytest.approx(2 * before.latencies_s[liked])

    slow.clear()
    collected = run(workload("large", LARGE), programs=40, recheck=True)
    assert collected.num_measured == 0, "nothing is added"
    again, compared = run.measurer.batches
    assert (again.turns, compared.turns) == (TURNS, COMPARED_TURNS)
    assert set(again.traces) == {before.candidate(number).trace for number in liked}
    mended = run.programs(LARGE)
    np.testing.assert_allclose(np.delete(mended.latencies_s, disliked), np.delete(before.latencies_s, disliked), 1e-6)
    assert mended.num_compared == len(mended)

    run(workload("large", LARGE), programs=40, recheck=True)
    assert run.measurer.batches == [], "nothing is suspicious any more"


def test_a_recheck_on_a_slower_day_leaves_the_fastest_programs_where_they_were(run: Run) -> None:
    hardware, disturbed, day = Hardware.from_target(HASWELL, 2), set[Trace](), [1.0]

    def measured(trace: Trace) -> Measurement:
        expected_s = float(np.exp(-score_schedule(trace.apply(LARGE), 1, hardware)[0])) * 1e-9
        latency_s = expected_s * day[0] * (2 if trace in disturbed else 1)
        return Measurement(OK, latency_s, (latency_s,) * 2)

    run.result = measured
    run(workload("large", LARGE), programs=40)
    before = run.programs(LARGE)
    first = int(np.argmin(before.latencies_s))
    disturbed.add(before.candidate(first).trace)
    (run.folder / "devices").rename(run.folder / "gone")
    run(workload("large", LARGE), programs=40)

    disturbed.clear()
    day[0] = 1.04
    run(workload("large", LARGE), programs=40, recheck=True)
    assert run.measurer.batches[-1].turns == COMPARED_TURNS
    np.testing.assert_allclose(run.programs(LARGE).latencies_s, before.latencies_s, 1e-6)


def test_a_device_elsewhere_has_its_own_processor(run: Run) -> None:
    run(workload("small", SMALL), target=Target.parse("cortex-a72"), threads=1, processor="a board")
    run(workload("small", SMALL), threads=1)
    assert [found.processor for found in DatasetFolder(run.folder).devices()] == ["a board", read_machine().processor]


@pytest.mark.parametrize("is_written", [False, True])
def test_an_interrupt_while_programs_are_written_loses_none_and_doubles_none(
    is_written: bool, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = TaskPrograms.write
    calls: list[int] = []

    def interrupted(programs: TaskPrograms, *rest: Any) -> None:
        calls.append(len(programs))
        if len(calls) > 1 or is_written:
            write(programs, *rest)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(TaskPrograms, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(workload("small", SMALL))
    assert calls == [20, 20]
    assert len(run.programs(SMALL)) == len(set(run.programs(SMALL).candidates())) == 20
