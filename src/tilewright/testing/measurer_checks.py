"""What every measurer must do. A measurer's tests subclass `MeasurerChecks` and say how to make one.

```python
class TestMyMeasurer(MeasurerChecks):
    def make(self) -> Measurer:
        return MyMeasurer(Target.native(), threads=1)
```
"""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing

import pytest

from tilewright import te
from tilewright.errors import UsageError
from tilewright.measure import Batch, Context, Measurement, Measurer, measure_all
from tilewright.schedule import Schedule, Trace
from tilewright.target import runs_here
from tilewright.te import Task

COLD = Context.parse("cold-1M")


def doubling() -> Task:
    """A task without constants."""
    a = te.placeholder((1024,), name="A")
    return Task([a], te.compute((1024,), lambda i: a[i] * 2.0, name="B"), name="doubling")


def product() -> Task:
    """A task with a constant, of 2 KiB."""
    a, w = te.placeholder((4, 16), name="A"), te.placeholder((16, 32), name="W", constant=True)
    k = te.reduce_axis(16, name="k")
    c = te.compute((4, 32), lambda i, j: te.sum(a[i, k] * w[k, j], axis=k), name="C")
    return Task([a, w], c, name="product")


def split_program(task: Task, factor: int) -> Trace:
    """A legal program, different for each factor; of the product with a packed constant."""
    schedule = Schedule(task)
    stage = schedule[task.outputs[0].name]
    _, inner = stage.split(stage.loops[-2] if task.constants else stage.loops[-1], factor)
    if task.constants:
        schedule["W"].pack(stage)
    stage.unroll(inner)
    return Trace(schedule.steps)


def illegal_program() -> Trace:
    """A program of no task."""
    return Trace.from_json([{"step": "vectorize", "stage": "nowhere", "arguments": ["i"]}])


class MeasurerChecks(ABC):
    """The conformance checks; `make` gives a new measurer each time, which can measure on this machine."""

    @abstractmethod
    def make(self) -> Measurer: ...

    @pytest.fixture
    def measurer(self) -> Iterator[Measurer]:
        with closing(self.make()) as made:
            yield made

    def test_a_program_that_runs_has_a_latency_the_median_of_its_runs(self, measurer: Measurer) -> None:
        (result,) = measure_all(measurer, Batch(doubling(), (Trace(),)))
        assert (result.status, result.error) == ("OK", "")
        assert result.latency_s == statistics.median(result.runs_s) > 0

    def test_every_program_comes_back_once_under_a_ticket_of_its_own(self, measurer: Measurer) -> None:
        batches = [
            Batch(doubling(), tuple(split_program(doubling(), factor) for factor in (2, 4))),
            Batch(product(), (split_program(product(), 2),)),
            Batch(doubling(), (Trace(),)),
        ]
        tickets = [ticket for batch in batches for ticket in measurer.submit(batch)]
        assert len(set(tickets)) == 4
        results = [measurer.next_result() for _ in tickets]
        assert sorted(result.ticket for result in results) == sorted(tickets)
        assert [result.measurement.status for result in results] == ["OK"] * 4

    def test_a_program_that_is_no_schedule_costs_no_other(self, measurer: Measurer) -> None:
        results = measure_all(measurer, Batch(doubling(), (Trace(), illegal_program(), split_program(doubling(), 4))))
        assert [result.status for result in results] == ["OK", "INVALID", "OK"]
        assert "nowhere" in results[1].error
        assert results[1].latency_s is None

    def test_the_same_program_may_be_measured_twice(self, measurer: Measurer) -> None:
        results = measure_all(measurer, Batch(doubling(), (Trace(), Trace())))
        assert [result.status for result in results] == ["OK", "OK"]

    def test_one_without_work_has_room_and_no_result(self, measurer: Measurer) -> None:
        assert measurer.has_room
        assert measurer.submit(Batch(doubling(), ())) == []
        with pytest.raises(UsageError, match="there is no result to wait for; submit a batch first"):
            measurer.next_result()
        measure_all(measurer, Batch(doubling(), (Trace(),)))
        assert measurer.has_room
        with pytest.raises(UsageError, match="no result to wait for"):
            measurer.next_result()

    def test_a_comparison_has_a_number_for_each_turn(self, measurer: Measurer) -> None:
        traces = (Trace(), illegal_program(), split_program(doubling(), 8))
        results = measure_all(measurer, Batch(doubling(), traces, turns=4))
        assert [result.status for result in results] == ["OK", "INVALID", "OK"]
        for result in (results[0], results[2]):
            assert len(result.runs_s) == 4
            assert result.latency_s == statistics.median(result.runs_s)

    @pytest.mark.parametrize("turns", [None, 2])
    @pytest.mark.parametrize("task", [doubling(), product()], ids=lambda task: task.name)
    def test_constants_may_be_cold(self, measurer: Measurer, task: Task, turns: int | None) -> None:
        traces = (Trace(), split_program(task, 2))
        results = measure_all(measurer, Batch(task, traces, COLD, turns=turns))
        assert [(result.status, result.error) for result in results] == [("OK", "")] * 2

    def test_tasks_and_contexts_may_change_from_batch_to_batch(self, measurer: Measurer) -> None:
        first, second = doubling(), product()
        found: list[Measurement] = []
        for task, context in ((first, Context()), (second, Context()), (second, COLD), (first, COLD)):
            found += measure_all(measurer, Batch(task, (Trace(),), context))
        assert [result.status for result in found] == ["OK"] * 4

    def test_what_is_cancelled_does_not_come_back(self, measurer: Measurer) -> None:
        measurer.submit(Batch(doubling(), (illegal_program(), Trace(), split_program(doubling(), 2))))
        measurer.next_result()
        measurer.cancel()
        assert measurer.has_room
        with pytest.raises(UsageError, match="no result to wait for"):
            measurer.next_result()
        (ticket,) = measurer.submit(Batch(product(), (Trace(),)))
        assert measurer.next_result().ticket == ticket

    def test_it_may_be_closed_twice_and_with_work_left(self, measurer: Measurer) -> None:
        measurer.submit(Batch(doubling(), (Trace(),)))
        measurer.close()
        measurer.close()

    def test_it_says_what_it_measures_for(self, measurer: Measurer) -> None:
        assert runs_here(measurer.target)
        assert measurer.threads >= 1
