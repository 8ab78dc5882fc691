"""How a case is run: checked first, measured against the fastest peer, left out where it cannot be measured."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.contest import Contest, LimitCase, RatioCase, Run, WrongResultError
from benchmarks.machine import describe_machine
from benchmarks.results import LimitResult, NotRun, RatioResult, run_case
from benchmarks.timing import Plan

PLAN = Plan(rounds=3, builds=3)


def ratio_case(computed: float, threads: int = 1) -> RatioCase:
    """A kernel that should compute 1.0 in 1 ms; one peer does as much work in 2 ms, the other twice in 2 ms."""
    out = np.zeros(1, np.float32)

    def kernel() -> None:
        time.sleep(0.001)
        out[0] = computed

    peers = {"slow": Run(lambda: time.sleep(0.002), 1e6), "fast": Run(lambda: time.sleep(0.002), 2e6)}
    contest = Contest(Run(kernel, 1e6), peers, out, np.ones(1, np.float32))
    return RatioCase("case", threads, 0.5, "GFLOP/s", lambda _: contest)


def test_ratio_is_of_work_per_time_against_the_fastest_peer() -> None:
    result = run_case(ratio_case(computed=1.0), PLAN)
    assert isinstance(result, RatioResult)
    assert result.peer == "fast"
    assert result.passed


@pytest.mark.parametrize("computed", [1.01, float("nan")])
def test_a_wrong_result_stops_the_run(computed: float) -> None:
    with pytest.raises(WrongResultError, match="case: the kernel's largest error"):
        run_case(ratio_case(computed), PLAN)


def test_more_threads_than_cores_are_not_measured() -> None:
    result = run_case(ratio_case(computed=1.0, threads=10**6), PLAN)
    assert isinstance(result, NotRun)
    assert result.reason.startswith("needs 1000000 cores")


@pytest.mark.parametrize(("limit", "passed"), [(2.0, True), (1.9, False)])
def test_a_limit_holds_for_the_median(limit: float, passed: bool) -> None:
    result = run_case(LimitCase("case", 1, limit, "ms", lambda _: [9.0, 1.0, 2.0]), PLAN)
    assert isinstance(result, LimitResult)
    assert (result.ours, result.ours_best, result.passed) == (2.0, 1.0, passed)


def test_machine_description_names_the_versions() -> None:
    machine = describe_machine()
    assert machine["numpy"] == np.__version__
    assert machine["llvm"].split(".")[0].isdigit()
