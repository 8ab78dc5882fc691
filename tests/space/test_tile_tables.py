"""The tables of tile knobs: any extent has tilings, and they waste as little as they say."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.space.tile_tables import divisors, exact_tilings, tilings
from tilewright.space.waste import MAX_AXIS_WASTE, covers_within

EXTENTS = [1, 2, 3, 7, 13, 14, 49, 56, 97, 197, 224, 512, 1000]


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_tiles_waste_no_more_than_they_may(extent: int, levels: int) -> None:
    table = tilings(extent, levels, divisors(extent), MAX_AXIS_WASTE)
    assert len(table)
    assert table.shape[1] == levels
    assert len(np.unique(table, axis=0)) == len(table) <= 4096
    for row in table:
        total = int(row.prod())
        tile = total if total <= extent else int(row[-1])
        assert -(-extent // tile) * tile <= MAX_AXIS_WASTE * extent


@pytest.mark.parametrize("extent", EXTENTS)
def test_without_waste_tiles_divide(extent: int) -> None:
    for row in tilings(extent, 2, range(1, extent + 1), max_waste=1.0):
        total = int(row.prod())
        assert extent % (total if total <= extent else int(row[-1])) == 0


def test_where_no_size_fits_there_is_no_tiling() -> None:
    assert tilings(13, 3, (8,)).shape == (0, 3)


def test_an_extent_shorter_than_every_size_is_one_tile() -> None:
    assert tilings(3, 2, (8, 16)).tolist() == [[1, 3]]


@pytest.mark.parametrize("extent", EXTENTS)
def test_exact_tilings_are_all_that_divide(extent: int) -> None:
    assert exact_tilings(extent, 1)[:, 0].tolist() == divisors(extent)
    pairs = [[a, b] for a in divisors(extent) for b in divisors(extent) if extent % (a * b) == 0]
    assert exact_tilings(extent, 2).tolist() == pairs


def test_waste_counts_whole_tiles() -> None:
    assert covers_within(100, 10, 1.0)
    assert not covers_within(101, 10, 1.05)
    assert covers_within(101, 10, 1.1)
