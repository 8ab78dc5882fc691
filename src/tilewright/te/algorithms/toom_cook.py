"""The matrices of Toom and Cook: short convolutions with as many products as there are results and taps less one.

With them, `outputs @ ((taps @ g) * (inputs @ d))` is the convolution of data `d` with taps `g`. They come from
polynomials at points: the smaller the points and the fewer, the less rounding is amplified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeAlias

Row: TypeAlias = tuple[Fraction, ...]

# Each is followed by its negative: what the rows of such a pair have in common is computed once.
_POINTS = (*map(Fraction, (0, 1, -1, 2, -2)), Fraction(1, 2), Fraction(-1, 2))


@dataclass(frozen=True, slots=True)
class Matrices:
    """Rows of exact numbers: `inputs` has one for each product, and `outputs` one for each result.

    So has `taps` for each product, but for the last ones if they have the same: that is its last row then. `alike` has
    the products whose columns of `outputs` differ in signs alone side by side, every other one by itself.
    """

    inputs: tuple[Row, ...]
    taps: tuple[Row, ...]
    outputs: tuple[Row, ...]
    alike: tuple[tuple[int, ...], ...]


@cache
def matrices(num_outputs: int, num_taps: int, stride: int = 1) -> Matrices:
    """The matrices for so many results of so many taps each, that begin so many places of the data apart.

    With a stride, results are sums of convolutions without one: of every second place with every second tap, say, and
    of the places between with the taps between.

    >>> [[str(x) for x in row] for row in matrices(2, 3).inputs]
    [['-1', '0', '1', '0'], ['0', '1', '1', '0'], ['0', '-1', '1', '0'], ['0', '-1', '0', '1']]
    >>> [" ".join(map(str, row)) for row in matrices(2, 3, stride=2).inputs]
    ['-1 0 1 0 0', '0 0 1 0 0', '0 0 -1 0 1', '0 1 0 0 0', '0 0 0 1 0']
    """
    num_places = (num_outputs - 1) * stride + num_taps
    parts = [_of_stride_one(num_outputs, len(range(phase, num_taps, stride))) for phase in range(stride)]
    inputs: list[Row] = []
    taps: list[Row] = []
    alike: list[tuple[int, ...]] = []
    for phase, part in enumerate(parts):
        alike += [tuple(len(inputs) + n for n in group) for group in part.alike]
        inputs += [_spread(row, phase, stride, num_places) for row in part.inputs]
        taps += [_spread(row, phase, stride, num_taps) for row in part.taps]
    outputs = [tuple(x for part in parts for x in part.outputs[n]) for n in range(num_outputs)]
    while len(taps) > 1 and taps[-1] == taps[-2]:
        taps.pop()
    return Matrices(tuple(inputs), tuple(taps), tuple(outputs), tuple(alike))


def _spread(row: Row, phase: int, stride: int, length: int) -> Row:
    """The numbers of a row at every `stride`-th place from `phase` on, with zeros between."""
    made = [Fraction(0)] * length
    made[phase::stride] = row
    return tuple(made)


def _of_stride_one(num_outputs: int, num_taps: int) -> Matrices:
    if num_taps == 1:
        unit = tuple(tuple(Fraction(n == place) for place in range(num_outputs)) for n in range(num_outputs))
        return Matrices(unit, ((Fraction(1),),) * num_outputs, unit, tuple((n,) for n in range(num_outputs)))
    num_points = num_outputs + num_taps - 2
    points = _POINTS[:num_points]
    inputs, taps = [], []
    for j, point in enumerate(points):
        others = (*points[:j], *points[j + 1 :])
        inputs.append((*_coefficients(others), Fraction(0)))
        scale = _value(_coefficients(others), point)
        taps.append(tuple(point**n / scale for n in range(num_taps)))
    inputs.append(_coefficients(points))
    taps.append(tuple(Fraction(n == num_taps - 1) for n in range(num_taps)))
    outputs = [(*(point**n for point in points), Fraction(n == num_outputs - 1)) for n in range(num_outputs)]
    return Matrices(tuple(inputs), tuple(taps), tuple(outputs), _negatives_together(points))


def _negatives_together(points: Sequence[Fraction]) -> tuple[tuple[int, ...], ...]:
    """The numbers of the products, those of points that are each other's negatives in pairs; the last has no point."""
    groups: list[tuple[int, ...]] = []
    for n, point in enumerate(points):
        if n and point == -points[n - 1]:
            groups[-1] = (n - 1, n)
        else:
            groups.append((n,))
    return (*groups, (len(points),))


def _coefficients(roots: Sequence[Fraction]) -> Row:
    """Of the polynomial with these roots, the constant one first."""
    made = [Fraction(1)]
    for root in roots:
        made = [a - root * b for a, b in zip([Fraction(0), *made], [*made, Fraction(0)], strict=True)]
    return tuple(made)


def _value(coefficients: Row, x: Fraction) -> Fraction:
    return sum((c * x**n for n, c in enumerate(coefficients)), Fraction(0))
