"""Finals inside the network: which program of each task is taken, and what becomes of its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.cli.tiny_model import NUM_TASKS, write_tiny_model
from tilewright.deploy.compiled import CompiledModel, KernelCall, NativeStep
from tilewright.deploy.finals import CLOSE, NUM_FINALISTS, settle
from tilewright.errors import CodegenError
from tilewright.measure import OK
from tilewright.records import Record, RecordedPrograms, by_speed, names_of, read_records
from tilewright.schedule import Trace
from tilewright.space import SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task
from tilewright.workloads import parse

TARGET = Target.parse("llvm -mcpu=haswell")
FIRST, SECOND = parse("gmm:32x32x32"), parse("gmm:48x32x32")


def traces_of(task: Task, num: int) -> list[Trace]:
    sketch = derive(task, SpaceOptions(TARGET, 1))[0]
    return [candidate.trace for candidate in sketch.sample(np.random.default_rng(0), 64).unique()[:num]]


def records_of(task: Task, latencies_s: Sequence[float], context: str = "warm") -> list[Record]:
    return [
        Record(
            task=task.hash,
            workload="",
            target=str(TARGET),
            threads=1,
            trace=trace,
            status=OK,
            latency_s=latency_s,
            runs_s=(latency_s,),
            names=names_of(task),
            context=context,
        )
        for trace, latency_s in zip(traces_of(task, len(latencies_s)), latencies_s, strict=True)
    ]


def key(record: Record) -> tuple[str, Trace]:
    return record.task, record.trace


class Network:
    """Calls the first task's kernel twice and the second's once; each program takes what the test says."""

    def __init__(self, times_s: Mapping[tuple[str, Trace], float]) -> None:
        self.times_s = times_s
        self.compiled: list[Mapping[str, Trace]] = []

    def compile_with(self, programs: Mapping[str, Trace]) -> CompiledModel:
        self.compiled.append(programs)
        calls = tuple(KernelCall(kernel, (), 0) for kernel in (0, 1, 0))
        step = NativeStep((), (), calls, arena_bytes=0)
        return CompiledModel(
            name=str(len(self.compiled) - 1),
            target=str(TARGET),
            features=(),
            threads=1,
            inputs=(),
            outputs=(),
            kernels=(),
            steps=(step,),
            weights=(),
            constants=(),
        )

    def profile_of(self, model: CompiledModel) -> Callable[[], list[float]]:
        programs = self.compiled[int(model.name)]
        first, second = (self.times_s[task.hash, programs[task.hash]] for task in (FIRST, SECOND))
        return lambda: [first, second, first]


def settled(
    first: list[Record], second: list[Record], times_s: Mapping[tuple[str, Trace], float]
) -> dict[str, list[Record]]:
    programs = {FIRST.hash: RecordedPrograms(FIRST, first), SECOND.hash: RecordedPrograms(SECOND, second)}
    network = Network(times_s)
    return settle(programs, [FIRST.hash, SECOND.hash], network.compile_with, network.profile_of, budget_s=0.0)


def test_each_task_takes_the_program_that_is_the_fastest_in_the_network() -> None:
    first, second = records_of(FIRST, [1.0, 1.01, 1.02]), records_of(SECOND, [2.0, 2.01])
    inside = [3.0, 2.5, 2.0, 4.0, 4.5]
    times_s = {key(record): time_s for record, time_s in zip([*first, *second], inside, strict=True)}
    found = settled(first, second, times_s)
    assert [record.trace for record in found[FIRST.hash]] == [first[2].trace, first[0].trace, first[1].trace]
    assert [record.rank_s for record in found[FIRST.hash]] == pytest.approx([1.0, 1.5, 1.25])
    assert [record.trace for record in found[SECOND.hash]] == [second[0].trace, second[1].trace]
    assert [record.latency_s for record in found[FIRST.hash]] == [1.02, 1.0, 1.01]


def test_a_gain_within_the_noise_changes_nothing() -> None:
    first, second = records_of(FIRST, [1.0, 1.01]), records_of(SECOND, [2.0, 2.01])
    times_s = {key(record): 3.0 for record in (*first, *second)} | {key(first[1]): 2.98}
    found = settled(first, second, times_s)
    assert [finalists[0].trace for finalists in found.values()] == [first[0].trace, second[0].trace]
    assert all(finalists[0].rank_s == finalists[1].rank_s for finalists in found.values())


def test_programs_far_from_the_best_and_the_many_are_left_out() -> None:
    far = [1.0, 1.0 + CLOSE]
    many = [2.0 + 0.001 * n for n in range(NUM_FINALISTS + 2)]
    first, second = records_of(FIRST, far), records_of(SECOND, many)
    times_s = {key(record): 3.0 for record in (*first, *second)}
    found = settled(first, second, times_s)
    assert FIRST.hash not in found
    assert len(found[SECOND.hash]) == NUM_FINALISTS


def test_programs_of_another_context_are_no_finalists() -> None:
    programs = RecordedPrograms(FIRST, [*records_of(FIRST, [1.0], "warm"), *records_of(FIRST, [9.0, 1.0], "cold-8M")])
    assert len(programs.close(4, 1.1)) == 1


def test_where_no_task_has_a_choice_nothing_is_compiled() -> None:
    first, second = records_of(FIRST, [1.0]), records_of(SECOND, [2.0])
    programs = {FIRST.hash: RecordedPrograms(FIRST, first), SECOND.hash: RecordedPrograms(SECOND, second)}
    network = Network({})
    assert settle(programs, [FIRST.hash, SECOND.hash], network.compile_with, network.profile_of, budget_s=0.0) == {}
    assert network.compiled == []


def test_a_variant_that_does_not_compile_ends_the_comparison_there() -> None:
    first, second = records_of(FIRST, [1.0, 1.01, 1.02]), records_of(SECOND, [2.0])
    network = Network({key(record): 3.0 - n for n, record in enumerate(first)} | {key(second[0]): 1.0})

    def compile_with(programs: Mapping[str, Trace]) -> CompiledModel:
        if programs[FIRST.hash] == first[2].trace:
            raise CodegenError("no")
        return network.compile_with(programs)

    programs = {FIRST.hash: RecordedPrograms(FIRST, first), SECOND.hash: RecordedPrograms(SECOND, second)}
    found = settle(programs, [FIRST.hash, SECOND.hash], compile_with, network.profile_of, budget_s=0.0)
    assert [record.trace for record in found[FIRST.hash]] == [first[1].trace, first[0].trace]


def test_a_tuned_network_takes_what_the_finals_chose_and_so_does_one_compiled_from_its_records(tmp_path: Path) -> None:
    model, records = write_tiny_model(tmp_path), tmp_path / "tiny.jsonl"
    tuned = tw.tune_network(model, trials=12 * NUM_TASKS, records=records, threads=1)
    assert tuned.tuned.num_tuned == NUM_TASKS
    again = tw.network.compile_network(model, records, threads=1)
    codes = [[kernel.object_code for kernel in found.kernels] for found in (tuned.tuned.model, again)]
    assert codes[0] == codes[1]
    every = list(read_records(records))
    for task in {record.task for record in every if record.compared_s is not None}:
        ranks_s = [record.rank_s for record in every if record.task == task and record.compared_s is not None]
        assert by_speed([record for record in every if record.task == task])[0].rank_s == min(ranks_s)
