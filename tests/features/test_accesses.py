"""What accesses take of a cache, where rows begin at the same place of many pages."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright import te
from tilewright.features import Hardware
from tilewright.features.analysis import analyze

HARDWARE = Hardware.from_target(tw.Target.parse("llvm -mcpu=haswell -num-cores=1"), 1)
NUM_LINES_IN_PAGE = 64


def crowded_lines(stride: int, columns: int) -> float:
    """Of a tile of 14 rows and one line of each, `stride` rows of so many floats apart."""
    x = te.placeholder((14 * stride, columns), name="X")
    task = tw.Task([x], [te.compute((14, columns), lambda i, j: x[i * stride, j] * 2.0, name="Y")])
    schedule = tw.Schedule(task)
    i, j = schedule["Y"].loops
    outer, inner = schedule["Y"].split(j, 16)
    schedule["Y"].reorder(outer, i, inner)
    (statement,) = analyze(schedule, 1, HARDWARE)
    (access,) = [access for access in statement.accesses if access.buffer == "X"]
    return float(access.crowded_lines[1, 0])


@pytest.mark.parametrize(
    ("stride", "columns", "num_places"),
    [
        (1, 1024, 1),  # rows of a page
        (1, 512, 2),
        (2, 512, 1),  # every second row of half a page
        (3, 512, 2),
        (4, 256, 1),
        (2, 256, 2),
    ],
)
def test_rows_crowd_as_many_places_as_their_distance_leaves(stride: int, columns: int, num_places: int) -> None:
    assert crowded_lines(stride, columns) == pytest.approx(14 * NUM_LINES_IN_PAGE / num_places)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_rows_that_begin_anywhere_crowd_nothing(stride: int) -> None:
    assert crowded_lines(stride, 1024 + 16) <= 14 * NUM_LINES_IN_PAGE / 7
