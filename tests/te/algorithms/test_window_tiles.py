"""Tiles along a window: every result is in one, and is made of its data."""

from __future__ import annotations

import itertools

import pytest

from tilewright.te import Axis, Const, Expr
from tilewright.te.algorithms.convolution import Window
from tilewright.te.algorithms.window_tiles import WindowTiles
from tilewright.te.index import LinearForms, const


def value(e: Expr, output: Axis, at: int) -> int:
    form = LinearForms(lambda var: const(at if var is output else -1)).of(e)
    assert form is not None
    assert form.is_const
    return form.const


@pytest.mark.parametrize("dilation", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [2, 4])
def test_results_are_made_of_the_places_of_their_tiles(size: int, dilation: int) -> None:
    tap = Axis("int64", "r", 3, True)
    for extent, offset in itertools.product(range(1, 4 * size * dilation), (0, 1)):
        y = Axis("int64", "y", extent, False)
        tiles = WindowTiles(Window(1, y, tap, offset, 1, dilation), size)
        read: set[int] = set()
        used: list[tuple[int, int]] = []
        for at in range(extent):
            tile, place = value(tiles.tile_of_result, y, at), value(tiles.place_of_result, y, at)
            used.append((tile, place))
            positions = [
                value(tiles.position(Const("int64", tile), Const("int64", p)), y, at) for p in range(tiles.num_places)
            ]
            assert positions[place : place + 3] == [at + r * dilation + offset for r in range(3)]
            read.update(positions)
        assert len(set(used)) == extent
        assert {tile for tile, _ in used} == set(range(tiles.num_tiles))
        assert tiles.num_read == max(read) + 1


@pytest.mark.parametrize("stride", [1, 2])
def test_with_a_stride_tiles_begin_farther_apart(stride: int) -> None:
    y, r = Axis("int64", "y", 9, False), Axis("int64", "r", 3, True)
    tiles = WindowTiles(Window(1, y, r, 1, stride, 1), 4)
    assert (tiles.num_tiles, tiles.num_places) == (3, 3 * stride + 3)
    t, d = (Axis("int64", name, 3, False) for name in "td")
    assert str(tiles.position(t, d)) == f"t * {4 * stride} + d + 1"
    assert tiles.num_read == 2 * 4 * stride + tiles.num_places + 1
