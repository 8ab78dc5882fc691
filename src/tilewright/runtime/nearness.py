"""Whether the cores that kernels run on are whole, and near each other.

The host of a virtual machine moves its cores about. While two of them are one core of the processor, they compute at
half the speed; while they share no cache, data that the other wrote takes six times as long to read. Either way kernels
take up to twice as long, for seconds, though nothing else runs. Cores that sleep for a moment are given other places.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from tilewright.runtime._native import probe_cores

# Seen of two cores beside the shortest times: 1.0 to 1.1 to compute, 1.6 on one core of the processor; 1.0 to 1.1 from
# one to the other, 6 without a common cache.
_SHARED, _APART = 1.35, 2.0
_NUM_SAMPLES = 3
_REST_S = 0.02
# Before anything is known of the machine: after each of so many short rests the cores may have other places.
_NUM_FIRST_RESTS, _FIRST_REST_S = 4, 0.005
# On a machine where resting does not help, so much of the time is lost to it.
_MOST_SHARE, _MOST_AT_FIRST_S = 0.2, 0.5
_MOST_RUNS = 3


class Nearness:
    """Watches the cores of so many threads, by what they do at once beside the best that was seen.

    Where cores have fixed places, as without a host, that is always about the same.

    >>> nearness = Nearness(threads=1)
    >>> nearness.are_near(), nearness.rest()
    (True, False)
    """

    def __init__(
        self,
        threads: int,
        *,
        probe: Callable[[int], tuple[float, float] | None] = probe_cores,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.threads = threads
        self.rested_s = 0.0
        self._probe, self._sleep, self._clock = probe, sleep, clock
        self._started_s = clock()
        self._compute_s = self._exchange_s = math.inf  # the best that was seen

    def are_near(self) -> bool:
        """Whether the cores are whole and near each other now. One core is, and who never meets may be."""
        if self.threads < 2:
            return True
        if self._compute_s == math.inf:
            for _ in range(_NUM_FIRST_RESTS):
                self._sample()
                self._sleep(_FIRST_REST_S)
        return self._sample()

    def _sample(self) -> bool:
        probes = [self._probe(self.threads) for _ in range(_NUM_SAMPLES)]  # the first one wakes the threads
        known = [found for found in probes if found is not None]
        if not known:
            return True
        compute_s = min(compute for compute, _ in known)
        exchange_s = min(exchange for _, exchange in known)
        if _SHARED * compute_s < self._compute_s:
            self._exchange_s = math.inf  # it was the way within a core
        self._compute_s = min(self._compute_s, compute_s)
        if compute_s > _SHARED * self._compute_s:
            return False
        self._exchange_s = min(self._exchange_s, exchange_s)
        return exchange_s <= _APART * self._exchange_s

    def rest(self) -> bool:
        """Sleep until the cores are near each other, unless that would take too long. Whether it slept."""
        has_slept = False
        while self._may_rest and not self.are_near():
            self._sleep(_REST_S)
            self.rested_s += _REST_S
            has_slept = True
        return has_slept

    def undisturbed(self, run: Callable[[int], float], number: int) -> float:
        """What `run(number)` gives, a time, of a run during which the cores stayed near each other, in a few tries."""
        elapsed_s = math.inf
        for _ in range(_MOST_RUNS):
            if self.rest():
                run(1)  # other cores have other caches
            elapsed_s = run(number)
            if self.are_near() or not self._may_rest:
                break
        return elapsed_s

    @property
    def _may_rest(self) -> bool:
        return self.rested_s <= _MOST_AT_FIRST_S + _MOST_SHARE * (self._clock() - self._started_s)
