"""How many threads to use, and what it costs to use them."""

from __future__ import annotations

import os

from tilewright.runtime._native import time_empty_regions


def default_threads() -> int:
    """The number of CPUs that this process may run on.

    >>> default_threads() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel_region_s(num_threads: int, number: int = 1000) -> float:
    """The seconds that one parallel region without any work takes, as the mean of `number` in a row.

    The caller does the share of a worker that does not join in time, so this is the price of offering work to the
    workers, not of a meeting with all of them.
    """
    return time_empty_regions(num_threads, number) / number
