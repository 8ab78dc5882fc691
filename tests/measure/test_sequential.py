"""The measurer of one machine, with a builder and a runner whose results the tests decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tilewright.codegen import Entry, KernelBinary
from tilewright.measure import WARM, Batch, Built, Context, Measurement, SequentialMeasurer, measure_all, sequential
from tilewright.measure.sequential import _Shelf
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task
from tilewright.testing.measurer_checks import doubling, split_program


class FakeBuilder:
    """Compiles all traces but those that it was told to refuse; the name of a kernel is the index of its trace."""

    def __init__(self) -> None:
        self.refused: set[Trace] = set()
        self.log: list[str] = []

    def build(self, task: Task, traces: Sequence[Trace]) -> Iterator[tuple[int, Built | Measurement]]:
        for index, trace in reversed(list(enumerate(traces))):
            self.log.append(f"build {index}")
            is_refused = trace in self.refused
            yield (
                index,
                Measurement("INVALID") if is_refused else Built(KernelBinary(b"", Entry(str(index), 0, 0)), 0.0),
            )

    def reset(self) -> None:
        self.log.append("reset builder")


class FakeRunner:
    """Takes the next of the latencies each time; None is a failure, an error is raised."""

    def __init__(self, log: list[str], latencies_s: Sequence[float | BaseException | None]) -> None:
        self.log = log
        self.latencies_s = iter(latencies_s)

    def prepare(self, task: Task, context: Context) -> None:
        self.log.append(f"prepare {task.name} {context}")

    def run(self, built: Built, best_latency_s: float | None) -> Measurement:
        self.log.append(f"run {built.binary.entry.symbol} beside {best_latency_s}")
        return self._next()

    def take_turn(self, built: Built) -> Measurement:
        self.log.append(f"turn {built.binary.entry.symbol}")
        return self._next()

    def reset(self) -> None:
        self.log.append("reset runner")

    def _next(self) -> Measurement:
        latency_s = next(self.latencies_s)
        if isinstance(latency_s, BaseException):
            raise latency_s
        return Measurement("RUN_ERROR") if latency_s is None else Measurement("OK", latency_s, (latency_s, latency_s))


def make(*latencies_s: float | BaseException | None) -> tuple[SequentialMeasurer, FakeBuilder]:
    builder = FakeBuilder()
    return SequentialMeasurer(builder, FakeRunner(builder.log, latencies_s), Target.native(), 1), builder


TASK = doubling()
TRACES = tuple(split_program(TASK, factor) for factor in (2, 4, 8))


def test_a_batch_is_built_before_any_of_it_is_timed_in_its_order() -> None:
    measurer, builder = make(3.0, 4.0, 5.0)
    measure_all(measurer, Batch(TASK, TRACES, best_latency_s=1.0))
    runs = [f"run {index} beside 1.0" for index in range(3)]
    assert builder.log == ["prepare doubling warm", "build 2", "build 1", "build 0", *runs]


def test_what_seems_the_best_is_timed_again_and_only_that_counts() -> None:
    measurer, builder = make(0.9, 0.7, 0.85, 0.75, 0.79)
    results = measure_all(measurer, Batch(TASK, TRACES, best_latency_s=0.8))
    assert [result.latency_s for result in results] == [0.9, 0.85, 0.79]
    assert builder.log[4:] == [f"run {index} beside 0.8" for index in (0, 1, 1, 2, 2)]


def test_without_a_best_the_first_that_runs_is_one() -> None:
    measurer, builder = make(None, 0.7, 0.8, 0.9)
    results = measure_all(measurer, Batch(TASK, TRACES))
    assert [result.latency_s for result in results] == [None, 0.8, 0.9]
    assert builder.log[-1] == "run 2 beside 0.8"


def test_results_come_as_they_arrive_failures_to_build_first() -> None:
    measurer, builder = make(0.9, 0.8)
    builder.refused = {TRACES[1]}
    first, second, third = measurer.submit(Batch(TASK, TRACES, best_latency_s=0.1))
    assert not measurer.has_room
    assert builder.log == []
    assert measurer.next_result() == (second, Measurement("INVALID"))
    assert builder.log[-1] == "build 1"
    assert measurer.next_result().ticket == first
    assert builder.log[-1].startswith("run 0")
    assert not measurer.has_room
    assert measurer.next_result().ticket == third
    assert measurer.has_room


def test_a_comparison_goes_in_turns_and_leaves_out_what_failed() -> None:
    measurer, builder = make(1.0, 2.0, 3.0, 1.5, None, 3.5, 1.1, 3.1)
    results = measure_all(measurer, Batch(TASK, TRACES, Context(8), turns=3))
    assert [(r.status, r.latency_s, r.runs_s) for r in results] == [
        ("OK", 1.1, (1.0, 1.5, 1.1)),
        ("RUN_ERROR", None, ()),
        ("OK", 3.1, (3.0, 3.5, 3.1)),
    ]
    assert builder.log[0] == "prepare doubling cold-8"
    assert builder.log[4:] == [f"turn {index}" for index in (0, 1, 2, 0, 1, 2, 0, 2)]


def test_programs_that_take_long_have_two_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequential, "_LONGEST_COMPARISON_S", -1.0)
    measurer, _ = make(1.0, 2.0, 1.5, 2.5)
    results = measure_all(measurer, Batch(TASK, TRACES[:2], turns=10))
    assert [result.runs_s for result in results] == [(1.0, 1.5), (2.0, 2.5)]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("no space left")])
def test_after_an_error_it_has_forgotten_all_and_goes_on(error: BaseException) -> None:
    measurer, builder = make(1.0, 1.1, error, 2.0, 2.0)
    measurer.submit(Batch(TASK, TRACES))
    measurer.submit(Batch(TASK, TRACES))
    measurer.next_result()
    with pytest.raises(type(error)):
        measurer.next_result()
    assert builder.log[-2:] == ["reset builder", "reset runner"]
    assert measurer.has_room
    (result,) = measure_all(measurer, Batch(TASK, TRACES[:1], WARM))
    assert result.latency_s == 2.0


def test_a_program_that_was_built_is_not_built_again_for_a_comparison() -> None:
    measurer, builder = make(*[1.0] * 20)
    builder.refused = {TRACES[2]}
    measure_all(measurer, Batch(TASK, TRACES[1:], best_latency_s=1.0))
    builder.log.clear()
    measure_all(measurer, Batch(TASK, TRACES, turns=1))
    # The first and the one that did not compile are new; the second is the first one of the batch before.
    assert builder.log[1:] == ["build 1", "build 0", "turn 0", "turn 0"]


def test_of_two_tasks_with_the_same_trace_each_has_its_program() -> None:
    measurer, builder = make(*[1.0] * 20)
    for task in (TASK, doubling(), TASK):
        measure_all(measurer, Batch(task, TRACES[:1], best_latency_s=1.0))
    assert [line for line in builder.log if line.startswith("build")] == ["build 0"] * 2


def test_programs_that_take_too_much_memory_are_forgotten_the_oldest_first() -> None:
    shelf = _Shelf(max_bytes=5)
    for trace in TRACES:
        shelf.put(TASK, trace, Built(KernelBinary(b"12", Entry("", 0, 0)), 0.0))
    assert [shelf.find(TASK, trace) is not None for trace in TRACES] == [False, True, True]
