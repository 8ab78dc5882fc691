"""Tuners whose latencies are known beforehand, so that what a scheduler makes of them can be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tilewright import te
from tilewright.measure import Measurement, Measurer
from tilewright.records import Record, RecordLog, latest
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task
from tilewright.tuning.task_scheduler import Network, TaskScheduler, WeightedTask

TARGET = Target.native()

Curve = Callable[[int], float | None]
"""The latency of the n-th trial of a task, from 0; None for one that fails."""


def task_of(size: int) -> Task:
    """A matrix product, different for each size."""
    a, b = te.placeholder((size, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis(8, name="k")
    return Task([a, b], te.compute((size, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C"), f"t{size}")


def network_of(name: str, weights: dict[int, int], **latencies_s: float) -> Network:
    """A network of tasks by their sizes, each with a weight."""
    tasks = tuple(WeightedTask(task_of(size), weight) for size, weight in weights.items())
    return Network(name, tasks, **latencies_s)


class CurveTuner:
    """A tuner that measures nothing."""

    def __init__(self, task: Task, label: str, curve: Curve, num_programs: int = 10_000) -> None:
        self.task = task
        self.label = label
        self.curve = curve
        self.num_programs = num_programs
        self.records: list[Record] = []
        self.num_finalists: list[int] = []

    @property
    def estimated_latency_s(self) -> float:
        return self.curve(0) or 1.0

    def resume(self, records: Iterable[Record]) -> None:
        self.records += latest(records)

    def round(
        self, measurer: Measurer, log: RecordLog | None, num_trials: int, on_trial: Callable[[Measurement], None]
    ) -> int:
        num_trials = min(num_trials, self.num_programs - len(self.records))
        for _ in range(num_trials):
            latency_s = self.curve(len(self.records))
            status = "RUN_ERROR" if latency_s is None else "OK"
            record = Record(self.task.hash, self.label, str(TARGET), 1, program(len(self.records)), status, latency_s)
            self.records.append(record)
            if log is not None:
                log.append(record)
            on_trial(Measurement(status, latency_s))
        return num_trials

    def compare_finalists(self, measurer: Measurer, log: RecordLog | None, max_finalists: int, turns: int) -> Record:
        self.num_finalists.append(max_finalists)
        best = min((r for r in self.records if r.latency_s is not None), key=lambda r: r.latency_s or 0.0)
        if log is not None:
            log.append(best)
        return best


def program(number: int) -> Trace:
    """A trace that is different for each number."""
    return Trace.from_json([{"step": "split", "stage": "C", "arguments": ["i", [1 + number]]}])


class Curves:
    """Makes a tuner for each task by the task's size, and keeps them."""

    def __init__(self, curves: dict[int, Curve], num_programs: dict[int, int] | None = None) -> None:
        self.curves = curves
        self.num_programs = num_programs or {}
        self.tuners: dict[int, CurveTuner] = {}

    def __call__(self, task: Task, label: str) -> CurveTuner:
        size = task.outputs[0].shape[0]
        assert size not in self.tuners, "a task has one tuner"
        self.tuners[size] = CurveTuner(task, label, self.curves[size], self.num_programs.get(size, 10_000))
        return self.tuners[size]

    @property
    def num_trials(self) -> dict[int, int]:
        return {size: len(tuner.records) for size, tuner in self.tuners.items()}


def scheduler_of(networks: list[Network], curves: Curves, **options: object) -> TaskScheduler:
    return TaskScheduler(networks, target=TARGET, threads=1, make_tuner=curves, **options)  # type: ignore[arg-type]


def falling(start_s: float, end_s: float, half_trials: float) -> Curve:
    """Falls from one latency to another, half of the way in so many trials."""
    return lambda n: end_s + (start_s - end_s) * 0.5 ** (n / half_trials)
