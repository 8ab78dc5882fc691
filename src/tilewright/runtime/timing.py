"""Measuring how long a call takes: repeated until the clock can be trusted, several calls compared in turns."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilewright.runtime._native import time_empty_regions
from tilewright.runtime.nearness import Nearness
from tilewright.target import checked_threads

# The number of calls grows at most by this factor between two trials, since the first call is often a slow one.
_MAX_GROWTH = 20
# Aimed above the minimum, so that a trial seldom falls just short of it.
_MARGIN = 1.2


@dataclass(frozen=True, slots=True)
class Timing:
    """Repeated measurements of one call: in each repeat it ran `number` times.

    >>> t = Timing(number=10, samples_s=(3e-6, 1e-6, 2e-6))
    >>> t.best_s, t.median_s, t.repeats
    (1e-06, 2e-06, 3)
    """

    number: int
    samples_s: tuple[float, ...]  # seconds a call, one sample a repeat

    @property
    def best_s(self) -> float:
        return min(self.samples_s)

    @property
    def median_s(self) -> float:
        return statistics.median(self.samples_s)

    @property
    def repeats(self) -> int:
        return len(self.samples_s)


def measure(call: Callable[[], object], *, repeats: int = 7, min_repeat_ms: float = 20.0) -> Timing:
    """Time a Python callable, such as `lambda: kernel(a, b, out=c)`.

    Each repeat runs the call as often as it takes to last `min_repeat_ms`; finding that out warms up the caches.
    """
    return measure_loop(_loop_of(call), repeats=repeats, min_repeat_ms=min_repeat_ms)


def measure_loop(loop: Callable[[int], float], *, repeats: int = 7, min_repeat_ms: float = 20.0) -> Timing:
    """Time something that loops by itself: `loop(number)` runs it so often and returns the seconds of all runs.

    `Kernel.time` is such a loop, without the cost of a Python call for each run:
    `measure_loop(lambda number: kernel.time(a, b, out=c, number=number))`.
    """
    number = _calibrate(loop, min_repeat_ms)
    return Timing(number, tuple(loop(number) / number for _ in range(repeats)))


def interleave(
    functions: Mapping[str, Callable[[], object]], *, rounds: int = 7, min_repeat_ms: float = 20.0
) -> dict[str, Timing]:
    """Time several callables in turns, one repeat of each a round, so that a change of the machine's speed hits all.

    No turn begins while the cores of the machine are apart (`Nearness`).

    >>> calls = {"sum": lambda: sum(range(100)), "max": lambda: max(range(100))}
    >>> timings = interleave(calls, rounds=3, min_repeat_ms=0.1)
    >>> list(timings), timings["sum"].repeats
    (['sum', 'max'], 3)
    """
    numbers = {name: _calibrate(_loop_of(call), min_repeat_ms) for name, call in functions.items()}
    samples_s: dict[str, list[float]] = {name: [] for name in functions}
    nearness = Nearness(checked_threads(None))
    for _ in range(rounds):
        for name, call in functions.items():
            if nearness.rest():
                call()  # other cores have other caches
            samples_s[name].append(_run(call, numbers[name]) / numbers[name])
    return {name: Timing(numbers[name], tuple(samples_s[name])) for name in functions}


def _loop_of(call: Callable[[], object]) -> Callable[[int], float]:
    return lambda number: _run(call, number)


def _run(call: Callable[[], object], number: int) -> float:
    start_s = time.perf_counter()
    for _ in range(number):
        call()
    return time.perf_counter() - start_s


def _calibrate(loop: Callable[[int], float], min_repeat_ms: float) -> int:
    """How many runs last at least `min_repeat_ms`."""
    min_repeat_s = min_repeat_ms * 1e-3
    number = 1
    while True:
        elapsed_s = loop(number)
        if elapsed_s >= min_repeat_s:
            return number
        growth = _MARGIN * min_repeat_s / elapsed_s if elapsed_s > 0 else math.inf
        number = math.ceil(number * min(_MAX_GROWTH, growth))


def parallel_region_s(num_threads: int, number: int = 1000) -> float:
    """The seconds that one parallel region without any work takes, as the mean of `number` in a row.

    The caller does the share of a worker that does not join in time, so this is the price of offering work to the
    workers, not of a meeting with all of them.
    """
    return time_empty_regions(num_threads, number) / number
