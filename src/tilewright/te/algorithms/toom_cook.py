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
    """Rows of exact numbers: `inputs` and `taps` have one for each product, `outputs` one for each result."""

    inputs: tuple[Row, ...]
    taps: tuple[Row, ...]
    outputs: tuple[Row, ...]


@cache
def matrices(num_outputs: int, num_taps: int) -> Matrices:
    """The matrices for so many results of so many taps each.

    >>> [[str(x) for x in row] for row in matrices(2, 3).inputs]
    [['-1', '0', '1', '0'], ['0', '1', '1', '0'], ['0', '-1', '1', '0'], ['0', '-1', '0', '1']]
    """
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
    return Matrices(tuple(inputs), tuple(taps), tuple(outputs))


def _coefficients(roots: Sequence[Fraction]) -> Row:
    """Of the polynomial with these roots, the constant one first."""
    made = [Fraction(1)]
    for root in roots:
        made = [a - root * b for a, b in zip([Fraction(0), *made], [*made, Fraction(0)], strict=True)]
    return tuple(made)


def _value(coefficients: Row, x: Fraction) -> Fraction:
    return sum((c * x**n for n, c in enumerate(coefficients)), Fraction(0))
