"""Whether a program is faster than another, or only seems to be."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

# Student's t of which 5 % lie outside on both sides together, by degrees of freedom.
_CRITICAL = {math.inf: 1.960, 30: 2.042, 10: 2.228, 6: 2.447, 4: 2.776, 3: 3.182, 2: 4.303, 1.5: 6.017, 1: 12.706}


def is_faster(runs_s: Sequence[float], than_s: Sequence[float]) -> bool:
    """Whether the runs of one program are shorter than those of another by Welch's t-test, at 5 %; two runs at least.

    >>> is_faster([1.0, 1.01, 0.99], [1.2, 1.21, 1.19])
    True
    >>> is_faster([1.0, 1.3, 0.7], [1.2, 1.5, 0.9])
    False
    """
    gained_s = statistics.fmean(than_s) - statistics.fmean(runs_s)
    first, second = (statistics.variance(runs) / len(runs) for runs in (runs_s, than_s))
    if gained_s <= 0 or first + second == 0:
        return gained_s > 0
    degrees = (first + second) ** 2 / (first**2 / (len(runs_s) - 1) + second**2 / (len(than_s) - 1))
    return gained_s / math.sqrt(first + second) > _critical(degrees)


def _critical(degrees: float) -> float:
    """Between the entries its logarithm is nearly a line over 1 / degrees."""
    inverse, logarithms = ([1 / degrees for degrees in _CRITICAL], np.log(list(_CRITICAL.values())))
    return math.exp(np.interp(1 / degrees, inverse, logarithms))
