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
# On a machine that is never as usual, sampling ends after this many times what all repeats may take.
_PATIENCE = 3


def sample_latency(
    run: Callable[[int], float],
    options: MeasureOptions,
    best_latency_s: float | None,
    is_as_usual: Callable[[], bool] = lambda: True,
) -> tuple[float, ...]:
    """Seconds a run, one sample for each repeat; `run(number)` returns the seconds that `number` runs take.

    The first run warms up and counts only where it settles the matter: the candidate is hopeless, or so slow that
    nothing is gained by another run. A sample after which the machine is not as usual is taken again, within limits.
    """
    min_repeat_s = options.min_repeat_ms * 1e-3
    max_total_s = options.max_total_ms * 1e-3
    hopeless_s = math.inf if best_latency_s is None else options.hopeless_factor * best_latency_s
    close_s = math.inf if best_latency_s is None else options.close_factor * best_latency_s
    first_s = run(1)
    # A short first run is dominated by what it finds cold: it proves nothing.
    if first_s >= _LONG * max_total_s or (first_s >= min_repeat_s and first_s > hopeless_s):
        return (first_s,)
    number = max(1, math.ceil(min(_MAX_GROWTH, _MARGIN * min_repeat_s / max(first_s, 1e-9))))
    elapsed_s = run(number)
    while elapsed_s < min_repeat_s / _MARGIN:
        number = math.ceil(number * min(_MAX_GROWTH, _MARGIN * min_repeat_s / max(elapsed_s, 1e-9)))
        elapsed_s = run(number)
    samples_s = [elapsed_s / number]
    usual_s = samples_s[:] if is_as_usual() else []
    total_s = elapsed_s
    while _needs_more(samples_s, usual_s, total_s, options, close_s):
        if min(samples_s) > hopeless_s:
            break
        elapsed_s = run(number)
        samples_s.append(elapsed_s / number)
        if is_as_usual():
            usual_s.append(samples_s[-1])
        total_s += elapsed_s
    return tuple(usual_s or samples_s)


def _needs_more(
    samples_s: list[float], usual_s: list[float], total_s: float, options: MeasureOptions, close_s: float
) -> bool:
    max_total_s = options.max_total_ms * 1e-3
    if len(usual_s) < options.min_repeats:
        return len(samples_s) < options.min_repeats or total_s < _PATIENCE * max_total_s
    return total_s < max_total_s and min(usual_s) < close_s
