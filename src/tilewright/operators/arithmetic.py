"""Division, remainders, powers and bits: operators that mean something else for integers than for floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tilewright import te
from tilewright.operators.elementwise import elementwise, elementwise_operator, round_half_even
from tilewright.operators.operands import broadcast_shape, known_number, map_elements, reader
from tilewright.operators.registry import Call
from tilewright.te import DTYPES, Expr, Tensor


def _divide(a: Expr, b: Expr) -> Expr:
    """The quotient; of integers rounded towards zero."""
    if te.is_float(a.dtype):
        return a / b
    if a.dtype == "uint8":
        return a // b
    is_below = te.not_equal(a < 0, b < 0) & te.not_equal(a % b, 0)
    return te.select(is_below, a // b + 1, a // b)


elementwise_operator("Div")(elementwise(_divide))


@elementwise_operator("Mod")
def mod(call: Call) -> Tensor:
    """The remainder with the sign of the divisor, or with that of the dividend if `fmod` is set."""
    remainder = _remainder_like_dividend if call.attribute("fmod", 0) else _remainder_like_divisor
    return map_elements(call, remainder)


def _remainder_like_divisor(a: Expr, b: Expr) -> Expr:
    if not te.is_float(a.dtype):
        return a % b
    rest = _float_remainder(a, b)
    return te.select(te.not_equal(rest, 0.0) & te.not_equal(rest < 0, b < 0), rest + b, rest)


def _remainder_like_dividend(a: Expr, b: Expr) -> Expr:
    if te.is_float(a.dtype):
        return _float_remainder(a, b)
    rest = a % b
    if a.dtype == "uint8":
        return rest
    return te.select(te.not_equal(rest, 0) & te.not_equal(a < 0, b < 0), rest - b, rest)


def _float_remainder(a: Expr, b: Expr) -> Expr:
    """a - trunc(a / b) * b, in float64: exact, by the fused multiplication, for quotients below 2**53."""
    x, y = te.abs(te.cast(a, "float64")), te.abs(te.cast(b, "float64"))
    rest = x - te.floor(x / y) * y
    # A quotient that was rounded up to a whole number is one too large.
    rest = te.select(rest < 0.0, rest + y, rest)
    rest = te.select(te.equal(y, math.inf) & (x < math.inf), x, rest)
    return te.cast(te.select(a < 0, -rest, rest), a.dtype)


@elementwise_operator("Pow")
def power(call: Call) -> Tensor:
    """The first operand to the power of the second, in the type of the first."""
    X, Y = call.tensor(0), call.tensor(1)
    exponent = known_number(call, 1)
    if te.is_float(X.dtype):
        chain = None if exponent is None else _float_chain(exponent)
        if chain is not None:
            return map_elements(call, lambda x, y: chain(x))
        return map_elements(call, lambda x, y: te.cast(te.pow(*_as_floats(x, y)), x.dtype))
    if te.is_float(Y.dtype):
        return map_elements(call, _rounded_power)
    return _integer_power(call)


def _float_chain(exponent: float) -> Callable[[Expr], Expr] | None:
    """Powers that networks use and that need no logarithm."""
    chains: dict[float, Callable[[Expr], Expr]] = {
        1.0: lambda x: x,
        2.0: lambda x: x * x,
        3.0: lambda x: x * x * x,
        -1.0: lambda x: 1.0 / x,
        # As in NumPy, minus infinity has none.
        0.5: te.sqrt,
    }
    return chains.get(float(exponent))


def _as_floats(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """A float base and any exponent in one type; an integer that float32 does not hold is computed in float64."""
    if not te.is_float(y.dtype) and DTYPES[y.dtype].bits > 16:
        return te.cast(x, "float64"), te.cast(y, "float64")
    dtype = x.dtype if not te.is_float(y.dtype) else te.promote(x.dtype, y.dtype)
    return te.cast(x, dtype), te.cast(y, dtype)


def _rounded_power(x: Expr, y: Expr) -> Expr:
    """An integer to a float power: what is whole up to the error of `pow` is taken as whole, not as just below."""
    result = te.pow(te.cast(x, "float64"), te.cast(y, "float64"))
    whole = round_half_even(result)
    return te.cast(te.select(te.abs(result - whole) <= te.abs(result) * 2.0**-50, whole, result), x.dtype)


def _integer_power(call: Call) -> Tensor:
    """The product of as many factors as the exponent says; a negative exponent has no integer power.

    More factors than bits leave 0, 1, -1 or a number that has overflowed, so that only their parity still counts.
    """
    X, Y = call.tensor(0), call.tensor(1)
    x, y = reader(call, 0), reader(call, 1)
    bits = DTYPES[X.dtype].bits
    k = te.reduce_axis(bits + 1, "k")
    one = te.constant(1, X.dtype)

    def factor(i: Sequence[Expr]) -> Expr:
        exponent = te.cast(y(i), "int64")
        return te.select(k < te.minimum(exponent, bits - exponent % 2), x(i), one)

    return te.compute(broadcast_shape(call, X.shape, Y.shape), lambda *i: te.prod(factor(i), axis=k), call.name())


@elementwise_operator("BitShift")
def bit_shift(call: Call) -> Tensor:
    """Bits moved to the left or to the right; a shift by the width or more, or by less than zero, leaves only signs."""
    shift = _shift_left if call.attribute("direction", "LEFT") == "LEFT" else _shift_right
    return map_elements(call, shift)


def _shift_left(x: Expr, y: Expr) -> Expr:
    bits = DTYPES[x.dtype].bits
    # The products wrap around as the bits fall out.
    moved = te.cast(te.cast(x, "int64") * _power_of_two(y), x.dtype)
    return te.select(_is_within(y, bits), moved, te.constant(0, x.dtype))


def _shift_right(x: Expr, y: Expr) -> Expr:
    bits = DTYPES[x.dtype].bits
    filling = te.select(x < 0, te.constant(-1, x.dtype), te.constant(0, x.dtype)) if x.dtype != "uint8" else 0
    # 2**63 is no int64, but a shift by 63 leaves only the sign.
    moved = te.cast(te.cast(x, "int64") // _power_of_two(y), x.dtype)
    return te.select(_is_within(y, min(bits, 63)), moved, filling)


def _is_within(y: Expr, bits: int) -> Expr:
    return (y >= 0) & (y < bits)


def _power_of_two(y: Expr) -> Expr:
    """2**y as int64 for 0 <= y < 64, of which 2**63 is negative."""
    exponent = te.cast(y, "int64")
    result: Expr = te.constant(1, "int64")
    for bit in range(6):
        is_set = te.not_equal(exponent // (1 << bit) % 2, 0)
        result = result * te.select(is_set, te.constant(1 << (1 << bit), "int64"), te.constant(1, "int64"))
    return result


def _bit_operator(combine: Callable[[Expr, Expr, Expr], Expr]) -> Callable[[Call], Tensor]:
    """The lowering of an operator that `combine` computes from both operands and the bits that both have."""

    def lower(call: Call) -> Tensor:
        A, B = call.tensor(0), call.tensor(1)
        a, b = reader(call, 0), reader(call, 1)
        common = _common_bits(call)
        return te.compute(
            broadcast_shape(call, A.shape, B.shape), lambda *i: combine(a(i), b(i), common[i]), call.name()
        )

    return lower


def _common_bits(call: Call) -> Tensor:
    """The bits that both operands have: a sum over the bits, since expressions have no bit operations."""
    A, B = call.tensor(0), call.tensor(1)
    a, b = reader(call, 0), reader(call, 1)
    shape = broadcast_shape(call, A.shape, B.shape)
    is_signed = A.dtype != "uint8"
    bit = te.reduce_axis(DTYPES[A.dtype].bits - is_signed, "bit")

    def digit(x: Expr) -> Expr:
        return te.cast(x, "int64") // _power_of_two(bit) % 2

    digits = te.compute(
        shape, lambda *i: te.sum(digit(a(i)) * digit(b(i)) * _power_of_two(bit), axis=bit), call.name("digits")
    )
    lowest = -(1 << (DTYPES[A.dtype].bits - 1))

    def with_sign(*i: Expr) -> Expr:
        if not is_signed:
            return te.cast(digits[i], A.dtype)
        return te.cast(te.select((a(i) < 0) & (b(i) < 0), digits[i] + lowest, digits[i]), A.dtype)

    return te.compute(shape, with_sign, call.name("common"))


elementwise_operator("BitwiseAnd")(_bit_operator(lambda a, b, common: common))
elementwise_operator("BitwiseOr")(_bit_operator(lambda a, b, common: a + b - common))
elementwise_operator("BitwiseXor")(_bit_operator(lambda a, b, common: a + b - common - common))
elementwise_operator("BitwiseNot")(elementwise(lambda x: 255 - x if x.dtype == "uint8" else -1 - x))
