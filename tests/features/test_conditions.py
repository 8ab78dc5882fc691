"""Tests of padding that remain, after loops are cut where they change.

Features know how a loop is cut, but not where its conditions change: they take each for a border of one iteration at
both ends. What they count is mostly more than what the nest is left with, and falls short of it by little.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.features.populations import FAMILIES
from tests.features.walked import lowered_statements, remaining_tests
from tilewright import te
from tilewright.features import Hardware
from tilewright.features.analysis import analyze
from tilewright.features.conditions import Conditions, find_conditions
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.te import Task

HARDWARE = Hardware.from_target(Target.parse("llvm -mcpu=haswell -num-cores=2"))


def padded_blur() -> Schedule:
    """The sum of 3x3 neighbours in an image with a border of zeros, which is inlined."""
    x = te.placeholder((32, 32, 8), name="X")
    inside = te.compute(
        (34, 34, 8),
        lambda i, j, c: te.select((i >= 1) & (i < 33) & ((j >= 1) & (j < 33)), x[i - 1, j - 1, c], 0.0),
        name="P",
    )
    r, s = te.reduce_axis(3, name="r"), te.reduce_axis(3, name="s")
    blur = te.compute((32, 32, 8), lambda i, j, c: te.sum(inside[i + r, j + s, c], axis=[r, s]), name="B")
    schedule = Schedule(Task([x], blur))
    schedule["P"].compute_inline()
    schedule["B"].vectorize("c")
    return schedule


def conditions(schedule: Schedule) -> Conditions:
    (statement,) = analyze(schedule, 1, HARDWARE)
    return find_conditions(statement.region, statement.unrolled, HARDWARE.core.select_instructions)


def test_every_test_is_counted() -> None:
    counts = conditions(padded_blur()).counts
    assert (counts["int_cmp"], counts["bool"], counts["select"]) == (4, 3, 1)


def test_two_loops_are_cut_and_the_interior_tests_nothing() -> None:
    np.testing.assert_array_equal(conditions(padded_blur()).remaining, [0.0])


def test_a_loop_over_tiles_of_both_axes_is_not_cut() -> None:
    s = padded_blur()
    i0, i1 = s["B"].split("i", 8)
    j0, j1 = s["B"].split("j", 8)
    s["B"].reorder(i0, j0, i1, j1)
    s["B"].parallel(s["B"].fuse(i0, j0))
    np.testing.assert_array_equal(conditions(s).remaining, [2 * 4 + 4.0])


def test_tiles_at_the_border_test() -> None:
    s = padded_blur()
    s["B"].parallel(s["B"].split("i", 4)[0])
    # Of 8 tiles of rows, two have a border; there, two comparisons remain.
    np.testing.assert_allclose(conditions(s).remaining, [2 / 8 * (2 * 2 + 4)])


def test_with_the_reduction_outside_there_are_too_many_copies_to_cut_all() -> None:
    s = padded_blur()
    i, j, c, r, k = (s["B"].loops[n] for n in range(5))
    s["B"].reorder(r, k, i, j, c)
    np.testing.assert_array_equal(conditions(s).remaining, [2 * 4 + 4.0])


def test_a_test_along_the_vector_stays_what_it_is() -> None:
    x = te.placeholder((8, 16), name="X")
    cut = te.compute((8, 16), lambda i, j: te.select(j < 5, x[i, j], 0.0), name="C")
    s = Schedule(Task([x], cut))
    s["C"].vectorize("j")
    found = conditions(s)
    assert not any(found.counts.values())
    assert found.remaining == pytest.approx([0.0])


# --- beside the nest, after loops are cut -----------------------------------------------------------------------------

NUM_ROWS = 16
PADDED = {"conv2d, pad inline": "Y", **{f"conv2d, pad {where}": "P" for where in ("root", "c.0", "i.0", "j.0", "i.1")}}


def estimated_and_counted(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Instructions for tests in the stage with the padding: by the features, and in the nests of the candidates."""
    family = FAMILIES[name]
    matrix = family.sample(6, NUM_ROWS, is_dividing=True)
    statements = analyze(family.population(matrix), NUM_ROWS, HARDWARE)
    (statement,) = (s for s in statements if s.stage.name == PADDED[name])
    select = HARDWARE.core.select_instructions
    estimated = find_conditions(statement.region, statement.unrolled, select).remaining
    nests = [lowered_statements(family.concrete(matrix, row))[PADDED[name]] for row in range(NUM_ROWS)]
    return estimated, np.array([remaining_tests(copies, select) for copies in nests])


@pytest.mark.parametrize("name", ["conv2d, pad root", "conv2d, pad c.0"])
def test_padding_in_loops_of_its_own_tests_nothing(name: str) -> None:
    estimated, counted = estimated_and_counted(name)
    np.testing.assert_array_equal(estimated, counted)
    np.testing.assert_array_equal(counted, np.zeros(NUM_ROWS))


@pytest.mark.parametrize("name", ["conv2d, pad i.0", "conv2d, pad j.0", "conv2d, pad i.1"])
def test_padding_that_is_stored_tests_no_more_than_is_estimated(name: str) -> None:
    """Often less: the pieces of a loop that only stores are no more code than the loop, and so many may be made."""
    estimated, counted = estimated_and_counted(name)
    assert np.all(counted <= estimated)


def test_padding_that_is_inlined_tests_about_what_is_estimated() -> None:
    """Of at most 12 instructions, in images of 8 by 8: few iterations are in the interior of both axes."""
    estimated, counted = estimated_and_counted("conv2d, pad inline")
    assert np.abs(estimated - counted).max() <= 5.5
    assert np.abs(estimated - counted).mean() <= 1.5
    assert np.all(counted <= estimated + 3)
    assert np.corrcoef(estimated, counted)[0, 1] > 0.7
