"""Ranges of index expressions, where some variables stand still and others run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright import te
from tilewright.schedule.bounds import Range, RangesBelow, from_zero, union
from tilewright.te import Binary, Const, Expr, Var
from tilewright.te.index import Interval, bounds, const, of_atom

Numbers = NDArray[np.int64]

FIXED, RUNS, BOTH = (Var("int64", name) for name in ("fixed", "runs", "both"))
EXTENT = 4
NUM = 3  # candidates
WIDTHS = np.array([0, 2, 5])


def _random_index(rng: np.random.Generator, depth: int, with_arrays: bool) -> Expr:
    def number(low: int) -> Const:
        value = rng.integers(low, 7, NUM) if with_arrays and rng.random() < 0.5 else int(rng.integers(low, 7))
        return Const("int64", value)  # type: ignore[arg-type]

    kind = int(rng.integers(9 if depth else 3))
    if kind < 3:
        return (FIXED, RUNS, BOTH)[kind]
    a = _random_index(rng, depth - 1, with_arrays)
    if kind < 6:
        return Binary("int64", ("floordiv", "mod", "mul")[kind - 3], a, number(1 if kind < 5 else -3))
    b = number(-3) if kind == 6 else _random_index(rng, depth - 1, with_arrays)
    return Binary("int64", ("add", "sub", "min", "max")[int(rng.integers(4))], a, b)


FUNCTIONS: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "min": np.minimum,
    "max": np.maximum,
}


def _value(e: Expr, at: dict[Var, int]) -> Numbers:
    """The index for each candidate."""
    if isinstance(e, Var | Const):
        return np.broadcast_to(np.asarray(at[e] if isinstance(e, Var) else e.value), NUM)
    assert isinstance(e, Binary)
    return FUNCTIONS[e.op](_value(e.a, at), _value(e.b, at))


@pytest.mark.parametrize("with_arrays", [False, True])
@pytest.mark.parametrize("seed", range(150))
def test_a_range_holds_every_value_of_the_index(seed: int, with_arrays: bool) -> None:
    index = _random_index(np.random.default_rng(seed), 3, with_arrays)
    given = {FIXED: Range(of_atom(FIXED), 0), RUNS: from_zero(EXTENT), BOTH: Range(of_atom(BOTH), WIDTHS)}
    found = RangesBelow(given.__getitem__).of(index)
    assert found is not None
    for fixed, both in product(range(0, 9, 2), range(0, 9, 3)):
        low, high = bounds(found.start, {FIXED: Interval(fixed, fixed), BOTH: Interval(both, both)})
        assert np.all(np.equal(low, high)), "where a range begins depends on nothing that runs"
        for runs, moved in product(range(EXTENT), range(max(WIDTHS) + 1)):
            reached = _value(index, {FIXED: fixed, RUNS: runs, BOTH: both + moved})
            is_inside = (low <= reached) & (reached <= low + found.width)
            assert np.all(is_inside | (moved > WIDTHS)), f"{reached} in {found} of {index}"


def test_the_union_of_ranges_is_their_hull_and_unknown_where_symbols_differ() -> None:
    a, b = Range(of_atom(FIXED) + 2, 3), Range(of_atom(FIXED), np.array([1, 7]))
    hull = union(a, b)
    assert hull is not None
    assert hull.start == of_atom(FIXED)
    np.testing.assert_array_equal(hull.width, [5, 7])
    assert union(a, Range(of_atom(BOTH), 1)) is None
    assert union(a, Range(const(0), 1)) is None


def test_arithmetic_that_may_wrap_around_has_no_range() -> None:
    narrow = te.cast(te.cast(te.reduce_axis(200, name="i"), "int8"), "int64")
    assert RangesBelow(lambda var: from_zero(200)).of(narrow) is None
