"""How the loops of a tiled stage are nested, read from a string such as "SSRSRS"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import UsageError
from tilewright.space.rules.rule import Rule

CPU_STRUCTURE = "SSRSRS"


@dataclass(frozen=True, slots=True)
class TileStructure:
    """The levels of tiles, outermost first: S has a loop of every spatial axis, R of every reduction axis.

    The first level is for threads, the last one is the register tile: its last axis in vector lanes, the others
    unrolled.
    """

    levels: str

    def __post_init__(self) -> None:
        if not re.fullmatch("S[SR]*R[SR]*S", self.levels):
            raise UsageError(
                "a tile structure is a string of S (a level of spatial loops) and R (of reduction loops) that begins "
                f"and ends with S and has an R between, such as {CPU_STRUCTURE!r}, got {self.levels!r}"
            )

    @property
    def num_spatial(self) -> int:
        return self.levels.count("S")

    @property
    def num_reduce(self) -> int:
        return self.levels.count("R")

    @property
    def fusion_levels(self) -> range:
        """How many of the outermost levels may be loops of a consumer: one, up to all those around the reduction.

        >>> list(TileStructure("SSRSRS").fusion_levels)
        [1, 2]
        """
        return range(1, self.levels.index("R") + 1)

    def columns_of_host(self, level: int) -> tuple[tuple[int, ...], ...]:
        """Which extents of a tiling multiply to those of the loops of a consumer that has the first `level` levels.

        The consumer's innermost loop runs over all of a tile.

        >>> TileStructure("SSRSRS").columns_of_host(2)
        ((0,), (1, 2))
        """
        columns = tuple(range(self.num_spatial - 1))
        return (*((n,) for n in columns[: level - 1]), columns[level - 1 :])

    def order(self, spatial: Sequence[Sequence[str]], reduced: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """The loops of the innermost levels as they are nested: `spatial` and `reduced` are given level by level.

        >>> TileStructure("SSRS").order([["i.0"], ["i.1"]], [["k"]])
        ('i.0', 'k', 'i.1')
        """
        levels = self.levels[self.num_spatial - len(spatial) :]
        of_kind = {"S": iter(spatial), "R": iter(reduced)}
        return tuple(loop for level in levels for loop in next(of_kind[level]))


def loops_by_level(axes: Sequence[str], num_levels: int) -> list[list[str]]:
    """The names of the loops that the axes are cut into, level by level.

    >>> loops_by_level(["i", "j"], 2), loops_by_level(["k"], 1)
    ([['i.0', 'j.0'], ['i.1', 'j.1']], [['k']])
    """
    if num_levels == 1:
        return [list(axes)]
    return [[f"{axis}.{n}" for axis in axes] for n in range(num_levels)]


class TilingRule(Rule):
    """A rule that tiles stages in a given structure."""

    def __init__(self, structure: str = CPU_STRUCTURE) -> None:
        self.structure = TileStructure(structure)
