"""`TaskScheduler`: shares trials and time among the tasks of one network or several."""

from __future__ import annotations

import copy
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tilewright.arguments import file_path, seconds, whole_number
from tilewright.cost_model import DEFAULT, CostModel, find
from tilewright.errors import NoValidCandidateError, UsageError
from tilewright.measure import Context, Measurement, MeasureOptions, Measurer
from tilewright.records import Key, Record, RecordLog, for_target, group_by_task
from tilewright.search import SearchStrategy, find_strategy
from tilewright.target import Target, checked_threads
from tilewright.te import Task
from tilewright.tuning.history import History, warn_of_devices
from tilewright.tuning.prior import Prior, PriorSource, read_prior
from tilewright.tuning.rounds import Round, measure_rounds, measurer_or_local
from tilewright.tuning.shared import SharedTrials
from tilewright.tuning.task_scheduler.gradient import Gradient, RoundRobin, Strategy
from tilewright.tuning.task_scheduler.jobs import Job, TaskTuner, make_jobs
from tilewright.tuning.task_scheduler.network import Network, check_names
from tilewright.tuning.task_scheduler.objectives import Objective, find_objective, slopes
from tilewright.tuning.tuner import ROUND_SIZE, Tuner, nothing_valid

STRATEGIES: dict[str, Callable[[], Strategy]] = {"gradient": Gradient, "round_robin": RoundRobin}

_TRIALS_OF_A_TASK = 64
_PATIENCE_TRIALS = 5 * ROUND_SIZE
# What is kept of the budget for the finals: a tenth, or so many seconds for each task if that is more, up to a fifth.
_FINAL_SHARE = 0.1
_FINAL_S = 0.7
_MOST_FINAL_SHARE = 0.2
# What disturbed a final is over after so many others, perhaps.
_FINALS_BETWEEN = 3


@dataclass(frozen=True, slots=True)
class NetworkProgress:
    """Where a run stands, after each measurement."""

    task: Task
    last: Measurement
    best_latency_s: float
    """Of the task."""
    latencies_s: dict[str, float]
    """Of each network, with an estimate for each task of which nothing ran yet."""
    num_unmeasured: int
    """How many such tasks there are."""
    num_tasks: int
    num_trials: int
    max_trials: int | None
    elapsed_s: float
    time_left_s: float | None
    statuses: dict[str, int]


@dataclass(frozen=True, slots=True)
class TunedTask:
    """What came of one task; `best` is None where nothing was valid, or measured at all."""

    task: Task
    best: Record | None
    latency_s: float
    num_trials: int


@dataclass(frozen=True, slots=True)
class NetworksResult:
    """What tuning found. The best programs are in the records."""

    networks: tuple[Network, ...]
    tasks: tuple[TunedTask, ...]
    latencies_s: dict[str, float]
    num_trials: int
    elapsed_s: float
    num_new_trials: int = 0
    """Those of this run alone."""

    def __repr__(self) -> str:
        networks = ", ".join(f"{name} {latency_s * 1e3:.4g} ms" for name, latency_s in self.latencies_s.items())
        return f"<NetworksResult: {networks}; {self.num_trials} trials of {len(self.tasks)} tasks>"


class TaskScheduler:
    """Tunes the tasks of networks, those first that promise most for an objective.

    `objective` is f1, f2, f3, f4 (see `objectives`) or a function of the networks' latencies; `strategy` is gradient,
    round_robin, or an object with their `choose`; `search`, `cost_model`, `prior` and `exact` are those of
    `tilewright.tune`. A task that several networks share, in the same context, is tuned once. With f4 a task ends
    after `patience_trials` without an improvement. `shared` has what schedulers of other devices measure in the same
    run. `make_tuner` makes the tuner of a task, given the task, the context and the name for its records.
    """

    def __init__(
        self,
        networks: Sequence[Network],
        *,
        objective: str | Objective = "f1",
        strategy: str | Strategy = "gradient",
        target: Target | str = "llvm -mcpu=native",
        threads: int | None = None,
        seed: int = 0,
        search: str | os.PathLike[str] | SearchStrategy | type[SearchStrategy] = "evolutionary",
        cost_model: CostModel | str | os.PathLike[str] = DEFAULT,
        prior: Prior | PriorSource | Sequence[PriorSource] | None = None,
        exact: bool = False,
        patience_trials: int = _PATIENCE_TRIALS,
        shared: SharedTrials | None = None,
        make_tuner: Callable[[Task, Context, str], TaskTuner] | None = None,
    ) -> None:
        check_names(networks)
        self.networks = tuple(networks)
        self.target = Target.of(target)
        self.threads = checked_threads(threads)
        self.seed = whole_number("seed", seed, least=0)
        whole_number("patience_trials", patience_trials, least=1)
        self.objective = find_objective(objective, self.networks)
        self.strategy = _find_strategy(strategy)
        self.patience_trials = patience_trials if objective == "f4" else np.inf
        self._search = find_strategy(search)
        self._cost_model = find(cost_model, self.seed)
        self._prior = prior
        self._history: History | None = None
        self._exact = exact
        self._shared = shared
        self._make_tuner = make_tuner or self._new_tuner

    def tune(
        self,
        trials: int | None = None,
        *,
        records: str | os.PathLike[str] | None = None,
        budget_s: float | None = None,
        measure: MeasureOptions | None = None,
        measurer: Measurer | None = None,
        on_start: Callable[[], None] = lambda: None,
        on_progress: Callable[[NetworkProgress], None] | None = None,
    ) -> NetworksResult:
        """Make `trials` trials in `budget_s` seconds; without either, 64 trials for each task.

        With `records`, every trial is appended to that file at once. Trials of the tasks that it holds already are
        not made again, whichever network they were made for; those made for these networks count among `trials`, so
        that a run that was interrupted goes on where it stopped. `measure` has the options of measuring on this
        machine; a `measurer` measures elsewhere. `on_start` is called when the first programs are about to be measured,
        or it is known that there are none.
        """
        trials = None if trials is None else whole_number("trials", trials, least=1)
        budget_s = None if budget_s is None else seconds("budget_s", budget_s)
        started_s = time.monotonic()
        log = None if records is None else RecordLog(file_path("records", records))
        self._history = self._new_history(records)
        jobs = make_jobs(self.networks, self._make_tuner)
        if not jobs:
            return NetworksResult(self.networks, (), dict.fromkeys((n.name for n in self.networks), 0.0), 0, 0.0)
        if log is not None:
            self._resume(jobs, log, trials)
        if trials is None and budget_s is None:
            trials = _TRIALS_OF_A_TASK * len(jobs)
        with measurer_or_local(measurer, measure, self.target, self.threads, self.seed) as chosen:
            run = _Run(self, jobs, log, trials, budget_s, started_s, on_start, on_progress or (lambda _: None))
            run.go(chosen)
            return run.result()

    def _new_history(self, records: str | os.PathLike[str] | None) -> History:
        known = None if self._prior is None else read_prior(self._prior, leave_out=records)
        if known is not None:
            warn_of_devices(known, self.target, self.threads)
        return History(self._cost_model, known, self.seed)

    def _new_tuner(self, task: Task, context: Context, label: str) -> TaskTuner:
        """Each task has a model of its own, which learns from its trials, over what others have taught before."""
        return Tuner(
            task,
            self.target,
            self.threads,
            seed=self.seed,
            cost_model=copy.deepcopy(self._cost_model),
            history=self._history,
            exact=self._exact,
            search=self._search,
            workload=label,
            context=context,
            shared=self._shared,
        )

    def _resume(self, jobs: Sequence[Job], log: RecordLog, trials: int | None) -> None:
        records = log.read()
        if self._history is not None:
            own = {job.task.hash for job in jobs}
            most = _TRIALS_OF_A_TASK * len(jobs) if trials is None else trials
            self._history.read(log, records, self.target, self.threads, own, most)
        by_task = group_by_task(for_target(records, self.target))
        for job in jobs:
            key = Key(job.task.hash, str(self.target), self.threads, str(job.context))
            job.resume(by_task.get(key, []))


class _Run:
    """One call of `TaskScheduler.tune`."""

    def __init__(
        self,
        scheduler: TaskScheduler,
        jobs: list[Job],
        log: RecordLog | None,
        max_trials: int | None,
        budget_s: float | None,
        started_s: float,
        on_start: Callable[[], None],
        on_progress: Callable[[NetworkProgress], None],
    ) -> None:
        self.scheduler = scheduler
        self.jobs = jobs
        self.log = log
        self.max_trials = max_trials
        self.budget_s = budget_s
        self.started_s = started_s
        self.on_start = on_start
        self.has_started = False
        self.on_progress = on_progress
        self.rng = np.random.default_rng(scheduler.seed)
        self.num_resumed = sum(job.num_own_trials for job in jobs)
        self.num_new = 0
        self.statuses: Counter[str] = Counter()
        self.untouched: deque[Job] = deque()  # those without a first round
        self.round_size = ROUND_SIZE if max_trials is None else min(ROUND_SIZE, max(1, max_trials // len(jobs)))

    def go(self, measurer: Measurer) -> None:
        """A first round for every task, the heaviest first; then as the strategy says; then the finals."""
        self.untouched = deque(job for job in self._by_share() if not job.num_trials)
        measure_rounds(measurer, self._next_round)
        for _ in range(2):  # the second time those that were disturbed and have not been repeated
            measure_rounds(measurer, partial(self._next_final, deque(self._by_share()), []))

    def result(self) -> NetworksResult:
        if not any(job.best for job in self.jobs):
            raise NoValidCandidateError(nothing_valid([r for job in self.jobs for r in job.tuner.records]))
        tasks = tuple(TunedTask(job.task, job.best, job.latency_s, job.num_trials) for job in self.jobs)
        names = (network.name for network in self.scheduler.networks)
        latencies_s = dict(zip(names, self.latencies_s, strict=True))
        return NetworksResult(
            self.scheduler.networks, tasks, latencies_s, self.num_trials, self.elapsed_s, self.num_new
        )

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s

    @property
    def num_trials(self) -> int:
        return self.num_resumed + self.num_new

    @property
    def latencies_s(self) -> list[float]:
        """Of each network."""
        total = np.zeros(len(self.scheduler.networks))
        for job in self.jobs:
            total += job.weights * job.latency_s
        return [float(latency_s) for latency_s in total]

    def _by_share(self) -> list[Job]:
        """The tasks, first those that take most of the networks' time."""
        return sorted(self.jobs, key=lambda job: float(job.weights.sum()) * job.latency_s, reverse=True)

    def _next_round(self) -> Round | None:
        """The next trials of some task; None where no task has any, or the run has made enough."""
        found = self._found_round()
        if not self.has_started:
            self.has_started = True
            self.on_start()
        return found

    def _found_round(self) -> Round | None:
        while not self._is_over() and (job := self._choose()) is not None:
            num_trials = 1 if self._is_late() else self._num_to_ask()
            found = job.round(num_trials, self.log, partial(self._take, job))
            if found is not None:
                return found
        return None

    def _next_final(self, waiting: deque[Job], done: list[Job]) -> Round | None:
        """The heaviest first; one that was disturbed again after a few others, before the lighter ones."""
        while self.budget_s is None or self.elapsed_s < self.budget_s:
            again = next((job for job in done[:-_FINALS_BETWEEN] if job.needs_final), None)
            if again is None and not waiting:
                return None
            job = again or waiting.popleft()
            done.append(job)
            found = job.final_round(self.log)
            if found is not None:
                return found
        return None

    def _is_over(self) -> bool:
        """Enough trials, or enough time; the shortest time is enough for the first program."""
        if self._num_to_ask() < 1:
            return True
        has_begun = self.num_trials > 0 or any(job.num_open for job in self.jobs)
        return has_begun and self._is_late()

    def _is_late(self) -> bool:
        return self.budget_s is not None and self.elapsed_s >= self.budget_s - self._finals_s(self.budget_s)

    def _finals_s(self, budget_s: float) -> float:
        """The seconds of the budget that are kept for the finals."""
        return min(max(_FINAL_SHARE * budget_s, _FINAL_S * len(self.jobs)), _MOST_FINAL_SHARE * budget_s)

    def _num_to_ask(self) -> int:
        """How many trials the next round may have."""
        if self.max_trials is None:
            return self.round_size
        num_open = sum(job.num_open for job in self.jobs)
        return min(self.round_size, self.max_trials - self.num_trials - num_open)

    def _choose(self) -> Job | None:
        """The task of the next round: one that has none under way, unless all have that could get one."""
        if self.untouched:
            return self.untouched.popleft()
        falls = slopes(self.scheduler.objective, self.latencies_s)
        standings = [job.standing(falls, self.round_size, self.scheduler.patience_trials) for job in self.jobs]
        idle = [replace(s, is_open=s.is_open and not job.num_open) for s, job in zip(standings, self.jobs, strict=True)]
        is_any_idle = any(standing.is_open for standing in idle)
        chosen = self.scheduler.strategy.choose(idle if is_any_idle else standings, self.rng)
        return None if chosen is None else self.jobs[chosen]

    def _take(self, job: Job, measurement: Measurement) -> None:
        self.num_new += 1
        self.statuses[measurement.status] += 1
        self.on_progress(self._progress(job, measurement))

    def _progress(self, job: Job, last: Measurement) -> NetworkProgress:
        names = (network.name for network in self.scheduler.networks)
        return NetworkProgress(
            task=job.task,
            last=last,
            best_latency_s=job.latency_s,
            latencies_s=dict(zip(names, self.latencies_s, strict=True)),
            num_unmeasured=sum(job.best is None for job in self.jobs),
            num_tasks=len(self.jobs),
            num_trials=self.num_trials,
            max_trials=self.max_trials,
            elapsed_s=self.elapsed_s,
            time_left_s=self._time_left_s(),
            statuses=dict(self.statuses),
        )

    def _time_left_s(self) -> float | None:
        left_s = [] if self.budget_s is None else [max(0.0, self.budget_s - self.elapsed_s)]
        if self.max_trials is not None and self.num_new:
            left_s.append(self.elapsed_s / self.num_new * (self.max_trials - self.num_trials))
        return min(left_s, default=None)


def _find_strategy(strategy: str | Strategy) -> Strategy:
    if not isinstance(strategy, str):
        return strategy
    if strategy not in STRATEGIES:
        raise UsageError(f"unknown scheduling strategy {strategy!r}; use one of: {', '.join(STRATEGIES)}")
    return STRATEGIES[strategy]()
