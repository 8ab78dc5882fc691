"""sin, cos and tan.

An angle becomes a quadrant and a rest within pi/4 of zero, whose sine and cosine are polynomials. Both types compute in
float64. float32 is exact for all angles: it multiplies by 1 / (2 pi) in parts, each product exact, and drops the whole
turns of each. float64 subtracts a multiple of pi/2 in three parts; that is exact up to 2^45, and beyond it, where
neighbouring numbers are up to 2^971 apart, there is no number (NaN).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.math.arithmetic import const_like, polynomial
from tilewright.codegen.math.double_word import any_sum, exact_product
from tilewright.codegen.math.float_format import FORMATS
from tilewright.codegen.math.rounding import nearest

# 1 / (2 pi) in parts of 29 bits, so that a product with the 24 bits of a float32 is exact.
_TURNS = tuple(
    map(
        float.fromhex,
        (
            "0x1.45f306dp-3", "0x1.9391054p-32", "0x1.4fe13abp-61", "0x1.d1f534dp-90", "0x1.b81b6c5p-119",
            "0x1.5993c4p-150", "0x1.c820ff2p-177",
        ),
    )
)  # fmt: skip
# Of the largest float32, the products with the parts from this one on are far below one turn.
_FIRST_SMALL_PART = 5

# sin(2 pi f) / f and cos(2 pi f) in f^2 for |f| <= 1/8; relative errors 2^-37.6 and 2^-33.8.
_SIN_OF_TURNS = (6.283185307152425, -41.3417021534493, 81.60520472838324, -76.69786811947465, 41.47288967272196)
_COS_OF_TURNS = (0.9999999999525447, -19.739208650244226, 64.93931617206198, -85.44284839500075, 59.220288041657064)

# pi/2 in three numbers, good for 2^-160.
_HALF_PI = tuple(map(float.fromhex, ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110")))
_TWO_BY_PI = 0.6366197723675814
_LARGEST_ANGLE = 2.0**45

# sin(x) / x and cos(x) in x^2 for |x| <= pi/4; errors below 4e-18.
_SIN = (
    1.0, -0.16666666666666616, 0.008333333333320297, -0.0001984126982859984, 2.755731335888172e-06,
    -2.5050714198795763e-08, 1.5894573136298841e-10,
)  # fmt: skip
_COS = (
    1.0, -0.5, 0.04166666666666645, -0.0013888888888860956, 2.4801587283810357e-05, -2.7557313079436857e-07,
    2.087558003775504e-09, -1.1353262834133352e-11,
)  # fmt: skip

# Adding it rounds to an integer, and leaves that integer in the low bits of the sum.
_MAGIC = 1.5 * 2.0**52


class _Angle(NamedTuple):
    """The number of a quadrant, in the low bits of an integer, and sine and cosine of the rest, in float64."""

    quadrant: Value
    sine: Value
    cosine: Value


def sin(b: FunctionBuilder, x: Value) -> Value:
    angle = _angle(b, x)
    size = b.select(_is_odd(b, angle.quadrant), angle.cosine, angle.sine)
    result = _negated_by_bit(b, size, angle.quadrant, 1)
    return _with_sign_of(b, _rounded(b, result, x.dtype), x)


def cos(b: FunctionBuilder, x: Value) -> Value:
    angle = _angle(b, x)
    following = b.binary("add", angle.quadrant, b.const(1, "int64", x.lanes))
    size = b.select(_is_odd(b, following), angle.cosine, angle.sine)
    return _rounded(b, _negated_by_bit(b, size, following, 1), x.dtype)


def tan(b: FunctionBuilder, x: Value) -> Value:
    angle = _angle(b, x)
    is_odd = _is_odd(b, angle.quadrant)
    numerator = b.select(is_odd, angle.cosine, angle.sine)
    quotient = b.fdiv(numerator, b.select(is_odd, angle.sine, angle.cosine))
    result = _negated_by_bit(b, quotient, angle.quadrant, 0)
    return _with_sign_of(b, _rounded(b, result, x.dtype), x)


def _angle(b: FunctionBuilder, x: Value) -> _Angle:
    size = b.intrinsic("fabs", x)
    return _angle_float32(b, size) if x.dtype == "float32" else _angle_float64(b, size)


def _angle_float32(b: FunctionBuilder, x: Value) -> _Angle:
    wide = b.convert("fpext", x, "float64")
    products = [b.binary("fmul", wide, const_like(b, part, wide)) for part in _TURNS]
    large, small = products[:_FIRST_SMALL_PART], products[_FIRST_SMALL_PART:]
    parts = [*(b.binary("fsub", product, nearest(b, product)) for product in large), *small]
    add = functools.partial(b.binary, "fadd")
    quarters, quadrant = _nearest_and_bits(b, b.binary("fmul", functools.reduce(add, parts), const_like(b, 4.0, wide)))
    # The quarters go first: what is left of the large parts then cancels without rounding.
    rest = functools.reduce(add, parts, b.binary("fmul", quarters, const_like(b, -0.25, wide)))
    square = b.fmul(rest, rest)
    sine = b.fmul(rest, polynomial(b, square, _SIN_OF_TURNS))
    return _Angle(quadrant, sine, polynomial(b, square, _COS_OF_TURNS))


def _angle_float64(b: FunctionBuilder, x: Value) -> _Angle:
    is_small = b.compare("ole", x, const_like(b, _LARGEST_ANGLE, x))
    x = b.select(is_small, x, const_like(b, float("nan"), x))
    turns, quadrant = _nearest_and_bits(b, b.binary("fmul", x, const_like(b, _TWO_BY_PI, x)))
    first, second, third = (const_like(b, part, x) for part in _HALF_PI)
    product, error = exact_product(b, turns, first)
    left = b.binary("fsub", b.binary("fsub", x, product), error)
    product, error = exact_product(b, turns, second)
    rest, low = any_sum(b, left, b.fneg(product))
    low = b.binary("fsub", low, b.fma(turns, third, error))
    return _Angle(quadrant, _sine_of_sum(b, rest, low), _cosine_of_sum(b, rest, low))


def _sine_of_sum(b: FunctionBuilder, x: Value, low: Value) -> Value:
    """sin(x + low) for |x| <= pi/4 and a `low` far smaller: x - x^3 / 6 ... + low (1 - x^2 / 2)."""
    square = b.binary("fmul", x, x)
    cube = b.binary("fmul", square, x)
    tail = b.fma(cube, polynomial(b, square, _SIN[2:]), b.binary("fmul", low, const_like(b, -0.5, x)))
    correction = b.fma(square, tail, low)
    return b.binary("fadd", x, b.fma(cube, const_like(b, _SIN[1], x), correction))


def _cosine_of_sum(b: FunctionBuilder, x: Value, low: Value) -> Value:
    """cos(x + low); what rounding takes from 1 - x^2 / 2 is put back."""
    square = b.binary("fmul", x, x)
    half = b.binary("fmul", square, const_like(b, 0.5, x))
    one = const_like(b, 1.0, x)
    near = b.binary("fsub", one, half)
    lost = b.binary("fsub", b.binary("fsub", one, near), half)
    tail = b.binary("fmul", b.binary("fmul", square, square), polynomial(b, square, _COS[2:]))
    return b.binary("fadd", near, b.binary("fadd", lost, b.binary("fsub", tail, b.binary("fmul", x, low))))


def _nearest_and_bits(b: FunctionBuilder, x: Value) -> tuple[Value, Value]:
    """The integer nearest to x, below 2^51, as a float and in the low bits of an integer."""
    magic = const_like(b, _MAGIC, x)
    moved = b.binary("fadd", x, magic)
    return b.binary("fsub", moved, magic), b.bitcast(moved, "int64")


def _is_odd(b: FunctionBuilder, quadrant: Value) -> Value:
    bit = b.binary("and", quadrant, b.const(1, "int64", quadrant.lanes))
    return b.compare("ne", bit, b.const(0, "int64", quadrant.lanes))


def _negated_by_bit(b: FunctionBuilder, x: Value, quadrant: Value, bit: int) -> Value:
    """-x where that bit of the quadrant is set: it is moved to the sign of x, and flips it."""
    kept = b.binary("and", quadrant, b.const(1 << bit, "int64", x.lanes))
    sign = b.binary("shl", kept, b.const(63 - bit, "int64", x.lanes))
    return b.bitcast(b.binary("xor", b.bitcast(x, "int64"), sign), "float64")


def _with_sign_of(b: FunctionBuilder, odd: Value, x: Value) -> Value:
    """An odd function of x from that of |x|."""
    layout = FORMATS[x.dtype]
    sign = b.binary("and", b.bitcast(x, layout.int_dtype), b.const(layout.sign_bit, layout.int_dtype, x.lanes))
    return b.bitcast(b.binary("xor", b.bitcast(odd, layout.int_dtype), sign), x.dtype)


def _rounded(b: FunctionBuilder, x: Value, dtype: str) -> Value:
    return x if dtype == "float64" else b.convert("fptrunc", x, dtype)
