"""How many threads a program may use."""

from __future__ import annotations

import operator
import os
from typing import SupportsIndex

from tilewright.errors import UsageError

MAX_THREADS = 512
"""The most that the pool has: TW_MAX_THREADS of native/tilewright_runtime.h."""


def default_threads() -> int:
    """The number of CPUs that this process may run on.

    >>> default_threads() >= 1
    True
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    return min(len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1, MAX_THREADS)


def checked_threads(threads: object, name: str = "threads") -> int:
    """The number of threads that somebody asks for, by an option of that name; None asks for the default.

    >>> checked_threads(4)
    4
    """
    if threads is None:
        return default_threads()
    number = operator.index(threads) if isinstance(threads, SupportsIndex) and not isinstance(threads, bool) else 0
    if 1 <= number <= MAX_THREADS:
        return number
    given = "a number of more than 64 bits" if number.bit_length() > 64 else repr(threads)
    raise UsageError(f"{name} is {given}; it must be a whole number from 1 to {MAX_THREADS}")
