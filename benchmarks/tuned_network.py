"""A network tuned for so many seconds, over several runs if need be, and how its latency fell on the way.

Records know the trials but not the seconds that they took. A second file keeps these, so that a run that was
interrupted has only the rest of its time left, and pauses do not count.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tilewright.cli.tune_network import status
from tilewright.errors import UsageError
from tilewright.measure import Context
from tilewright.network import compare_inside, compile_partition, read_network
from tilewright.partition import Partition
from tilewright.target import Target
from tilewright.tuning.task_scheduler import (
    Network,
    NetworkProgress,
    NetworksResult,
    TaskScheduler,
    deployed_context,
)
from tilewright.zoo import inputs_for

CLOSE = 1.1
_REPORT_EVERY_S = 15.0
# What an interrupted run that has used its time up still gets, to compare its finalists.
_LEAST_S = 1.0


@dataclass(frozen=True, slots=True)
class Point:
    """After a trial: the seconds spent on the network until then, and what its latency is estimated to be."""

    elapsed_s: float
    latency_s: float
    num_unmeasured: int
    """Tasks of which nothing ran yet, and whose share of the latency is a guess."""
    num_trials: int
    budget_s: float = 0.0
    """Of the run that ended here, if one did."""


class Curve:
    """The points of a network in a file that only grows; its first line says what they are of."""

    def __init__(self, path: Path, subject: str) -> None:
        self.path = path
        self.subject = subject

    def read(self) -> list[Point]:
        """All points; none if the file does not exist yet."""
        if not self.path.exists():
            return []
        first, *lines = self.path.read_text().splitlines()
        if json.loads(first)["subject"] != self.subject:
            raise UsageError(
                f"{self.path} is of other tasks, another target or number of threads, and so are the records next to "
                "it; remove both, or name another folder with --records"
            )
        return [Point(**json.loads(line)) for line in lines]

    def append(self, point: Point) -> None:
        lines = [] if self.path.exists() else [{"subject": self.subject}]
        with self.path.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in [*lines, asdict(point)])


def tune_network(
    name: str,
    cut: Callable[[], Partition],
    records: Path,
    *,
    budget_s: float,
    target: Target,
    threads: int,
    seed: int = 0,
    context: Context | None = None,
) -> tuple[Partition, list[Point]]:
    """Tune what `cut` gives until `budget_s` seconds are spent, `cut` included; what earlier runs spent counts.

    Without a `context` tasks are measured as the network runs them.
    """
    started_s = time.monotonic()
    partition = cut()
    curve = Curve(records.with_suffix(".curve.jsonl"), subject_of(partition, target, threads, context))
    points = curve.read()
    if records.exists() and not points:
        raise UsageError(f"how long the trials in {records} took is not known; remove it, or name another --records")
    if any(point.budget_s >= budget_s for point in points):
        return partition, points
    spent_s = points[-1].elapsed_s if points else 0.0
    report = _reporter()

    def elapsed_s() -> float:
        return spent_s + time.monotonic() - started_s

    def keep(progress: NetworkProgress) -> None:
        (latency_s,) = progress.latencies_s.values()
        curve.append(Point(elapsed_s(), latency_s, progress.num_unmeasured, progress.num_trials))
        report(progress)

    scheduler = TaskScheduler(
        [Network(name, partition.tasks, context=context)], target=target, threads=threads, seed=seed
    )
    left_s = max(_LEAST_S, budget_s - elapsed_s())
    result = scheduler.tune(records=records, budget_s=left_s, on_progress=keep)
    curve.append(_last_point(result, elapsed_s(), budget_s))
    return partition, curve.read()


def compare_finalists(network: str, partition: Partition, records: Path, target: Target, threads: int) -> None:
    """The finals inside the network, as `tune_network` ends."""
    model = compile_partition(partition, str(records), target, threads).model
    compare_inside(partition, records, target, threads, inputs_for(model.input_types, read_network(network)))


def close_after_s(points: Sequence[Point]) -> float:
    """Seconds after which the latency stays within 10 % of the last one, and no task is measured for the first time."""
    last = points[-1]
    begin = 0
    for position, point in enumerate(points):
        if point.latency_s > CLOSE * last.latency_s or point.num_unmeasured > last.num_unmeasured:
            begin = position + 1
    return points[begin].elapsed_s


def subject_of(partition: Partition, target: Target, threads: int, context: Context | None = None) -> str:
    """Equal where the same trials serve: for the same tasks, as often, on the same target and threads, as cold."""
    tasks = sorted((weighted.task.hash, weighted.weight) for weighted in partition.tasks)
    measured_in = str(context or deployed_context(partition.tasks))
    return hashlib.sha256(repr((tasks, str(target), threads, measured_in)).encode()).hexdigest()


def _last_point(result: NetworksResult, elapsed_s: float, budget_s: float) -> Point:
    (latency_s,) = result.latencies_s.values()
    num_unmeasured = sum(tuned.best is None for tuned in result.tasks)
    return Point(elapsed_s, latency_s, num_unmeasured, result.num_trials, budget_s)


def _reporter() -> Callable[[NetworkProgress], None]:
    """Says on stderr where the run is, now and then."""
    next_s = 0.0

    def report(progress: NetworkProgress) -> None:
        nonlocal next_s
        if progress.elapsed_s >= next_s:
            next_s = progress.elapsed_s + _REPORT_EVERY_S
            print(f"  {status(progress)}", file=sys.stderr, flush=True)

    return report
