"""Tiles along a window of a convolution: which results each has, and which data they are made of.

The results of a dilated window fall into as many parts as its dilation. Each part is a convolution without dilation, of
every so-many-th result and every so-many-th place of the data, and a tile has results of one of them. Tiles are
numbered by their first result: those that begin side by side, one of each part, follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.te.algorithms.convolution import Window
from tilewright.te.expr import Expr, binary


@dataclass(frozen=True, slots=True)
class WindowTiles:
    """Tiles of `size` results along a window."""

    window: Window
    size: int

    @property
    def num_tiles(self) -> int:
        """As many as have a result.

        >>> from tilewright.te import Axis
        >>> y, r = Axis("int64", "y", 5, False), Axis("int64", "r", 3, True)
        >>> [WindowTiles(Window(1, y, r, offset=0, stride=1, dilation=d), 2).num_tiles for d in (1, 2, 3, 8)]
        [3, 3, 3, 5]
        """
        dilation = self.window.dilation
        whole, rest = divmod(self.window.output.extent, self.size * dilation)
        return whole * dilation + min(rest, dilation)

    @property
    def num_places(self) -> int:
        """How many places of the data a tile is made of."""
        return (self.size - 1) * self.window.stride + self.window.tap.extent

    @property
    def num_read(self) -> int:
        """How long the data is that all tiles together are made of."""
        window, last = self.window, self.num_tiles - 1
        begin = (last + last // window.dilation * self._skipped) * window.stride
        return begin + (self.num_places - 1) * window.dilation + 1 + window.offset

    @property
    def tile_of_result(self) -> Expr:
        """The number of the tile that has a result."""
        output, dilation = self.window.output, self.window.dilation
        group = binary("floordiv", output, self.size * dilation)
        return group if dilation == 1 else binary("add", times(group, dilation), binary("mod", output, dilation))

    @property
    def place_of_result(self) -> Expr:
        """Which one of its tile a result is."""
        output, dilation = self.window.output, self.window.dilation
        return binary("mod", output if dilation == 1 else binary("floordiv", output, dilation), self.size)

    def position(self, tile: Expr, place: Expr) -> Expr:
        """Where in the data a place of a tile is."""
        window = self.window
        begin = times(tile, self.size * window.stride) if window.dilation == 1 else self._first_result(tile)
        index = binary("add", begin, times(place, window.dilation))
        return index if window.offset == 0 else binary("add", index, window.offset)

    @property
    def _skipped(self) -> int:
        """How many results more than side by side the tiles after one of each part begin."""
        return (self.size - 1) * self.window.dilation

    def _first_result(self, tile: Expr) -> Expr:
        """Grows with the tile in both terms, so that the bounds of what some tiles read are tight."""
        dilation = self.window.dilation
        if self.num_tiles <= dilation:
            return tile
        return binary("add", tile, times(binary("floordiv", tile, dilation), self._skipped))


def times(index: Expr, factor: int) -> Expr:
    """An index so many times, itself where that is once."""
    return index if factor == 1 else binary("mul", index, factor)
