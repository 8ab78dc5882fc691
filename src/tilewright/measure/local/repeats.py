"""How often a kernel is run to know its latency: more often if it may be the best."""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.measure.options import MeasureOptions

# The number of runs grows at most by this factor at a time, since the first run is often a slow one.
_MAX_GROWTH = 20
# Aimed above the minimum, so that a repeat seldom falls just short of it.
_MARGIN = 1.2
# A first run this many times longer than all repeats may take is precise enough by itself.
_LONG = 4


def sample_latency(
    run: Callable[[int], float], options: MeasureOptions, best_latency_s: float | None
) -> tuple[float, ...]:
    """Seconds a run, one sample for each repeat; `run(number)` returns the seconds that `number` runs take.

    The first run warms up and counts only where it settles the matter: the candidate is hopeless, or so slow that
    nothing is gained by another run.
    """
    max_total_s = options.max_total_ms * 1e-3
    hopeless_s = math.inf if best_latency_s is None else options.hopeless_factor * best_latency_s
    close_s = math.inf if best_latency_s is None else options.close_factor * best_latency_s
    first_s = run(1)
    # A short first run is dominated by what it finds cold: it proves nothing.
    if first_s >= _LONG * max_total_s or (first_s >= options.min_repeat_ms * 1e-3 and first_s > hopeless_s):
        return (first_s,)
    number, total_s = _first_repeat(run, options, first_s)
    samples_s = [total_s / number]
    while min(samples_s) <= hopeless_s and (
        len(samples_s) < options.min_repeats or (total_s < max_total_s and min(samples_s) < close_s)
    ):
        elapsed_s = run(number)
        samples_s.append(elapsed_s / number)
        total_s += elapsed_s
    return tuple(samples_s)


def sample_turn(run: Callable[[int], float], options: MeasureOptions) -> tuple[float, ...]:
    """The same for one turn of a comparison: short, since many turns tell more than a long one."""
    first_s = run(1)
    if first_s >= _LONG * options.max_total_ms * 1e-3:
        return (first_s,)
    number, elapsed_s = _first_repeat(run, options, first_s)
    return (elapsed_s / number, *(run(number) / number for _ in range(options.min_repeats - 1)))


def _first_repeat(run: Callable[[int], float], options: MeasureOptions, first_s: float) -> tuple[int, float]:
    """How many runs last as long as a repeat has to, and the seconds that they took."""
    min_repeat_s = options.min_repeat_ms * 1e-3
    number = max(1, math.ceil(min(_MAX_GROWTH, _MARGIN * min_repeat_s / max(first_s, 1e-9))))
    elapsed_s = run(number)
    while elapsed_s < min_repeat_s / _MARGIN:
        number = math.ceil(number * min(_MAX_GROWTH, _MARGIN * min_repeat_s / max(elapsed_s, 1e-9)))
        elapsed_s = run(number)
    return number, elapsed_s
