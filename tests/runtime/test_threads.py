"""How many threads can be asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tilewright.runtime
from tilewright.errors import UsageError
from tilewright.target import MAX_THREADS, checked_threads, default_threads


@pytest.mark.parametrize("threads", [1, 2, MAX_THREADS])
def test_a_number_of_threads_comes_back(threads: int) -> None:
    assert checked_threads(threads) == threads


def test_none_is_as_many_as_there_are() -> None:
    assert checked_threads(None) == default_threads()


@pytest.mark.parametrize(
    ("threads", "shown"),
    [
        (0, "0"),
        (-1, "-1"),
        (MAX_THREADS + 1, "513"),
        (10**30, "a number of more than 64 bits"),
        pytest.param(10**5000, "a number of more than 64 bits", id="too long to print"),
        (1.0, "1.0"),
        (True, "True"),
        ("2", "'2'"),
    ],
)
def test_what_is_no_number_of_threads_is_refused(threads: object, shown: str) -> None:
    with pytest.raises(UsageError, match=f"^--threads is {re.escape(shown)}; it must be a whole number from 1 to 512$"):
        checked_threads(threads, "--threads")


def test_the_most_is_what_the_pool_has() -> None:
    header = Path(tilewright.runtime.__file__).parent / "native" / "tilewright_runtime.h"
    assert f"#define TW_MAX_THREADS {MAX_THREADS}\n" in header.read_text()
