"""The steps that several functions share: constants, polynomials, limits, rounding to a power of two."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.math.float_format import FORMATS


def in_float64(function: Callable[[FunctionBuilder, Value], Value]) -> Callable[[FunctionBuilder, Value], Value]:
    """The function for float32 as well: its result in float64, rounded once."""

    @functools.wraps(function)
    def of_either(b: FunctionBuilder, x: Value) -> Value:
        if x.dtype == "float64":
            return function(b, x)
        return b.convert("fptrunc", function(b, b.convert("fpext", x, "float64")), x.dtype)

    return of_either


def const_like(b: FunctionBuilder, value: float, x: Value) -> Value:
    return b.const(value, x.dtype, x.lanes)


def polynomial(b: FunctionBuilder, x: Value, coefficients: Sequence[float]) -> Value:
    """`c[0] + c[1] x + c[2] x^2 + ...` by Horner's rule.

    Loops over vectors keep many independent chains in flight, so the fewest instructions beat a shorter chain.
    """
    result = const_like(b, coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        result = b.fma(result, x, const_like(b, coefficient, x))
    return result


def at_most(b: FunctionBuilder, x: Value, limit: float) -> Value:
    """`min(x, limit)` where NaN stays NaN; this operand order is one instruction on x86."""
    bound = const_like(b, limit, x)
    return b.select(b.compare("olt", bound, x), bound, x)


def at_least(b: FunctionBuilder, x: Value, limit: float) -> Value:
    """`max(x, limit)` where NaN stays NaN; this operand order is one instruction on x86."""
    bound = const_like(b, limit, x)
    return b.select(b.compare("ogt", bound, x), bound, x)


def integer_and_power(b: FunctionBuilder, x: Value, factor: float) -> tuple[Value, Value]:
    """`k` and `2^k` as floats, where k is the integer nearest to `x factor` and 2^k is a normal number.

    Adding 1.5 * 2^mantissa_bits rounds to an integer and leaves it in the low bits of the sum; with the exponent bias
    added as well, a shift makes those bits the float 2^k. Without flags, lest reassociation undo the rounding.
    """
    layout = FORMATS[x.dtype]
    magic = const_like(b, 1.5 * 2.0**layout.mantissa_bits + layout.bias, x)
    rounded = b.fma(x, const_like(b, factor, x), magic)
    shift = b.const(layout.mantissa_bits, layout.int_dtype, x.lanes)
    power = b.bitcast(b.binary("shl", b.bitcast(rounded, layout.int_dtype), shift), x.dtype)
    return b.binary("fsub", rounded, magic), power
