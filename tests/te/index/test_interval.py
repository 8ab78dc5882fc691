"""The rules of interval arithmetic, against all pairs of values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from tilewright.te.index import OPERATIONS, Interval, combine_intervals, interval

FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": min,
    "max": max,
}
INTERVALS = [Interval(low, high) for low in range(-6, 7, 2) for high in (low, low + 1, low + 5)]


def _reached(op: str, a: Interval, b: Interval) -> list[int]:
    pairs = product(range(a.low, a.high + 1), range(b.low, b.high + 1))
    return [FUNCTIONS[op](x, y) for x, y in pairs]


def test_every_operation_has_a_rule() -> None:
    assert FUNCTIONS.keys() == OPERATIONS


@pytest.mark.parametrize("op", sorted(FUNCTIONS))
def test_an_operation_reaches_what_its_operands_make_it_reach(op: str) -> None:
    """Exactly, but for remainders that begin anew."""
    for a, b in product(INTERVALS, INTERVALS):
        found = combine_intervals(op, a, b)
        if found is None:
            assert (op == "floordiv" and b.low <= 0 <= b.high) or (op == "mod" and b.low <= 0)
            continue
        values = _reached(op, a, b)
        assert found.low <= min(values)
        assert found.high >= max(values)
        if op != "mod":
            assert found == (min(values), max(values))


@pytest.mark.parametrize("divisor", [1, 3, 4])
def test_a_remainder_that_does_not_begin_anew_is_exact(divisor: int) -> None:
    for a in INTERVALS:
        values = _reached("mod", a, Interval(divisor, divisor))
        expected = (min(values), max(values)) if a.low // divisor == a.high // divisor else (0, divisor - 1)
        assert combine_intervals("mod", a, Interval(divisor, divisor)) == expected


@pytest.mark.parametrize("op", sorted(FUNCTIONS))
def test_ends_may_be_arrays_with_an_interval_for_each_candidate(op: str) -> None:
    rng = np.random.default_rng(0)
    low, width, divisor, room = rng.integers(-9, 9, 50), rng.integers(0, 7, 50), rng.integers(1, 6, 50), 2
    found = combine_intervals(op, interval(low, low + width), interval(divisor, divisor + room))
    assert found is not None
    for n in range(50):
        first, last = int(low[n]), int(low[n] + width[n])
        one = combine_intervals(op, Interval(first, last), Interval(int(divisor[n]), int(divisor[n]) + room))
        assert one == (np.asarray(found.low)[n], np.asarray(found.high)[n])


def test_a_divisor_that_may_be_zero_for_one_candidate_has_no_quotient() -> None:
    divisors = np.array([3, 0, 5])
    assert combine_intervals("floordiv", Interval(0, 9), interval(divisors, divisors)) is None
    assert combine_intervals("mod", Interval(0, 9), interval(divisors, divisors)) is None
    assert combine_intervals("floordiv", Interval(0, 9), interval(divisors + 1, divisors + 1)) is not None
