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
from tilewright.cost_model import DEFAULT, CostModel, find
from tilewright.errors import NoValidCandidateError, TilewrightError, UsageError
from tilewright.measure import WARM, Batch, Context, Measurement, MeasureOptions, Measurer, measure_all
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
from tilewright.space import DEFAULT_RULES, Candidate, Rule, Sketch, SpaceOptions, Template, find_template, space_of
from tilewright.target import Target, checked_threads
from tilewright.te import Task
from tilewright.tuning.finals import fastest_first, final_of, is_disturbed
from tilewright.tuning.history import History, warn_of_devices
from tilewright.tuning.prior import Prior, PriorSource, read_prior
from tilewright.tuning.recorded import candidate_of
from tilewright.tuning.rounds import Round, measure_rounds, measurer_or_local
from tilewright.tuning.scoring import Scoring
from tilewright.tuning.shared import SharedTrials
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
    cost_model: CostModel | str | os.PathLike[str] = DEFAULT,
    search: str | os.PathLike[str] | SearchStrategy | type[SearchStrategy] = "evolutionary",
    prior: Prior | PriorSource | Sequence[PriorSource] | None = None,
    budget_s: float | None = None,
    workload: str = "",
    rules: Sequence[Rule] = DEFAULT_RULES,
    template: Template | str | None = None,
    exact: bool = False,
    context: Context | str = WARM,
    measure: MeasureOptions | None = None,
    measurer: Measurer | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> TuneResult:
    """Find a fast program for `task` with at most `trials` measurements.

    With `records`, every trial is appended to that file, and trials of the same task that it holds already count: a
    run that was interrupted goes on where it stopped. `cost_model` is a name ("default" is the model that
    ships; boosted-trees learns from the task alone), the path of a saved model, or a model. One that ships or was saved
    adapts to the task, and never changes. `prior` is what is known of other tasks: record files, such as
    "records/*.jsonl", a trained model, a `Dataset`, or a list of these. Trials of other tasks in `records`, on the same
    target and number of threads, are used in the same way. `search` is a name of `tilewright.search.STRATEGIES`, such
    as annealing, the path of a file, or a `SearchStrategy`. With a `template`, or where one is as "file.py:name", the
    space is that of the template alone; otherwise it is what `rules` derive, and the registered templates that match
    the task. With `exact`, no algorithm is used that rounds more than the sums of the task do, such as Winograd's.
    Constants are warm, or as cold as `context` says, such as "cold-8M": see `tilewright.measure.Context`. `measure` has
    the options of measuring on this machine; a `measurer` measures elsewhere.
    """
    num_trials = whole_number("trials", trials, least=1)
    log = None if records is None else RecordLog(file_path("records", records))
    first_seed = whole_number("seed", seed, least=0)
    limit_s = None if budget_s is None else seconds("budget_s", budget_s)
    chosen_target, num_threads = Target.of(target), checked_threads(threads)
    known = None if prior is None else read_prior(prior, leave_out=records)
    if known is not None:
        warn_of_devices(known, chosen_target, num_threads)
    model = find(cost_model, first_seed)
    tuner = Tuner(
        task,
        chosen_target,
        num_threads,
        seed=first_seed,
        cost_model=model,
        history=History(model, known, first_seed),
        search=search,
        rules=[instance("a rule", rule, Rule) for rule in instance("rules", rules, Sequence)],
        template=template,
        exact=instance("exact", exact, bool),
        workload=instance("workload", workload, str),
        context=Context.of(context),
    )
    options = None if measure is None else instance("measure", measure, MeasureOptions)
    report = (lambda _: None) if on_progress is None else function("on_progress", on_progress)
    with measurer_or_local(measurer, options, tuner.target, tuner.threads, first_seed) as chosen:
        return tuner.run(num_trials, log, limit_s, chosen, report)


class Tuner:
    """One task as far as it is tuned. `run` tunes it alone; a task scheduler asks for `round` as often as it pays."""

    def __init__(
        self,
        task: Task,
        target: Target,
        threads: int,
        *,
        seed: int = 0,
        cost_model: CostModel | str | os.PathLike[str] = DEFAULT,
        history: History | None = None,
        search: str | os.PathLike[str] | SearchStrategy | type[SearchStrategy] = "evolutionary",
        rules: Sequence[Rule] = DEFAULT_RULES,
        template: Template | str | None = None,
        exact: bool = False,
        workload: str = "",
        context: Context = WARM,
        shared: SharedTrials | None = None,
    ) -> None:
        if not isinstance(task, Task):
            raise UsageError(f"tuning takes a tw.Task(inputs, outputs), got {type(task).__name__}: {task}")
        self.task = task
        self.target = target
        self.threads = threads
        self.workload = workload
        self.context = context.of_task(task)
        self.options = SpaceOptions(target, threads, exact=exact)
        self.template = None if template is None else find_template(template)
        self.sketches = self._space(rules)
        self.scoring = Scoring(find(cost_model, seed), str(self.context))
        if shared is not None:
            self.scoring.share(shared, task.hash, f"{threads} threads of {target}")
        self._history = history
        if history is not None:
            history.follow(self.scoring)
        self.strategy = find_strategy(search).begin(self.sketches, self.scoring.scores, target, seed)
        self.records: list[Record] = []
        self._num_open = 0  # trials that are under way
        self.started_s = time.monotonic()

    def _space(self, rules: Sequence[Rule]) -> list[Sketch]:
        if self.template is None:
            return space_of(self.task, self.options, rules)
        if list(rules) != list(DEFAULT_RULES):
            raise UsageError("rules derive a space, and template= is a space already; give one of both")
        return self.template.sketches(self.task, self.options)

    def run(
        self,
        trials: int,
        log: RecordLog | None,
        budget_s: float | None,
        measurer: Measurer,
        on_progress: Callable[[Progress], None],
    ) -> TuneResult:
        if log is not None:
            records = log.read()
            if self._history is not None:
                self._history.read(log, records, self.target, self.threads, {self.task.hash}, trials)
            self.resume(records)

        def next_round() -> Round | None:
            num_trials = min(ROUND_SIZE, trials - self.num_asked)
            if self._is_over(budget_s):
                num_trials = min(num_trials, 1 - self.num_asked)  # the shortest time is enough for the first program
            if num_trials < 1:
                return None
            return self.round(num_trials, log, lambda last: on_progress(self._progress(last, trials)))

        measure_rounds(measurer, next_round)
        best = self.compare_finalists(measurer, log)
        elapsed_s = time.monotonic() - self.started_s
        path = None if log is None else str(log.path)
        return TuneResult(self.task, self.target, self.threads, best, tuple(self.records), elapsed_s, path)

    def resume(self, records: Iterable[Record]) -> None:
        """Take up those of the records that have this key, and may be used: they count as trials."""
        self._take_up_history()
        mine = latest(in_names_of(self.task, group_by_task(for_target(records, self.target)).get(self.key, [])))
        mine = [record for record in mine if record.trace.is_exact or not self.options.exact]
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
        latencies_s = [record.latency_s for record, _ in found]
        self._learn([candidate for _, candidate in found], latencies_s, [record.runs_s for record, _ in found])

    def _take_up_history(self) -> None:
        """Before anything is measured, or known to be: score by what other tasks have taught by now."""
        known = self._history.model() if self._history is not None and self.strategy.uses_scores else None
        if known is not None:
            self.scoring.begin_with(known)

    def _why_not(self, record: Record) -> TilewrightError | None:
        """Why the program of a record, which is none of the space, does not apply to the task."""
        try:
            applicable(self.task, record)
        except TilewrightError as error:
            return error
        return None

    def round(
        self, num_trials: int, log: RecordLog | None, on_trial: Callable[[Measurement], None] = lambda _: None
    ) -> Round | None:
        """The programs to measure next, from which it learns when all of them are told; None if the space is exhausted.

        `on_trial` is called as soon as a trial is in the records and in the log. Several rounds may be under way.
        """
        candidates = self._candidates(num_trials)
        if not candidates:
            return None
        self._num_open += len(candidates)
        batch = self._batch([candidate.trace for candidate in candidates])

        def take(index: int, measurement: Measurement) -> None:
            record = self._record(batch.traces[index], measurement)
            self._num_open -= 1
            self.records.append(record)
            if log is not None:
                log.append(record, self.task)
            on_trial(measurement)

        def finish(measurements: Sequence[Measurement]) -> None:
            latencies_s = [measurement.latency_s for measurement in measurements]
            self._learn(candidates, latencies_s, [measurement.runs_s for measurement in measurements])

        return Round(batch, take, finish)

    @property
    def num_asked(self) -> int:
        """Its trials, with those that are under way."""
        return len(self.records) + self._num_open

    def _batch(self, traces: Sequence[Trace], turns: int | None = None) -> Batch:
        best_latency_s = self.best_latency_s if turns is None else None
        return Batch(self.task, tuple(traces), self.context, best_latency_s, turns)

    def _candidates(self, n: int) -> list[Candidate]:
        """What the strategy asks for; first of all the program of the untuned task, which tuning must not lose to."""
        if self.num_asked:
            self.scoring.catch_up()
            return self.strategy.ask(n)
        self._take_up_history()
        self.scoring.catch_up()
        if not self.strategy.uses_scores:
            return self.strategy.ask(n) or self._untuned()
        first = self._untuned()
        return first if len(first) == n else [*first, *self.strategy.ask(n - len(first))]

    @cached_property
    def untuned(self) -> Untuned:
        """What is the best before anything is measured, by a model that has learned, or else by the analytical one."""
        return search_untuned(self.sketches, model=self.scoring.drafting)

    def _untuned(self) -> list[Candidate]:
        """The program of the untuned task; one that no sketch has, for want of legal rows, is a sketch of its own.

        But a template is all that is searched.
        """
        untuned = self.untuned.trace
        candidate = candidate_of(untuned, self.sketches)
        if candidate is None:
            if self.template is not None:
                return []
            alone = Sketch(self.task, untuned.steps, self.options, "plain")
            self.sketches.append(alone)
            self.strategy.add(alone)
            candidate = Candidate(alone, ())
        return self.strategy.take_new([candidate], 1)

    def compare_finalists(self, measurer: Measurer, log: RecordLog | None) -> Record:
        """The best of the fastest programs; those that are the fastest in a few turns are compared in many."""
        others = self._finalists(NUM_FINALISTS)[1:]
        if len(others) >= NUM_LAST_FINALISTS:
            qualified = fastest_first(measure_all(measurer, self._batch(others, QUALIFYING_TURNS)))
            others = [others[position] for position in qualified[: NUM_LAST_FINALISTS - 1]]
        best: list[Record] = []

        def next_final() -> Round | None:
            if best and (len(best) > 1 or not is_disturbed(best[0], self.records)):
                return None
            return self._final([*self._finalists(1), *others], FINAL_TURNS, log, best.append)

        measure_rounds(measurer, next_final)
        return best[-1]

    def final_round(
        self, max_finalists: int, turns: int, log: RecordLog | None, on_best: Callable[[Record], None]
    ) -> Round | None:
        """The fastest programs, to be compared with each other; `on_best` is told which is the best."""
        return self._final(self._finalists(max_finalists), turns, log, on_best)

    def _finalists(self, number: int) -> list[Trace]:
        """The first program that ran, which tuning must not lose to, and then the fastest ones."""
        ran = [record for record in self.records if record.latency_s is not None]
        if not ran:
            raise NoValidCandidateError(nothing_valid(self.records))
        others = sorted(ran[1:], key=attrgetter("rank_s"))
        return [record.trace for record in (ran[0], *others)][:number]

    def _final(
        self, finalists: Sequence[Trace], turns: int, log: RecordLog | None, on_best: Callable[[Record], None]
    ) -> Round:
        """What the record of the best says is measured apart from what chose it."""

        def finish(measurements: Sequence[Measurement]) -> None:
            finals = map(final_of, measurements)
            again = [
                self._record(trace, final.measurement, final.compared_s)
                for trace, final in zip(finalists, finals, strict=True)
            ]
            if log is not None:
                log.extend(again, self.task)
            best = min(again, key=attrgetter("rank_s"))
            on_best(best if best.latency_s is not None else min(self.records, key=attrgetter("rank_s")))

        return Round(self._batch(finalists, turns), lambda index, measurement: None, finish)

    @property
    def key(self) -> Key:
        return Key(self.task.hash, str(self.target), self.threads, str(self.context))

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

    def _learn(
        self, candidates: Sequence[Candidate], latencies_s: Sequence[float | None], runs_s: Sequence[Sequence[float]]
    ) -> None:
        if candidates:
            self.strategy.tell(candidates, latencies_s, runs_s)
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
            context=str(self.context),
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
