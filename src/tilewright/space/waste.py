"""Tiles need not divide: how much more than necessary their loops may run. All limits of waste are here.

A last tile that would reach beyond the end is shifted inwards, so that some results are computed twice. Waste is how
many iterations there are for each one that is needed.
"""

from __future__ import annotations

MAX_AXIS_WASTE = 1.15
"""Of the tiles of one axis: what wastes more is no choice of a knob."""
MAX_STAGE_WASTE = 1.3
"""Of a stage, over all its axes: a candidate that wastes more is not legal."""


def covers_within(extent: int, tile: int, max_waste: float) -> bool:
    """Whether tiles of this size cover the extent with that much waste at most.

    >>> covers_within(14, 6, MAX_AXIS_WASTE), covers_within(14, 5, MAX_AXIS_WASTE)
    (False, True)
    """
    return -(-extent // tile) * tile <= max_waste * extent
