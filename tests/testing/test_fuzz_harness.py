"""What the harness of the fuzzers does with cases that crash, hang, take all memory or raise."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tilewright.errors import ExpressionError
from tilewright.te import placeholder
from tilewright.testing.fuzz import harness
from tilewright.testing.fuzz.harness import Limits, Tally


@dataclass(frozen=True, slots=True)
class Subject:
    """Even seeds pass; one odd seed fails as `how` says."""

    how: str

    def run(self, seed: int) -> str:
        if seed != 3:
            return f"even {seed % 2 == 0}"
        if self.how == "crash":
            ctypes.string_at(0)
        if self.how == "hang":
            time.sleep(600)
        if self.how == "memory":
            bytearray(2**33)
        placeholder((-1,))
        return "not reached"

    def content(self, seed: int) -> tuple[str, bytes]:
        return ".bin", bytes([seed])


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ("crash", "crash", "exit code -11\nFatal Python error: Segmentation fault"),
        ("hang", "hang", "no answer for 2 s\nFatal Python error: Aborted"),
        ("memory", "MemoryError", "bytearray(2**33)"),
        ("raise", ExpressionError.__name__, "placeholder((-1,))"),
    ],
)
@pytest.mark.parametrize("num_jobs", [1, 2])
def test_failure_costs_one_case_and_says_where(how: str, kind: str, text: str, num_jobs: int) -> None:
    limits = Limits(60, num_cases=6, num_jobs=num_jobs, timeout_s=2, memory_bytes=2**32)
    tally = harness.run(Subject(how), 0, limits)
    (failure,) = tally.failures
    assert (failure.seed, failure.kind) == (3, kind)
    assert text in failure.text
    assert tally.labels == {"even True": 3, "even False": 2}


def test_place_is_the_innermost_line_outside_testing() -> None:
    (failure,) = harness.run(Subject("raise"), 3, Limits(60, num_cases=1)).failures
    assert failure.place.startswith("te/")


def test_worker_is_replaced_after_some_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "CASES_A_PROCESS", 2)
    tally = harness.run(Subject("raise"), 4, Limits(60, num_cases=5))
    assert tally.num_cases == 5


def test_files_of_failures_are_kept(tmp_path: Path) -> None:
    subject = Subject("raise")
    (failure,) = harness.run(subject, 2, Limits(60, num_cases=2)).failures
    harness.keep(subject, failure, tmp_path)
    assert (tmp_path / "3.bin").read_bytes() == bytes([3])
    assert "placeholder((-1,))" in (tmp_path / "3.txt").read_text()


def test_failures_at_one_place_are_one_group() -> None:
    failures = [harness.Failure(seed, "KeyError", "te/a.py:1 f", f"text {seed}") for seed in range(5)]
    other = harness.Failure(9, "KeyError", "te/b.py:1 f", "other")
    tally = Tally(failures=[other, *failures])
    assert [len(group) for group in tally.groups().values()] == [5, 1]
    described = harness.describe(tally, "kind", lambda seed: f"replay {seed}")
    assert "5  FAILED: KeyError at te/a.py:1 f; seeds 0, 1, 2" in described
    assert "seed 9: other\nreplay with: replay 9" in described


def test_first_failure_ends_the_run_if_asked() -> None:
    tally = harness.run(Subject("raise"), 3, Limits(60, num_cases=1000, is_first_failure_last=True))
    assert tally.num_cases < 1000


def test_failures_are_told_as_they_happen() -> None:
    told: list[harness.Failure] = []
    tally = harness.run(Subject("raise"), 0, Limits(60, num_cases=5), on_failure=told.append)
    assert told == tally.failures
    assert len(told) == 1
