"""What options of models may be that are numbers: of others libraries raise errors of their own, or say nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import repr as shown
from typing import Any

import numpy as np

from tilewright.errors import UsageError
from tilewright.target import MAX_THREADS

_TINY = 1e-30  # numbers closer to 0 are none that a float32 can be


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from the least to the most, without the least where it is open."""

    least: float
    most: float
    is_whole: bool = False
    is_open: bool = False

    def __contains__(self, value: Any) -> bool:
        is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not is_number or (self.is_whole and not isinstance(value, int | np.integer)):
            return False
        is_inside = self.least <= value <= self.most and not (self.is_open and value == self.least)
        return bool(is_inside and (value == 0 or abs(value) >= _TINY))

    def __str__(self) -> str:
        """
        >>> print(Range(1, 8, is_whole=True), "or", Range(0, 1, is_open=True))
        a whole number from 1 to 8 or a number above 0 and up to 1
        """
        begin = f"above {self.least} and up" if self.is_open else f"from {self.least}"
        return f"a {'whole ' if self.is_whole else ''}number {begin} to {self.most}"


POSITIVE = Range(0, 1e30, is_open=True)
NOT_NEGATIVE = Range(0, 1e30)
SHARE = Range(0, 1)
PART = Range(0, 1, is_open=True)
SEEDS = Range(0, 2**63 - 1, is_whole=True)
THREADS = Range(1, MAX_THREADS, is_whole=True)
COUNTS = Range(1, 2**31 - 1, is_whole=True)

TREES: Mapping[str, Range] = {
    "learning_rate": Range(0, 1e3, is_open=True),
    "max_depth": Range(1, 64, is_whole=True),
    "max_bins": Range(2, 2**16, is_whole=True),
    "min_child_weight": NOT_NEGATIVE,
    "l2": NOT_NEGATIVE,
    "num_threads": THREADS,
    "seed": SEEDS,
}
"""Of all models that boost trees."""


def check_ranges(model: str, ranges: Mapping[str, Range], options: Mapping[str, Any]) -> None:
    """UsageError names the first option of the model that is out of its range."""
    for name, value in options.items():
        if name in ranges and value not in ranges[name]:
            raise UsageError(f"the option {name} of the cost model {model} is {ranges[name]}, got {shown(value)}")
