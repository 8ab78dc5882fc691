"""A task under the scheduler: its tuner, what it weighs in each network, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from tilewright.measure import Context, Measurement
from tilewright.records import Record, RecordLog
from tilewright.te import Task
from tilewright.tuning.finals import is_disturbed
from tilewright.tuning.rounds import Round
from tilewright.tuning.task_scheduler.gradient import Standing
from tilewright.tuning.task_scheduler.network import Network, context_of, kind_of

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

    def round(self, num_trials: int, log: RecordLog | None, on_trial: Callable[[Measurement], None]) -> Round | None:
        """Up to `num_trials` programs to measure next; None if there are no more. `on_trial` is told of each result."""

    def final_round(
        self, max_finalists: int, turns: int, log: RecordLog | None, on_best: Callable[[Record], None]
    ) -> Round | None:
        """The best programs, to be compared; `on_best` is told which it is, by a record that did not choose it."""


class Job:
    """One task in one context, whichever networks it is of."""

    def __init__(
        self, task: Task, context: Context, weights: Sequence[float], labels: frozenset[str], tuner: TaskTuner
    ) -> None:
        self.task = task
        self.context = context
        self.weights = np.asarray(weights, np.float64)  # how often each network runs it
        self.labels = labels  # the names of its records, one for each network
        self.tuner = tuner
        self.kind = kind_of(task)
        self.is_exhausted = False
        self.num_open = 0  # trials that are under way
        self._final: Record | None = None
        self.needs_final = False  # whether programs were measured, or disturbed, since the last one
        self._may_repeat_final = True
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
        self.needs_final = bool(records) and records[-1].trace not in {record.trace for record in records[:-1]}

    def round(self, num_trials: int, log: RecordLog | None, on_trial: Callable[[Measurement], None]) -> Round | None:
        """The next trials; None, from then on, if there are no more."""

        def take(measurement: Measurement) -> None:
            self.num_open -= 1
            on_trial(measurement)

        found = self.tuner.round(num_trials, log, take)
        self.is_exhausted = found is None
        if found is not None:
            self.needs_final = self._may_repeat_final = True
            self.num_open += len(found.batch.traces)
        return found

    def final_round(self, log: RecordLog | None) -> Round | None:
        """Settles which program is the best, and how fast it is; None where that is settled, or nothing ran."""
        best, is_needed = self.best, self.needs_final
        self.needs_final = False
        if best is None or not is_needed:
            return None
        num_close = sum(record.rank_s <= _CLOSE * best.rank_s for record in self.tuner.records)
        return self.tuner.final_round(min(num_close + 1, _MAX_FINALISTS), _FINAL_TURNS, log, self._settle)

    def _settle(self, best: Record) -> None:
        """A final that something disturbed is repeated once, after some of other tasks."""
        self._final = best
        self.needs_final = self._may_repeat_final and is_disturbed(best, self.tuner.records)
        self._may_repeat_final = False

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


def make_jobs(networks: Sequence[Network], make_tuner: Callable[[Task, Context, str], TaskTuner]) -> list[Job]:
    """A job for each different task in each context; `make_tuner` is also given the name of its records."""
    tasks: dict[tuple[str, Context], Task] = {}
    weights: dict[tuple[str, Context], list[float]] = {}
    labels: dict[tuple[str, Context], list[str]] = {}
    for position, network in enumerate(networks):
        context = context_of(network)
        for weighted in network.tasks:
            key = (weighted.task.hash, context.of_task(weighted.task))
            task = tasks.setdefault(key, weighted.task)
            weights.setdefault(key, [0.0] * len(networks))[position] += weighted.weight
            labels.setdefault(key, []).append(f"{network.name}/{task.name}")
    return [
        Job(task, key[1], weights[key], frozenset(labels[key]), make_tuner(task, key[1], labels[key][0]))
        for key, task in tasks.items()
    ]
