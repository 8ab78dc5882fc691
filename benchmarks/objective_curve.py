"""The sum of networks' latencies over the trials of a run, read from its records.

What a trial measured depends on how busy the machine was at that moment, and the best of many trials is a lucky one.
So every program that was ever the best of its task is measured once more, with those of the other runs in turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.measure import Batch, Context, measure_all
from tilewright.measure.local import LocalMeasurer
from tilewright.records import Record
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task

# A longer time between two trials is a pause: the run was stopped and started again.
PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class Point:
    """Where a run stands from this trial on; trials and time count from the end of the first rounds."""

    trials: int
    elapsed_s: float
    estimated_ms: float
    """By the latencies that the scheduler saw."""
    again_ms: float
    """By those that the same programs have when they are measured again: of each task the least so far."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How often all networks together run each task, by its hash; and the latency of those that nothing ran of."""

    counts: dict[str, float]
    unmeasured_s: dict[str, float]

    def total_ms(self, latencies_s: dict[str, float]) -> float:
        known = self.unmeasured_s | latencies_s
        return 1e3 * float(np.sum([count * known[task] for task, count in self.counts.items()]))


Again = Mapping[tuple[str, Trace], float]
"""The latency of programs measured again, by the hash of their task and their trace."""


def trials_of(records: Iterable[Record]) -> list[Record]:
    """The first record of each program: later ones come from the comparison of finalists, which are no trials."""
    found: dict[tuple[str, Trace], Record] = {}
    for record in records:
        found.setdefault((record.task, record.trace), record)
    return list(found.values())


def improvements(trials: Iterable[Record]) -> list[Record]:
    """Those that were faster than all before them of the same task."""
    best_s: dict[str, float] = {}
    found: list[Record] = []
    for record in trials:
        if record.rank_s < best_s.get(record.task, np.inf):
            best_s[record.task] = record.rank_s
            found.append(record)
    return found


def measure_again(
    tasks: Sequence[Task], programs: Iterable[Record], target: Target, threads: int, turns: int
) -> dict[tuple[str, Trace], float]:
    """Measure the programs, those of one task in turns; one that fails now keeps the latency that it had."""
    groups: dict[tuple[str, str], dict[Trace, Record]] = {}
    for record in programs:
        groups.setdefault((record.task, record.context), {})[record.trace] = record
    task_of = {task.hash: task for task in tasks}
    again: dict[tuple[str, Trace], float] = {}
    with LocalMeasurer(target, threads) as measurer:
        for (task_hash, context), known in groups.items():
            batch = Batch(task_of[task_hash], tuple(known), Context.parse(context), turns=turns)
            results = measure_all(measurer, batch)
            for (trace, record), result in zip(known.items(), results, strict=True):
                again[task_hash, trace] = result.latency_s or record.rank_s
    return again


def curve(trials: Sequence[Record], num_first: int, weights: Weights, again: Again) -> tuple[Point, ...]:
    """A point after the first rounds, one at each improvement, and one at the end.

    A task that has no valid program yet counts with its first one.
    """
    improving = improvements(trials)
    is_better = {id(record) for record in improving}
    seen_s: dict[str, float] = {}
    again_s: dict[str, float] = {}

    def take(record: Record) -> None:
        seen_s[record.task] = record.rank_s
        again_s[record.task] = min(again[record.task, record.trace], again_s.get(record.task, np.inf))

    for record in {record.task: record for record in reversed(improving)}.values():
        take(record)
    elapsed_s = [0.0, *_elapsed_s(trials[num_first:])]
    points: list[Point] = []
    for number, record in enumerate(trials, start=1 - num_first):
        if id(record) in is_better:
            take(record)
        is_last = number == len(trials) - num_first
        if number == 0 or (number > 0 and (is_last or id(record) in is_better)):
            points.append(Point(number, elapsed_s[number], weights.total_ms(seen_s), weights.total_ms(again_s)))
    return tuple(points)


def _elapsed_s(trials: Sequence[Record]) -> list[float]:
    """When each was measured, from the first on and without pauses."""
    times = np.array([record.time for record in trials])
    gaps = np.diff(times, prepend=times[:1])
    return [float(value) for value in np.cumsum(np.where(gaps > PAUSE_S, 0.0, gaps))]


def value_at(xs: Sequence[float], values: Sequence[float], x: float) -> float:
    """Of a function that has each value from its x on.

    >>> value_at([0, 10, 30], [9.0, 5.0, 4.0], 20)
    5.0
    """
    return values[int(np.searchsorted(xs, x, side="right")) - 1]


def mean_until(xs: Sequence[float], values: Sequence[float], end: float) -> float:
    """The area under such a function from 0 to the end, by the length.

    >>> mean_until([0, 10, 30], [9.0, 5.0, 4.0], 20)
    7.0
    """
    widths = np.diff(np.minimum([*xs, end], end))
    return float(np.dot(widths, values) / end) if end > 0 else values[0]
