"""What a space is derived for."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.space.waste import MAX_AXIS_WASTE
from tilewright.target import Target


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """The machine, how much the tiles of one axis may waste, and whether all programs give the sums of the task.

    If they need not be `exact`, there are also those of algorithms that round more, such as Winograd's.
    """

    target: Target
    threads: int = 1
    max_waste: float = MAX_AXIS_WASTE
    exact: bool = True
