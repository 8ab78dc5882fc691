"""sinh and cosh, asinh, acosh and atanh, in float64 for both types."""

from __future__ import annotations

import math

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.math.arithmetic import const_like, in_float64, polynomial
from tilewright.codegen.math.double_word import any_sum
from tilewright.codegen.math.exponential import clamp_to_exp_range, exp_of_sum
from tilewright.codegen.math.logarithm import log

# sinh(x) / x in x^2 up to 1; error below 4e-18.
_SINH = (
    1.0, 0.16666666666666666, 0.008333333333333333, 0.0001984126984126956, 2.755731922413042e-06,
    2.5052108343703007e-08, 1.6059050915662824e-10, 7.646464328210886e-13, 2.848682238415412e-15,
)  # fmt: skip

# What float64 lacks of ln 2.
_LN2_LOW = 2.3190468138462996e-17

# Above this 1 + x^2 is x^2.
_LARGE = 2.0**28


@in_float64
def sinh(b: FunctionBuilder, x: Value) -> Value:
    up, down = _half_powers(b, x)
    large = b.intrinsic("copysign", b.binary("fsub", up, down), x)
    small = b.fmul(x, polynomial(b, b.fmul(x, x), _SINH))
    return b.select(b.compare("olt", b.intrinsic("fabs", x), const_like(b, 1.0, x)), small, large)


@in_float64
def cosh(b: FunctionBuilder, x: Value) -> Value:
    return b.binary("fadd", *_half_powers(b, x))


@in_float64
def asinh(b: FunctionBuilder, x: Value) -> Value:
    one = const_like(b, 1.0, x)
    size = b.intrinsic("fabs", x)
    square = b.fmul(size, size)
    root = b.intrinsic("sqrt", b.fadd(square, one))
    near = _log1p(b, b.fadd(size, b.fdiv(square, b.fadd(one, root))))
    return b.intrinsic("copysign", _far_or_near(b, size, near), x)


@in_float64
def acosh(b: FunctionBuilder, x: Value) -> Value:
    above = b.binary("fsub", x, const_like(b, 1.0, x))
    twice = b.binary("fadd", above, above)
    near = _log1p(b, b.fadd(above, b.intrinsic("sqrt", b.fma(above, above, twice))))
    is_defined = b.compare("oge", x, const_like(b, 1.0, x))
    return b.select(is_defined, _far_or_near(b, x, near), const_like(b, float("nan"), x))


@in_float64
def atanh(b: FunctionBuilder, x: Value) -> Value:
    size = b.intrinsic("fabs", x)
    ratio = b.fdiv(b.binary("fadd", size, size), b.binary("fsub", const_like(b, 1.0, x), size))
    return b.intrinsic("copysign", b.fmul(const_like(b, 0.5, x), _log1p(b, ratio)), x)


def _half_powers(b: FunctionBuilder, x: Value) -> tuple[Value, Value]:
    """exp(|x|) / 2 as exp(|x| - ln 2), since exp(|x|) overflows where its half does not yet, and exp(-|x|) / 2."""
    size = b.intrinsic("fabs", x)
    exponent, error = any_sum(b, size, const_like(b, -math.log(2.0), x))
    clamped = clamp_to_exp_range(b, exponent)
    low = b.binary("fsub", error, const_like(b, _LN2_LOW, x))
    # Where it was clamped the error is of no meaning.
    low = b.select(b.compare("oeq", clamped, exponent), low, const_like(b, 0.0, x))
    up = exp_of_sum(b, clamped, low)
    return up, b.fdiv(const_like(b, 0.25, x), up)


def _far_or_near(b: FunctionBuilder, x: Value, near: Value) -> Value:
    """log(2 x) for a large x, where the sum in the logarithm would overflow, or what is given."""
    far = b.fadd(log(b, x), const_like(b, math.log(2.0), x))
    return b.select(b.compare("ogt", x, const_like(b, _LARGE, x)), far, near)


def _log1p(b: FunctionBuilder, x: Value) -> Value:
    """log(1 + x), exact for small x: what rounding took from 1 + x is put back as a factor."""
    one, infinity = const_like(b, 1.0, x), const_like(b, float("inf"), x)
    total = b.binary("fadd", x, one)
    exact = b.fmul(log(b, total), b.fdiv(x, b.binary("fsub", total, one)))
    exact = b.select(b.compare("oeq", total, infinity), infinity, exact)
    return b.select(b.compare("oeq", total, one), x, exact)
