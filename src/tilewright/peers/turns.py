"""Interleaved timing: in each round every contestant gets one turn, so that a slow spell of the machine hits all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping

from tilewright.runtime import Nearness, Timing
from tilewright.target import checked_threads

TURN_S = 0.01
# The libraries run with their default settings, and their threads keep a core busy for a while after a call: OpenMP's
# for about 5 ms, onnxruntime's for about 40 ms, OpenBLAS's for 2^28 cycles. A contestant with several threads rests
# until they sleep.
OPENMP_SETTLE_S = 0.008
ONNXRUNTIME_SETTLE_S = 0.1
OPENBLAS_SETTLE_S = 0.15
_SETTLE_S = {"numpy": OPENBLAS_SETTLE_S, "onnxruntime": ONNXRUNTIME_SETTLE_S}


def settle_s(libraries: Collection[str], threads: int) -> float:
    """How long a turn on so many threads rests where these libraries take part."""
    if threads == 1 or not libraries:
        return 0.0
    return max(_SETTLE_S.get(library, OPENMP_SETTLE_S) for library in libraries)


def take_turns(contestants: Mapping[str, Callable[[], object]], rounds: int, settle_s: float) -> dict[str, Timing]:
    """Time every contestant once a round.

    As `tilewright.runtime.interleave`, but for libraries whose threads are still busy after a call: a turn begins with
    a rest of `settle_s` and an untimed call, and the order rotates, so that none always follows the same other. No turn
    begins while the cores of the machine are apart (`Nearness`).
    """
    nearness = Nearness(checked_threads(None))
    names = list(contestants)
    num_calls = {name: _calls_per_turn(contestants[name]) for name in names}
    turns_s: dict[str, list[float]] = {name: [] for name in names}
    for r in range(rounds):
        first = r % len(names)
        for name in names[first:] + names[:first]:
            time.sleep(settle_s)
            nearness.rest()
            turns_s[name].append(_turn(contestants[name], num_calls[name]))
    return {name: Timing(num_calls[name], tuple(turns_s[name])) for name in names}


def _turn(call: Callable[[], object], num_calls: int) -> float:
    call()
    start = time.perf_counter()
    for _ in range(num_calls):
        call()
    return (time.perf_counter() - start) / num_calls


def _calls_per_turn(call: Callable[[], object]) -> int:
    estimate_s = min(_turn(call, 1) for _ in range(3))
    return max(1, math.ceil(TURN_S / estimate_s))
