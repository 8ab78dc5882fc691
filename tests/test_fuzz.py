"""Random legal schedules of random programs equal NumPy. `TILEWRIGHT_FUZZ_SEED` varies the seed.

Each family of programs runs in processes of its own, so that a crash of generated code is a failed test.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tilewright.testing.programs import FAMILIES

SEED = int(os.environ.get("TILEWRIGHT_FUZZ_SEED", "20250"))
CASES_PER_FAMILY = 6
SCHEDULES_PER_CASE = 4


def _fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilewright.testing.fuzz", "schedules", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize("family", FAMILIES)
def test_random_schedules_equal_numpy(family: str) -> None:
    print(f"seed {SEED}")
    result = _fuzz("--program", family, "--seed", str(SEED), "--cases", str(CASES_PER_FAMILY), "--seconds", "500")
    assert result.returncode == 0, f"seed {SEED}\n{result.stdout}\n{result.stderr}"
    assert f"{CASES_PER_FAMILY}  all {SCHEDULES_PER_CASE} schedules equal NumPy" in result.stdout


def test_enough_schedules_and_families() -> None:
    assert len(FAMILIES) >= 14
    assert len(FAMILIES) * CASES_PER_FAMILY * SCHEDULES_PER_CASE >= 300


def test_seed_is_printed_first_and_progress_counts() -> None:
    result = _fuzz("--program", "scalar", "--cases", "2", "--seconds", "60")
    first, *_, last = result.stderr.splitlines()
    assert re.fullmatch(r"seed \d+", first)
    assert re.fullmatch(r"schedules +\d+\.\d s  2 cases: all 4 schedules equal NumPy 2", last)


def test_result_is_printed_as_json() -> None:
    result = _fuzz("--program", "scalar", "--cases", "2", "--seed", "5", "--format", "json")
    assert json.loads(result.stdout) == {
        "kind": "schedules",
        "seed": 5,
        "cases": 2,
        "labels": {"all 4 schedules equal NumPy": 2},
        "failures": [],
    }


def test_unknown_program_is_wrong_usage() -> None:
    result = _fuzz("--program", "nothing")
    assert result.returncode == 2
    assert "invalid choice: 'nothing'" in result.stderr
