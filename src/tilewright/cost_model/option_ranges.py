"""What options of models may be that are numbers: of others libraries raise errors of their own, or say nothing."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as shown
from typing import Any

from tilewright.arguments import Range
from tilewright.errors import UsageError
from tilewright.target import MAX_THREADS

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
