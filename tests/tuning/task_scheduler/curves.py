"""Tuners whose latencies are known beforehand, so that what a scheduler makes of them can be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from tilewright import te
from tilewright.measure import Batch, Context, Measurement, Result, Ticket
from tilewright.records import Record, RecordLog, latest
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task
from tilewright.tuning.rounds import Round
from tilewright.tuning.task_scheduler import Network, NetworksResult, TaskScheduler, WeightedTask

TARGET = Target.native()

Curve = Callable[[int], float | None]
"""The latency of the n-th trial of a task, from 0; None for one that fails."""


def task_of(size: int) -> Task:
    """A matrix product, different for each size."""
    a, b = te.placeholder((size, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis(8, name="k")
    return Task([a, b], te.compute((size, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C"), f"t{size}")


def network_of(name: str, weights: dict[int, int], **options: Any) -> Network:
    """A network of tasks by their sizes, each with a weight."""
    tasks = tuple(WeightedTask(task_of(size), weight) for size, weight in weights.items())
    return Network(name, tasks, **options)


class CurveTuner:
    """A tuner whose programs are numbered."""

    def __init__(self, task: Task, label: str, curve: Curve, num_programs: int = 10_000) -> None:
        self.task = task
        self.label = label
        self.curve = curve
        self.num_programs = num_programs
        self.records: list[Record] = []
        self.num_asked = 0
        self.num_finalists: list[int] = []
        self.finals: list[float] = []
        """By what the latencies of its finals are multiplied, one after the other."""

    @property
    def estimated_latency_s(self) -> float:
        return self.curve(0) or 1.0

    def resume(self, records: Iterable[Record]) -> None:
        self.records += latest(records)
        self.num_asked = len(self.records)

    def round(self, num_trials: int, log: RecordLog | None, on_trial: Callable[[Measurement], None]) -> Round | None:
        num_trials = min(num_trials, self.num_programs - self.num_asked)
        traces = tuple(program(self.num_asked + n) for n in range(num_trials))
        self.num_asked += num_trials

        def take(index: int, measurement: Measurement) -> None:
            self._keep(Record(*self._head, traces[index], measurement.status, measurement.latency_s), log)
            on_trial(measurement)

        return Round(Batch(self.task, traces), take, lambda results: None) if traces else None

    def final_round(
        self, max_finalists: int, turns: int, log: RecordLog | None, on_best: Callable[[Record], None]
    ) -> Round | None:
        self.num_finalists.append(max_finalists)
        best = min((r for r in self.records if r.latency_s is not None), key=lambda r: r.latency_s or 0.0)

        def finish(results: Sequence[Measurement]) -> None:
            factor = self.finals.pop(0) if self.finals else 1.0
            again = replace(best, latency_s=(best.latency_s or 0.0) * factor)
            if log is not None:
                log.append(again)
            on_best(again)

        return Round(Batch(self.task, (best.trace,), turns=turns), lambda index, measurement: None, finish)

    @property
    def _head(self) -> tuple[str, str, str, int]:
        return self.task.hash, self.label, str(TARGET), 1

    def _keep(self, record: Record, log: RecordLog | None) -> None:
        self.records.append(record)
        if log is not None:
            log.append(record)


class CurveMeasurer:
    """Measures nothing: the latency of a program is that of its number, on the curve of its task."""

    def __init__(self, curves: dict[int, Curve]) -> None:
        self.target = TARGET
        self.threads = 1
        self.curves = curves
        self.waiting: list[tuple[Ticket, Curve, Trace]] = []
        self.num_tickets = 0

    @property
    def has_room(self) -> bool:
        return not self.waiting

    def submit(self, batch: Batch) -> list[Ticket]:
        tickets = [self.num_tickets + n for n in range(len(batch.traces))]
        self.num_tickets += len(tickets)
        curve = self.curves[batch.task.outputs[0].shape[0]]
        self.waiting += [(ticket, curve, trace) for ticket, trace in zip(tickets, batch.traces, strict=True)]
        return tickets

    def next_result(self) -> Result:
        ticket, curve, trace = self.waiting.pop(0)
        latency_s = curve(number_of(trace))
        return Result(ticket, Measurement("RUN_ERROR" if latency_s is None else "OK", latency_s))

    def cancel(self) -> None:
        self.waiting.clear()

    def close(self) -> None:
        self.cancel()


def program(number: int) -> Trace:
    """A trace that is different for each number."""
    return Trace.from_json([{"step": "split", "stage": "C", "arguments": ["i", [1 + number]]}])


def number_of(trace: Trace) -> int:
    factor: int = trace.to_json()[0]["arguments"][1][0]
    return factor - 1


class Curves:
    """Makes a tuner for each task by the task's size, and keeps them."""

    def __init__(self, curves: dict[int, Curve], num_programs: dict[int, int] | None = None) -> None:
        self.curves = curves
        self.num_programs = num_programs or {}
        self.tuners: dict[int, CurveTuner] = {}

    def __call__(self, task: Task, context: Context, label: str) -> CurveTuner:
        size = task.outputs[0].shape[0]
        assert size not in self.tuners, "a task has one tuner"
        self.tuners[size] = CurveTuner(task, label, self.curves[size], self.num_programs.get(size, 10_000))
        return self.tuners[size]

    @property
    def num_trials(self) -> dict[int, int]:
        return {size: len(tuner.records) for size, tuner in self.tuners.items()}


class CurveScheduler(TaskScheduler):
    """A scheduler of such tasks."""

    def __init__(self, networks: list[Network], curves: Curves, **options: object) -> None:
        super().__init__(networks, target=TARGET, threads=1, make_tuner=curves, **options)  # type: ignore[arg-type]
        self.measurer = CurveMeasurer(curves.curves)

    def tune(self, *arguments: object, **options: object) -> NetworksResult:
        return super().tune(*arguments, **{"measurer": self.measurer} | options)  # type: ignore[arg-type]


def scheduler_of(networks: list[Network], curves: Curves, **options: object) -> TaskScheduler:
    return CurveScheduler(networks, curves, **options)


def falling(start_s: float, end_s: float, half_trials: float) -> Curve:
    """Falls from one latency to another, half of the way in so many trials."""
    return lambda n: end_s + (start_s - end_s) * 0.5 ** (n / half_trials)
