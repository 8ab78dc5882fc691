"""How many threads a program may use."""

from __future__ import annotations

import os

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
    if isinstance(threads, int) and not isinstance(threads, bool) and 1 <= threads <= MAX_THREADS:
        return threads
    is_long = isinstance(threads, int) and threads.bit_length() > 64
    given = "a number of more than 64 bits" if is_long else repr(threads)
    raise UsageError(f"{name} is {given}; it must be a whole number from 1 to {MAX_THREADS}")
