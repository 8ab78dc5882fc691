"""The searches of `benchmarks.autotvm`, each with a record file of its own, and what is found next to a reference."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from pathlib import Path

from benchmarks.autotvm_cases import BOTH, HISTORY, RANDOM, TEMPLATE, Case, Method, Table
from benchmarks.autotvm_outcomes import Outcome, OutcomeFile
from benchmarks.sample_efficiency import compare
from benchmarks.tuned import best_so_far_s, file_name, task_of
from tilewright.measure import Measurer
from tilewright.records import RecordLog
from tilewright.space import Template, register_template, unregister_template
from tilewright.target import Target
from tilewright.tuning.prior import Prior, read_prior
from tilewright.tuning.tuner import TuneResult, tune


@dataclass(frozen=True, slots=True)
class Laboratory:
    """Where records are kept, and how much is measured."""

    records: Path
    outcomes: OutcomeFile
    trials: int
    random_trials: int
    num_random_seeds: int
    """Searches with more seeds are compared with these random ones, in turn."""
    threads: int
    rounds: int
    measurer: Measurer

    def outcome(self, table: Table, case: Case, method: Method, seed: int) -> Outcome:
        """What was kept of a search and its comparison, or else both are made now."""
        return self.kept(table, case, method, seed) or self._compared(table, case, method, seed)

    def _compared(self, table: Table, case: Case, method: Method, seed: int) -> Outcome:
        reference = self.searched(table, case, table.reference, seed)
        found = self.searched(table, case, method, seed)
        turns = compare(seed, reference, found, self.rounds)
        # Timed next to itself, the best program may seem slower than itself.
        surely_after = len(found.records) if method == table.reference else None
        gflops = tuple(found.task.flop / latency_s / 1e9 for latency_s in best_so_far_s(found))
        made = Outcome(case.name, method.name, seed, gflops, turns.ratio, turns.reached_after or surely_after)
        return self.outcomes.add(self._key(table, case, method, seed), made)

    def kept(self, table: Table, case: Case, method: Method, seed: int) -> Outcome | None:
        """What was found before; None where nothing was."""
        found = self.outcomes.find(self._key(table, case, method, seed))
        return None if found is None else replace(found, method=method.name)

    def seeds_of(self, method: Method, num_seeds: int) -> range:
        """The seeds of a method: random searches may be fewer."""
        return range(min(num_seeds, self.num_random_seeds) if method.search == RANDOM.search else num_seeds)

    def _key(self, table: Table, case: Case, method: Method, seed: int) -> str:
        reference = f"{table.reference.key}-{self.num_trials(table, table.reference)}"
        own = f"{method.key}-{self.num_trials(table, method)}"
        return f"{case.name}-{own}-by-{reference}-{self._suffix(seed)}"

    def records_of(self, case: Case, method: Method, seed: int) -> Path:
        """The record file of a search, whichever table asks for it."""
        return self.records / file_name(f"{case.name}-{method.key}-{self._suffix(seed)}")

    def _suffix(self, seed: int) -> str:
        return f"{self.threads}t-{seed}"

    def num_trials(self, table: Table, method: Method) -> int:
        if method.search == "random":
            return self.random_trials
        if method == table.reference and table.reference_trials is not None:
            return max(self.trials, table.reference_trials)
        return self.trials

    def searched(self, table: Table, case: Case, method: Method, seed: int) -> TuneResult:
        """One search; what its records hold of it is not measured again."""
        if method.search == RANDOM.search:
            seed %= self.num_random_seeds
        path, trials = self.records_of(case, method, seed), self.num_trials(table, method)
        path.parent.mkdir(parents=True, exist_ok=True)
        before = recorded(case, path, trials, self.threads)
        if before is not None:
            return before
        prior = self._history(table, seed) if method.knows_history else None
        print(f"{case.name}, seed {seed}: {trials} trials, {method.name}", file=sys.stderr, flush=True)
        with registered([case.template] if method.space == BOTH else []):
            result = tune(
                task_of(case.workload),
                trials=trials,
                records=path,
                seed=seed,
                threads=self.threads,
                measurer=self.measurer,
                cost_model=method.cost_model,
                search=method.strategy,
                prior=prior,
                workload=case.workload,
                template=case.template if method.space == TEMPLATE else None,
            )
        return recorded(case, path, trials, self.threads) or result

    def _history(self, table: Table, seed: int) -> Prior:
        """What the reference measures of other tasks."""
        for case in HISTORY:
            self.searched(table, case, table.reference, seed)
        return _read_history(tuple(str(self.records_of(case, table.reference, seed)) for case in HISTORY))


def recorded(case: Case, path: Path, trials: int, threads: int) -> TuneResult | None:
    """A search as its records have it; None where these are fewer, or the best were not compared yet."""
    target = Target.native()
    own = [r for r in RecordLog(path).read() if r.threads == threads and r.target == str(target)]
    first = [record for record in own if record.compared_s is None]
    if len(first) < trials:
        return None
    finals = [record for record in own if record.compared_s is not None and record.time >= first[-1].time]
    if len(first) == trials and not finals:
        return None
    best = min(finals if len(first) == trials else first[:trials], key=attrgetter("rank_s"))
    return TuneResult(task_of(case.workload), target, threads, best, tuple(first[:trials]), path=str(path))


@contextmanager
def registered(templates: Sequence[Template]) -> Iterator[None]:
    """Spaces have the sketches of these templates, too, whatever the task is."""
    for template in templates:
        register_template(None, template, matches=lambda task: True)
    try:
        yield
    finally:
        for template in templates:
            unregister_template(None, template)


@cache
def _read_history(paths: tuple[str, ...]) -> Prior:
    return read_prior(list(paths))
