"""A product with a small matrix of numbers, written as one sum for each row, with what rows share written alike.

Zeros are left out. Code generation computes an expression that several rows have once, where their loop is written
out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from tilewright.te.algorithms.toom_cook import Row
from tilewright.te.expr import Axis, Binary, Const, Expr, Select, binary


def choose(axis: Axis, values: Sequence[Expr]) -> Expr:
    """The value whose number the axis is."""
    *others, chosen = values
    for number, value in reversed(list(enumerate(others))):
        chosen = Select(value.dtype, binary("eq", axis, Const("int64", number)), value, chosen)
    return chosen


def choices(body: Expr, axes: Sequence[Axis]) -> tuple[Axis, list[Expr]] | None:
    """The axis and the values that `choose` made the body of; None where it did not."""
    values: list[Expr] = []
    found: Axis | None = None
    while isinstance(body, Select):
        axis = _axis_that_is(body.cond, len(values))
        if axis is None or found not in (None, axis):
            return None
        values.append(body.a)
        found, body = axis, body.b
    if found is None or found not in axes or found.extent != len(values) + 1:
        return None
    return found, [*values, body]


def _axis_that_is(condition: Expr, number: int) -> Axis | None:
    if not isinstance(condition, Binary) or condition.op != "eq" or not isinstance(condition.a, Axis):
        return None
    is_number = isinstance(condition.b, Const) and condition.b.value == number
    return condition.a if is_number else None


def by_parity(row: Row, element: Callable[[int], Expr], stride: int = 1) -> Expr:
    """The sum of the elements times the row, those at even places and those at odd places by themselves.

    Rows of points that are each other's negatives differ in the sign of one of these parts. Of every `stride`-th place,
    which alone a row has then, those that are even and odd among them.
    """
    parts = [[(n, factor) for n, factor in enumerate(row) if factor and n // stride % 2 == parity] for parity in (0, 1)]
    return _sum_of_parts([part for part in parts if part], element)


def by_pairs(row: Row, element: Callable[[int], Expr], alike: Sequence[Sequence[int]]) -> Expr:
    """The sum of the elements times the row, those of points that are each other's negatives in pairs, as `alike`."""
    parts = [[(n, row[n]) for n in reversed(group) if row[n]] for group in alike]
    return _sum_of_parts([part for part in parts if part], element)


def _sum_of_parts(parts: Sequence[Sequence[tuple[int, Fraction]]], element: Callable[[int], Expr]) -> Expr:
    total: Expr | None = None
    for part in sorted(parts, key=_leading, reverse=True):  # one that is added stands first, so that none is negated
        factor = _leading(part)
        value = _scaled(_normal(part, element), abs(factor))
        if total is None:
            total = value if factor > 0 else binary("mul", value, -1.0)
        else:
            total = binary("add" if factor > 0 else "sub", total, value)
    assert total is not None, "no row is zero"
    return total


def _leading(part: Sequence[tuple[int, Fraction]]) -> Fraction:
    return part[-1][1]


def _normal(part: Sequence[tuple[int, Fraction]], element: Callable[[int], Expr]) -> Expr:
    """The part with 1 as its last factor, which others that are a multiple of it have too."""
    last, leading = part[-1]
    total = element(last)
    for n, factor in reversed(part[:-1]):
        ratio = factor / leading
        total = binary("add" if ratio > 0 else "sub", total, _scaled(element(n), abs(ratio)))
    return total


def _scaled(value: Expr, factor: Fraction) -> Expr:
    return value if factor == 1 else binary("mul", value, float(factor))
