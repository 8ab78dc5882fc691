"""asin, acos and atan, in float64 for both types."""

from __future__ import annotations

import math

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.math.arithmetic import const_like, in_float64, polynomial

# atan(x) / x in x^2 up to tan(pi/8); error below 4e-18.
_ATAN = (
    1.0, -0.33333333333333326, 0.19999999999997012, -0.1428571428532936, 0.11111111085301238, -0.0909090805829841,
    0.07692281083678901, -0.06666205023178091, 0.058768317098427496, -0.05217297919655059, 0.044994415067496046,
    -0.03338645225903317, 0.01511237643149517,
)  # fmt: skip


@in_float64
def atan(b: FunctionBuilder, x: Value) -> Value:
    """A steep slope turns to its reciprocal, and one above tan(pi/8) by pi/4, to where the polynomial is short."""
    zero, one = const_like(b, 0.0, x), const_like(b, 1.0, x)
    size = b.intrinsic("fabs", x)
    is_steep = b.compare("ogt", size, one)
    ratio = b.select(is_steep, b.fdiv(one, size), size)
    is_wide = b.compare("ogt", ratio, const_like(b, math.tan(math.pi / 8), x))
    turned = b.fdiv(b.binary("fsub", ratio, one), b.binary("fadd", ratio, one))
    rest = b.select(is_wide, turned, ratio)
    angle = b.binary("fmul", rest, polynomial(b, b.binary("fmul", rest, rest), _ATAN))
    angle = b.binary("fadd", angle, b.select(is_wide, const_like(b, math.pi / 4, x), zero))
    angle = b.select(is_steep, b.binary("fsub", const_like(b, math.pi / 2, x), angle), angle)
    return b.intrinsic("copysign", angle, x)


@in_float64
def asin(b: FunctionBuilder, x: Value) -> Value:
    return atan(b, b.fdiv(x, b.intrinsic("sqrt", _one_minus_square(b, x))))


@in_float64
def acos(b: FunctionBuilder, x: Value) -> Value:
    one = const_like(b, 1.0, x)
    below, above = (b.intrinsic("sqrt", b.binary(op, one, x)) for op in ("fsub", "fadd"))
    return b.binary("fmul", const_like(b, 2.0, x), atan(b, b.fdiv(below, above)))


def _one_minus_square(b: FunctionBuilder, x: Value) -> Value:
    one = const_like(b, 1.0, x)
    return b.binary("fmul", b.binary("fsub", one, x), b.binary("fadd", one, x))
