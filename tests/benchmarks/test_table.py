"""The printed results of the benchmarks."""

from __future__ import annotations

import json

from benchmarks.results import LimitResult, NotRun, RatioResult
from benchmarks.table import all_passed, format_json, format_table

MACHINE = {"processor": "Abacus"}
FAST = RatioResult("gemm 8x8x8", 2, "GFLOP/s", 95.0, 97.0, "OpenBLAS", 100.0, 101.0, 0.95, 0.9)
SLOW = RatioResult("softmax 2x2", 1, "GB/s", 1.0, 1.1, "torch", 2.0, 2.2, 0.5, 1.0)
REGION = LimitResult("empty parallel region", 2, "us", 3.25, 3.0, 5.0)
SKIPPED = NotRun("depthwise 1x1x1", 1, "needs torch")


def table_rows(*results: RatioResult | LimitResult | NotRun) -> list[list[str]]:
    lines = format_table(MACHINE, results).splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]


def test_a_ratio_row_shows_both_speeds_and_whether_it_passed() -> None:
    assert table_rows(FAST, SLOW) == [
        ["gemm 8x8x8", "2", "95.0 GFLOP/s", "100.0 GFLOP/s OpenBLAS", "0.95", ">= 0.90", "pass"],
        ["softmax 2x2", "1", "1.0 GB/s", "2.0 GB/s torch", "0.50", ">= 1.00", "FAIL"],
    ]


def test_a_limit_row_has_no_peer() -> None:
    assert table_rows(REGION) == [["empty parallel region", "2", "3.2 us", "", "", "<= 5 us", "pass"]]


def test_a_case_that_was_not_run_says_why() -> None:
    assert table_rows(SKIPPED) == [["depthwise 1x1x1", "1", "", "", "", "", "not run: needs torch"]]


def test_json_holds_the_machine_the_method_and_every_case() -> None:
    printed = json.loads(format_json(MACHINE, [FAST, SLOW, REGION, SKIPPED]))
    assert printed["machine"] == MACHINE
    assert "median" in printed["method"]
    assert [case["status"] for case in printed["cases"]] == ["pass", "fail", "pass", "not run"]
    assert printed["cases"][0]["ratio"] == 0.95


def test_all_passed_ignores_cases_that_were_not_run() -> None:
    assert all_passed([FAST, REGION, SKIPPED])
    assert not all_passed([FAST, SLOW])
