"""Runs one case and says what it gave."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median

from benchmarks.contest import Case, LimitCase, RatioCase
from benchmarks.timing import Plan
from tilewright.peers import OPENBLAS_SETTLE_S, OPENMP_SETTLE_S, library_threads, take_turns


@dataclass(frozen=True, slots=True)
class RatioResult:
    """Speeds in `unit`; `ratio` is ours to the fastest peer's."""

    name: str
    threads: int
    unit: str
    ours: float
    ours_best: float
    peer: str
    peer_speed: float
    peer_best: float
    ratio: float
    required: float

    @property
    def passed(self) -> bool:
        return self.ratio >= self.required


@dataclass(frozen=True, slots=True)
class LimitResult:
    """The median and the best of a time in `unit`."""

    name: str
    threads: int
    unit: str
    ours: float
    ours_best: float
    limit: float

    @property
    def passed(self) -> bool:
        return self.ours <= self.limit


@dataclass(frozen=True, slots=True)
class NotRun:
    """A case that this machine cannot measure."""

    name: str
    threads: int
    reason: str


Result = RatioResult | LimitResult | NotRun


def run_case(case: Case, plan: Plan) -> Result:
    """Measure one case, after checking what its kernel computes."""
    reason = _hindrance(case)
    if reason:
        return NotRun(case.name, case.threads, reason)
    if isinstance(case, LimitCase):
        values = case.measure(plan)
        return LimitResult(case.name, case.threads, case.unit, median(values), min(values), case.limit)
    with library_threads(case.threads, ["numpy", "torch"] if case.needs_torch else ["numpy"]):
        return _run_ratio_case(case, plan)


def _run_ratio_case(case: RatioCase, plan: Plan) -> RatioResult:
    contest = case.prepare(case.threads)
    contest.check(case.name)
    calls = {"ours": contest.ours.call} | {name: run.call for name, run in contest.peers.items()}
    timings = take_turns(calls, plan.rounds, _settle_s(case))
    ours = timings.pop("ours")
    fastest = max(timings, key=lambda name: contest.peers[name].work / timings[name].median_s)
    peer, peer_work = timings[fastest], contest.peers[fastest].work
    ratios = [
        (contest.ours.work / ours_s) / (peer_work / peer_s)
        for ours_s, peer_s in zip(ours.samples_s, peer.samples_s, strict=True)
    ]
    return RatioResult(
        name=case.name,
        threads=case.threads,
        unit=case.unit,
        ours=contest.ours.work / ours.median_s / 1e9,
        ours_best=contest.ours.work / ours.best_s / 1e9,
        peer=fastest,
        peer_speed=peer_work / peer.median_s / 1e9,
        peer_best=peer_work / peer.best_s / 1e9,
        ratio=median(ratios),
        required=case.required,
    )


def _settle_s(case: RatioCase) -> float:
    if case.settle_s is not None:
        return case.settle_s
    if case.threads == 1:
        return 0.0
    return OPENMP_SETTLE_S if case.needs_torch else OPENBLAS_SETTLE_S


def _hindrance(case: Case) -> str:
    num_cores = len(os.sched_getaffinity(0))
    if case.threads > num_cores:
        return f"needs {case.threads} cores, this machine has {num_cores}"
    if isinstance(case, RatioCase) and case.needs_torch and find_spec("torch") is None:
        return "needs torch; `make bench` installs it"
    return ""
