"""A task under the scheduler: its tuner, what it weighs in each network, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from tilewright.measure import Measurement, Measurer
from tilewright.records import Record, RecordLog
from tilewright.te import Task
from tilewright.tuning.task_scheduler.gradient import Standing
from tilewright.tuning.task_scheduler.network import Network, kind_of

# Programs this close to the best of their task are compared with it at the end, and with its first one.
_CLOSE = 1.1
_MAX_FINALISTS = 5
_FINAL_TURNS = 6
# A task without a valid program after so many rounds is given up.
_MAX_FAILED_ROUNDS = 3


class TaskTuner(Protocol):
    """What the scheduler asks of the tuner of one task; `tilewright.tuning.tuner.Tuner` is one."""

    @property
    def records(self) -> Sequence[Record]:
        """Its trials, those of earlier runs included."""

    @property
    def estimated_latency_s(self) -> float:
        """What is expected before anything is measured."""

    def resume(self, records: Iterable[Record]) -> None:
        """Take up those of the records that are of this task."""

    def round(
        self, measurer: Measurer, log: RecordLog | None, num_trials: int, on_trial: Callable[[Measurement], None]
    ) -> int:
        """Make up to `num_trials` trials; return how many it were."""

    def compare_finalists(self, measurer: Measurer, log: RecordLog | None, max_finalists: int, turns: int) -> Record:
        """The best program, after its like were measured against each other; what its record says did not choose it."""


class Job:
    """One task, whichever networks it is of."""

    def __init__(self, task: Task, weights: Sequence[float], labels: frozenset[str], tuner: TaskTuner) -> None:
        self.task = task
        self.weights = np.asarray(weights, np.float64)  # how often each network runs it
        self.labels = labels  # the names of its records, one for each network
        self.tuner = tuner
        self.kind = kind_of(task)
        self.is_exhausted = False
        self._final: Record | None = None
        self._needs_final = False
        self._known_best: list[Record | None] = []

    @property
    def num_trials(self) -> int:
        return len(self.tuner.records)

    @property
    def num_own_trials(self) -> int:
        """Trials that were made for these networks."""
        return sum(record.workload in self.labels for record in self.tuner.records)

    @property
    def best(self) -> Record | None:
        """The fastest program that was measured."""
        if self._final is not None:
            return self._final
        return self._best_so_far()[-1] if self.num_trials else None

    @property
    def latency_s(self) -> float:
        """Of the best program; an estimate where nothing ran yet."""
        return self._latency_s(self.best)

    def resume(self, records: Sequence[Record]) -> None:
        """Take up the records of the task. Those that end with a comparison of finalists need none before a trial."""
        self.tuner.resume(records)
        self._needs_final = bool(records) and records[-1].trace not in {record.trace for record in records[:-1]}

    def round(
        self, measurer: Measurer, log: RecordLog | None, num_trials: int, on_trial: Callable[[Measurement], None]
    ) -> None:
        self._needs_final = True
        self.is_exhausted = self.tuner.round(measurer, log, num_trials, on_trial) == 0

    def compare_finalists(self, measurer: Measurer, log: RecordLog | None) -> None:
        """Settle which program is the best, and how fast it is."""
        best = self.best
        if best is None or not self._needs_final:
            return
        num_close = sum(record.rank_s <= _CLOSE * best.rank_s for record in self.tuner.records)
        num_finalists = min(num_close + 1, _MAX_FINALISTS)
        self._final = self.tuner.compare_finalists(measurer, log, num_finalists, _FINAL_TURNS)
        self._needs_final = False

    def standing(self, slopes: Sequence[float], round_size: int, patience_trials: float) -> Standing:
        """For a strategy; a task that has not improved for so many trials is left alone."""
        is_failing = self.best is None and self.num_trials >= _MAX_FAILED_ROUNDS * round_size
        is_stale = self._num_stale_trials() >= patience_trials
        return Standing(
            slope=float(self.weights @ np.asarray(slopes)),
            flop=self.task.flop,
            kind=self.kind,
            history_s=self._history_s(round_size),
            is_open=not (self.is_exhausted or is_failing or is_stale),
        )

    def _best_so_far(self) -> list[Record | None]:
        """The fastest record after each trial; None until one was valid."""
        known = self._known_best
        for record in self.tuner.records[len(known) :]:
            before = known[-1] if known else None
            is_better = record.latency_s is not None and (before is None or record.rank_s < before.rank_s)
            known.append(record if is_better else before)
        return known

    def _history_s(self, round_size: int) -> tuple[float, ...]:
        best = self._best_so_far()
        if not best:
            return (self.tuner.estimated_latency_s,)
        after_rounds = [*best[round_size - 1 : -1 : round_size], best[-1]]
        return tuple(map(self._latency_s, after_rounds))

    def _latency_s(self, best: Record | None) -> float:
        return self.tuner.estimated_latency_s if best is None or best.latency_s is None else best.latency_s

    def _num_stale_trials(self) -> int:
        best = self._best_so_far()
        if not best or best[-1] is None:
            return 0
        return sum(record is best[-1] for record in best) - 1


def make_jobs(networks: Sequence[Network], make_tuner: Callable[[Task, str], TaskTuner]) -> list[Job]:
    """A job for each different task; `make_tuner` is given the task and the name of its records."""
    tasks: dict[str, Task] = {}
    weights: dict[str, list[float]] = {}
    labels: dict[str, list[str]] = {}
    for position, network in enumerate(networks):
        for weighted in network.tasks:
            key = weighted.task.hash
            task = tasks.setdefault(key, weighted.task)
            weights.setdefault(key, [0.0] * len(networks))[position] += weighted.weight
            labels.setdefault(key, []).append(f"{network.name}/{task.name}")
    return [
        Job(task, weights[key], frozenset(labels[key]), make_tuner(task, labels[key][0])) for key, task in tasks.items()
    ]
