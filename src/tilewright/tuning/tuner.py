"""Tuning one task: derive the space, search it under a cost model, measure, learn, and keep every record."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from tilewright.arguments import file_path, function, instance, seconds, whole_number
from tilewright.cost_model import CostModel, find
from tilewright.errors import NoValidCandidateError, TilewrightError, UsageError
from tilewright.measure import Measurement, MeasureOptions, Measurer
from tilewright.records import (
    Key,
    Record,
    RecordLog,
    applicable,
    for_target,
    group_by_task,
    in_names_of,
    latest,
    names_of,
    warn_of_unusable,
)
from tilewright.runtime import Kernel
from tilewright.runtime.build import build
from tilewright.schedule import Trace
from tilewright.search import SearchStrategy, find_strategy
from tilewright.space import DEFAULT_RULES, Candidate, Rule, Sketch, SpaceOptions, derive
from tilewright.target import Target, checked_threads
from tilewright.te import Task
from tilewright.tuning.finals import fastest_first, final_of
from tilewright.tuning.recorded import candidate_of
from tilewright.tuning.scoring import Scoring
from tilewright.tuning.untuned import Untuned, search_untuned

ROUND_SIZE = 16
# Finalists are measured once more against each other; the fastest few of many again, in more turns.
NUM_FINALISTS = 12
QUALIFYING_TURNS = 3
NUM_LAST_FINALISTS = 5
FINAL_TURNS = 10


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a tuning run stands, after each measurement."""

    task: Task
    num_trials: int
    max_trials: int
    elapsed_s: float
    last: Measurement | None
    best_latency_s: float | None
    statuses: dict[str, int]


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What tuning found. `best` is the best record; `compile` makes a kernel of it; it prints as a few lines."""

    task: Task
    target: Target
    threads: int
    best: Record
    records: tuple[Record, ...]
    elapsed_s: float = 0.0
    path: str | None = None
    """The file that has the records."""

    def compile(self) -> Kernel:
        return build(self.best.trace.apply(self.task), self.target, self.threads)

    def __str__(self) -> str:
        lines = [
            f"task: {self.task.name}",
            f"best: {self._speed} on {self.threads} threads",
            f"trials: {len(self.records)} in {self.elapsed_s:.1f} s",
        ]
        return "\n".join(lines if self.path is None else [*lines, f"records: {self.path}"])

    def __repr__(self) -> str:
        return f"<TuneResult of {self.task.name}: {self._speed} after {len(self.records)} trials>"

    @property
    def _speed(self) -> str:
        latency_s = self.best.latency_s
        assert latency_s is not None, "the best ran"
        return f"{latency_s * 1e3:.4g} ms, {self.task.flop / latency_s / 1e9:.1f} GFLOP/s"


def tune(
    task: Task,
    *,
    trials: int = 128,
    records: str | os.PathLike[str] | None = None,
    seed: int = 0,
    target: Target | str = "llvm -mcpu=native",
    threads: int | None = None,
    cost_model: CostModel | str | os.PathLike[str] = "boosted-trees",
    search: str | type[SearchStrategy] = "evolutionary",
    budget_s: float | None = None,
    workload: str = "",
    rules: Sequence[Rule] = DEFAULT_RULES,
    measure: MeasureOptions | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> TuneResult:
    """Find a fast program for `task` with at most `trials` measurements.

    With `records`, every trial is appended to that file, and trials of the same task that it holds already count: a
    run that was interrupted goes on where it stopped. `cost_model` is a name (boosted-trees, analytical or random), the
    path of a saved model, or a model; `search` is a name (evolutionary or random) or a class of `SearchStrategy`.
    """
    num_trials = whole_number("trials", trials, least=1)
    log = None if records is None else RecordLog(file_path("records", records))
    first_seed = whole_number("seed", seed, least=0)
    limit_s = None if budget_s is None else seconds("budget_s", budget_s)
    tuner = Tuner(
        task,
        Target.of(target),
        checked_threads(threads),
        seed=first_seed,
        cost_model=cost_model,
        search=search,
        rules=[instance("a rule", rule, Rule) for rule in instance("rules", rules, Sequence)],
        workload=instance("workload", workload, str),
    )
    options = MeasureOptions(seed=first_seed) if measure is None else instance("measure", measure, MeasureOptions)
    report = (lambda _: None) if on_progress is None else function("on_progress", on_progress)
    return tuner.run(num_trials, log, limit_s, options, report)


class Tuner:
    """One task as far as it is tuned. `run` tunes it alone; a task scheduler calls `round` as often as it pays."""

    def __init__(
        self,
        task: Task,
        target: Target,
        threads: int,
        *,
        seed: int = 0,
        cost_model: CostModel | str | os.PathLike[str] = "boosted-trees",
        search: str | type[SearchStrategy] = "evolutionary",
        rules: Sequence[Rule] = DEFAULT_RULES,
        workload: str = "",
    ) -> None:
        if not isinstance(task, Task):
            raise UsageError(f"tuning takes a tw.Task(inputs, outputs), got {type(task).__name__}: {task}")
        self.task = task
        self.target = target
        self.threads = threads
        self.workload = workload
        self.options = SpaceOptions(target, threads)
        self.sketches = derive(task, self.options, rules)
        self.scoring = Scoring(find(cost_model, seed))
        self.strategy = find_strategy(search)(self.sketches, self.scoring.scores, target, seed)
        self.records: list[Record] = []
        self.started_s = time.monotonic()

    def run(
        self,
        trials: int,
        log: RecordLog | None,
        budget_s: float | None,
        options: MeasureOptions,
        on_progress: Callable[[Progress], None],
    ) -> TuneResult:
        if log is not None:
            self.resume(log.read())
        with Measurer(self.task, self.target, self.threads, options) as measurer:
            while len(self.records) < trials and not self._is_over(budget_s):
                num_trials = min(ROUND_SIZE, trials - len(self.records))
                if not self.round(measurer, log, num_trials, lambda last: on_progress(self._progress(last, trials))):
                    break
            best = self.compare_finalists(measurer, log)
        elapsed_s = time.monotonic() - self.started_s
        path = None if log is None else str(log.path)
        return TuneResult(self.task, self.target, self.threads, best, tuple(self.records), elapsed_s, path)

    def resume(self, records: Iterable[Record]) -> None:
        """Take up those of the records that are of this task, target and number of threads: they count as trials."""
        mine = latest(in_names_of(self.task, group_by_task(for_target(records, self.target)).get(self.key, [])))
        found: list[tuple[Record, Candidate]] = []
        unusable: list[tuple[Record, TilewrightError]] = []
        for record in mine:
            candidate = candidate_of(record.trace, self.sketches)
            error = None if candidate is not None or record.latency_s is None else self._why_not(record)
            if error is not None:
                unusable.append((record, error))
                continue
            self.records.append(record)
            if candidate is not None:
                found.append((record, candidate))
        warn_of_unusable(unusable)
        self._learn([candidate for _, candidate in found], [record for record, _ in found])

    def _why_not(self, record: Record) -> TilewrightError | None:
        """Why the program of a record, which is none of the space, does not apply to the task."""
        try:
            applicable(self.task, record)
        except TilewrightError as error:
            return error
        return None

    def round(
        self,
        measurer: Measurer,
        log: RecordLog | None,
        num_trials: int = ROUND_SIZE,
        on_trial: Callable[[Measurement], None] | None = None,
    ) -> int:
        """Search, measure and learn once; return how many trials that took: none where the space is exhausted.

        The measurer is turned to this task. `on_trial` is called as soon as a trial is in the records and in the log.
        """
        candidates = self._candidates(num_trials)
        if not candidates:
            return 0
        traces = [candidate.trace for candidate in candidates]
        made: dict[int, Record] = {}

        def report(index: int, measurement: Measurement) -> None:
            made[index] = record = self._record(traces[index], measurement)
            self.records.append(record)
            if log is not None:
                log.append(record, self.task)
            if on_trial is not None:
                on_trial(measurement)

        measurer.turn_to(self.task)
        measurer.measure(traces, self.best_latency_s, report)
        self._learn(candidates, [made[index] for index in range(len(candidates))])
        return len(candidates)

    def _candidates(self, n: int) -> list[Candidate]:
        """What the strategy asks for; first of all the program of the untuned task, which tuning must not lose to."""
        if self.records:
            return self.strategy.ask(n)
        if not self.strategy.uses_scores:
            return self.strategy.ask(n) or self._untuned()
        return [*self._untuned(), *self.strategy.ask(n - 1)]

    @cached_property
    def untuned(self) -> Untuned:
        """What is the best before anything is measured."""
        return search_untuned(self.sketches)

    def _untuned(self) -> list[Candidate]:
        """The program of the untuned task; one that no sketch has, for want of legal rows, is a sketch of its own."""
        untuned = self.untuned.trace
        candidate = candidate_of(untuned, self.sketches)
        if candidate is None:
            alone = Sketch(self.task, untuned.steps, self.options, "plain")
            self.sketches.append(alone)
            self.strategy.add(alone)
            candidate = Candidate(alone, ())
        return self.strategy.take_new([candidate], 1)

    def compare_finalists(
        self, measurer: Measurer, log: RecordLog | None, max_finalists: int = NUM_FINALISTS, turns: int = FINAL_TURNS
    ) -> Record:
        """The best of the fastest programs, which are measured once more against each other and the first one.

        What its record says is measured apart from what chose it.
        """
        first = next((record for record in self.records if record.latency_s is not None), None)
        if first is None:
            raise NoValidCandidateError(nothing_valid(self.records))
        ran = sorted((record for record in self.records if record.latency_s is not None), key=attrgetter("rank_s"))
        others = [record.trace for record in ran if record is not first][: max_finalists - 1]
        measurer.turn_to(self.task)
        if len(others) >= NUM_LAST_FINALISTS:
            qualified = fastest_first(measurer.compare(others, QUALIFYING_TURNS))
            others = [others[position] for position in qualified[: NUM_LAST_FINALISTS - 1]]
        finalists = [first.trace, *others]
        finals = map(final_of, measurer.compare(finalists, turns))
        again = [
            self._record(trace, final.measurement, final.compared_s)
            for trace, final in zip(finalists, finals, strict=True)
        ]
        if log is not None:
            log.extend(again, self.task)
        best = min(again, key=attrgetter("rank_s"))
        return best if best.latency_s is not None else ran[0]

    @property
    def key(self) -> Key:
        return Key(self.task.hash, str(self.target), self.threads)

    @property
    def estimated_latency_s(self) -> float:
        """What the analytical model expects, before anything is measured."""
        return self.untuned.estimate_s

    @property
    def best_latency_s(self) -> float | None:
        """Of the fastest program so far; None until one ran."""
        best = min(self.records, key=attrgetter("rank_s"), default=None)
        return None if best is None else best.latency_s

    def _is_over(self, budget_s: float | None) -> bool:
        return budget_s is not None and time.monotonic() - self.started_s >= budget_s

    def _learn(self, candidates: Sequence[Candidate], records: Sequence[Record]) -> None:
        if candidates:
            latencies_s = [record.latency_s for record in records]
            self.strategy.tell(candidates, latencies_s)
            if self.strategy.uses_scores:
                self.scoring.learn(candidates, latencies_s)

    def _record(self, trace: Trace, measurement: Measurement, compared_s: float | None = None) -> Record:
        return Record(
            task=self.task.hash,
            workload=self.workload,
            target=str(self.target),
            threads=self.threads,
            trace=trace,
            status=measurement.status,
            latency_s=measurement.latency_s,
            runs_s=measurement.runs_s,
            error=measurement.error,
            build_s=measurement.build_s,
            time=time.time(),
            names=names_of(self.task),
            compared_s=compared_s,
        )

    def _progress(self, last: Measurement | None, trials: int) -> Progress:
        return Progress(
            self.task,
            len(self.records),
            trials,
            time.monotonic() - self.started_s,
            last,
            self.best_latency_s,
            dict(Counter(record.status for record in self.records)),
        )


def nothing_valid(records: Sequence[Record]) -> str:
    counts = Counter(record.status for record in records)
    listing = ", ".join(f"{status} {count}" for status, count in counts.most_common()) or "no trial was made"
    message = f"none of {len(records)} candidates is valid ({listing})"
    first = next((record.error for record in records if record.error), "")
    return f"{message}; the first error in full:\n{first}" if first else f"{message}; allow more trials or time"
