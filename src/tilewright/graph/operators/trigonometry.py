"""Circular and hyperbolic functions and their inverses, as polynomials and as what `te` has.

Everything is computed in float64, so that float32 results are rounded once. Angles are exact to some units in the last
place up to about 1e6 in float64 and 1e8 in float32; beyond that the reduction by multiples of pi/2 loses digits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from tilewright import te
from tilewright.graph.operators.activations import log1p
from tilewright.graph.operators.elementwise import elementwise
from tilewright.graph.operators.registry import operator
from tilewright.te import Expr

# Chebyshev fits in the square of the argument, lowest power first: of sin(x) / x and cos(x) up to pi/4, of atan(x) / x
# up to tan(pi/8), of sinh(x) / x up to 1. Their errors are below 4e-18.
_SIN = (
    1.0,
    -0.16666666666666616,
    0.008333333333320297,
    -0.0001984126982859984,
    2.755731335888172e-06,
    -2.5050714198795763e-08,
    1.5894573136298841e-10,
)
_COS = (
    1.0,
    -0.5,
    0.04166666666666645,
    -0.0013888888888860956,
    2.4801587283810357e-05,
    -2.7557313079436857e-07,
    2.087558003775504e-09,
    -1.1353262834133352e-11,
)
_ATAN = (
    1.0,
    -0.33333333333333326,
    0.19999999999997012,
    -0.1428571428532936,
    0.11111111085301238,
    -0.0909090805829841,
    0.07692281083678901,
    -0.06666205023178091,
    0.058768317098427496,
    -0.05217297919655059,
    0.044994415067496046,
    -0.03338645225903317,
    0.01511237643149517,
)
_SINH = (
    1.0,
    0.16666666666666666,
    0.008333333333333333,
    0.0001984126984126956,
    2.755731922413042e-06,
    2.5052108343703007e-08,
    1.6059050915662824e-10,
    7.646464328210886e-13,
    2.848682238415412e-15,
)

# pi/2 in three parts: a multiple of the first two is exact where the factor has up to 20 bits.
_HALF_PI = tuple(map(float.fromhex, ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2e037073p-69")))
_LARGE = 2.0**28
"""Above this 1 + x**2 is x**2."""


def _polynomial(coefficients: Sequence[float], x: Expr) -> Expr:
    """The polynomial by Horner's rule; the lowest coefficient comes first."""
    first: Expr = te.constant(coefficients[-1], "float64")
    return functools.reduce(lambda total, c: total * x + c, reversed(coefficients[:-1]), first)


def _reduce_angle(x: Expr) -> tuple[Expr, Expr]:
    """The quadrant of an angle, 0 to 3, and what is left of it, within pi/4 of zero."""
    turns = te.floor(x * (2.0 / math.pi) + 0.5)
    rest = functools.reduce(lambda left, part: left - turns * part, _HALF_PI, x)
    return turns - 4.0 * te.floor(turns * 0.25), rest


def _sine_and_cosine(x: Expr) -> tuple[Expr, Expr, Expr]:
    quadrant, rest = _reduce_angle(x)
    square = rest * rest
    return quadrant, rest * _polynomial(_SIN, square), _polynomial(_COS, square)


def _either(cond: Expr, a: float, b: float) -> Expr:
    return te.select(cond, te.constant(a, "float64"), te.constant(b, "float64"))


def _negated_where(cond: Expr, x: Expr) -> Expr:
    """-x or x; a product, since both sides of a select would write x out."""
    return x * _either(cond, -1.0, 1.0)


def _is_odd(quadrant: Expr) -> Expr:
    return te.equal(quadrant, 1.0) | te.equal(quadrant, 3.0)


def _sin(x: Expr) -> Expr:
    quadrant, sine, cosine = _sine_and_cosine(x)
    size = te.select(_is_odd(quadrant), cosine, sine)
    return _negated_where(quadrant >= 2.0, size)


def _cos(x: Expr) -> Expr:
    quadrant, sine, cosine = _sine_and_cosine(x)
    size = te.select(_is_odd(quadrant), sine, cosine)
    return _negated_where(te.equal(quadrant, 1.0) | te.equal(quadrant, 2.0), size)


def _tan(x: Expr) -> Expr:
    quadrant, sine, cosine = _sine_and_cosine(x)
    return te.select(_is_odd(quadrant), -cosine / sine, sine / cosine)


def _atan(x: Expr) -> Expr:
    size = te.abs(x)
    is_steep = size > 1.0
    ratio = te.select(is_steep, 1.0 / size, size)
    is_wide = ratio > math.tan(math.pi / 8)
    rest = te.select(is_wide, (ratio - 1.0) / (ratio + 1.0), ratio)
    angle = rest * _polynomial(_ATAN, rest * rest) + _either(is_wide, math.pi / 4, 0.0)
    angle = _negated_where(is_steep, angle) + _either(is_steep, math.pi / 2, 0.0)
    return _negated_where(x < 0.0, angle)


def _asin(x: Expr) -> Expr:
    return _atan(x / te.sqrt((1.0 - x) * (1.0 + x)))


def _acos(x: Expr) -> Expr:
    return 2.0 * _atan(te.sqrt(1.0 - x) / te.sqrt(1.0 + x))


def _sinh(x: Expr) -> Expr:
    # Half the argument, twice: the whole one overflows where the result does not yet.
    half = te.exp(te.abs(x) * 0.5)
    size = (half * 0.5) * half - 0.5 / half / half
    large = _negated_where(x < 0.0, size)
    return te.select(te.abs(x) < 1.0, x * _polynomial(_SINH, x * x), large)


def _cosh(x: Expr) -> Expr:
    half = te.exp(te.abs(x) * 0.5)
    return (half * 0.5) * half + 0.5 / half / half


def _asinh(x: Expr) -> Expr:
    size = te.abs(x)
    square = size * size
    near = log1p(size + square / (1.0 + te.sqrt(square + 1.0)))
    result = te.select(size > _LARGE, te.log(size) + math.log(2.0), near)
    return _negated_where(x < 0.0, result)


def _acosh(x: Expr) -> Expr:
    above = x - 1.0
    near = log1p(above + te.sqrt(2.0 * above + above * above))
    return te.select(x > _LARGE, te.log(x) + math.log(2.0), near)


def _atanh(x: Expr) -> Expr:
    size = te.abs(x)
    result = 0.5 * log1p(2.0 * size / (1.0 - size))
    return _negated_where(x < 0.0, result)


def _in_float64(function: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    return lambda x: te.cast(function(te.cast(x, "float64")), x.dtype)


_FUNCTIONS: dict[str, Callable[[Expr], Expr]] = {
    "Sin": _sin,
    "Cos": _cos,
    "Tan": _tan,
    "Asin": _asin,
    "Acos": _acos,
    "Atan": _atan,
    "Sinh": _sinh,
    "Cosh": _cosh,
    "Asinh": _asinh,
    "Acosh": _acosh,
    "Atanh": _atanh,
}

for _name, _function in _FUNCTIONS.items():
    operator(_name)(elementwise(_in_float64(_function)))
