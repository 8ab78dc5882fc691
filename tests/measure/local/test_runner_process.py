"""What goes on in the runner: how cold it makes the arrays of a kernel."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from tilewright import te
from tilewright.measure import MeasureOptions
from tilewright.measure.compiler import compile_trace
from tilewright.measure.context import Context
from tilewright.measure.local import cold
from tilewright.measure.local.messages import RunJob, Setup
from tilewright.measure.local.reference import ReferenceStore
from tilewright.measure.local.runner_process import Bench
from tilewright.runtime import Kernel
from tilewright.schedule import Schedule, Trace
from tilewright.target import Target
from tilewright.te import Task
from tilewright.testing.measurer_checks import doubling, product, split_program

NATIVE = Target.native()
COPY_BYTES = 16 * 32 * 4


class Watched(Bench):
    """Keeps how many bytes of copies each kernel had when it was timed."""

    def __init__(self, task: Task, context: str) -> None:
        options = MeasureOptions(min_repeat_ms=0.01, max_total_ms=0.1)
        super().__init__(Setup(task, NATIVE, 1, options, Context.parse(context)), ReferenceStore(task))
        self.task = task
        self.copied_bytes: list[int] = []

    def measure(self, trace: Trace, *, is_turn: bool = False) -> None:
        ran = self.run(RunJob(compile_trace(self.task, trace, NATIVE, 1), is_turn=is_turn))
        assert ran.mismatch == ""
        assert min(ran.runs_s) > 0

    def _time(self, kernel: Kernel, number: int) -> float:
        copies = kernel._copies
        self.copied_bytes.append(0 if copies is None else copies.count * copies.stride)
        return super()._time(kernel, number)


@pytest.mark.parametrize("is_turn", [False, True])
@pytest.mark.parametrize(
    ("context", "copied_bytes"),
    [("warm", 0), ("cold-1", 2 * COPY_BYTES), ("cold-9000", 5 * COPY_BYTES), ("cold-1M", 1 << 20)],
)
def test_copies_fill_what_the_context_says_and_are_two_at_least(context: str, copied_bytes: int, is_turn: bool) -> None:
    bench = Watched(product(), context)
    for trace in (Trace(), split_program(product(), 2)):  # a plain constant, and a packed one
        bench.measure(trace, is_turn=is_turn)
    assert set(bench.copied_bytes) == {copied_bytes}


def test_constants_that_an_algorithm_makes_larger_have_as_many_copies() -> None:
    data, weights = te.placeholder((1, 6, 6, 4)), te.placeholder((3, 3, 4, 16), name="W", constant=True)
    r, s, c = te.reduce_axis(3, "r"), te.reduce_axis(3, "s"), te.reduce_axis(4, "c")
    sums = te.compute(
        (1, 4, 4, 16), lambda n, y, x, f: te.sum(data[n, y + r, x + s, c] * weights[r, s, c, f], axis=[r, s, c]), "Y"
    )
    schedule = Schedule(Task([data, weights], sums))
    schedule["Y"].algorithm("winograd4")
    bench = Watched(schedule.task, f"cold-{5 * 9 * 4 * 16 * 4}")
    bench.measure(schedule.trace)
    assert set(bench.copied_bytes) == {5 * 36 * 4 * 16 * 4}


def test_a_task_without_constants_has_no_copies() -> None:
    bench = Watched(doubling(), "cold-8M")
    bench.measure(Trace())
    assert set(bench.copied_bytes) == {0}


def test_no_more_copies_than_caches_could_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "_ALWAYS_COLD", 3 * COPY_BYTES)
    monkeypatch.setattr(cold, "_MANY_CACHES", 0)
    bench = Watched(product(), "cold-900G")
    bench.measure(Trace())
    assert set(bench.copied_bytes) == {3 * COPY_BYTES}


def test_copies_that_memory_has_no_room_for_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "_memory_bytes", lambda: 8 * COPY_BYTES)
    bench = Watched(product(), "cold-1")
    bench.measure(Trace())
    assert set(bench.copied_bytes) == {0}


@pytest.mark.parametrize("task", [product(), doubling()], ids=["product", "doubling"])
def test_inputs_and_outputs_are_copied_too_and_every_copy_is_right(task: Task) -> None:
    bench = Watched(task, "cold-1-16K")
    for trace in (Trace(), split_program(product(), 2)) if task.constants else (Trace(),):
        bench.measure(trace)
    copies = bench._copies
    assert copies is not None
    assert copies.count == (16 << 10) // copies.stride
    (output,) = task.outputs
    first = copies.first[output.name]
    reach = as_strided(first, (copies.count, *first.shape), (copies.stride, *first.strides))
    for other in reach[1:]:
        np.testing.assert_array_equal(other, first)


def test_activations_are_warm_unless_the_context_says_otherwise() -> None:
    assert Watched(product(), "cold-1M")._copies is None
    assert Watched(product(), "warm")._copies is None


def test_activations_that_memory_has_no_room_for_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "_memory_bytes", lambda: 8 * COPY_BYTES)
    bench = Watched(product(), "cold-0-1M")
    bench.measure(Trace())
    assert bench._copies is None
