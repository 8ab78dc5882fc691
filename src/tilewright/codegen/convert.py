"""Conversions between element types, lane by lane.

Half types are computed in float32: `widen` and `narrow` are their way from and to memory. Where the target has no
instruction they are written with integer operations, so that no call into a library arises.
"""

from __future__ import annotations

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.target import Target
from tilewright.te import DTYPES, is_float

HALF_TYPES = ("float16", "bfloat16")


def compute_dtype(dtype: str) -> str:
    """The type in which values of `dtype` are computed."""
    return "float32" if dtype in HALF_TYPES else dtype


def widen(b: FunctionBuilder, target: Target, bits: Value, dtype: str) -> Value:
    """The float32 value of the 16 bits of a half type."""
    if dtype == "bfloat16":
        return b.bitcast(_int(b, "shl", b.convert("zext", bits, "int32"), 16), "float32")
    if target.has_float16_conversion:
        return b.convert("fpext", b.bitcast(bits, "float16"), "float32")
    h = b.convert("zext", bits, "int32")
    magnitude = _int(b, "shl", _int(b, "and", h, 0x7FFF), 13)
    finite = b.fmul(b.bitcast(magnitude, "float32"), b.const(2.0**112, "float32", h.lanes))
    special = _int(b, "or", magnitude, 0x7F800000)
    is_finite = b.compare("ult", _int(b, "and", h, 0x7C00), b.const(0x7C00, "int32", h.lanes))
    size = b.select(is_finite, b.bitcast(finite, "int32"), special)
    return b.bitcast(b.binary("or", size, _int(b, "shl", _int(b, "and", h, 0x8000), 16)), "float32")


def narrow(b: FunctionBuilder, target: Target, x: Value, dtype: str) -> Value:
    """The 16 bits of a half type nearest to a float32 value, ties to even."""
    if dtype == "bfloat16":
        return _narrow_bfloat16(b, x)
    if target.has_float16_conversion:
        # LLVM would take the sign of a float32 result from the float64 that it comes from, which x86 cannot convert.
        single = b.intrinsic("arithmetic.fence", x) if target.arch == "x86_64" else x
        return b.bitcast(b.convert("fptrunc", single, "float16"), "int16")
    return _narrow_float16(b, x)


def _narrow_bfloat16(b: FunctionBuilder, x: Value) -> Value:
    bits = b.bitcast(x, "int32")
    odd = _int(b, "and", _int(b, "lshr", bits, 16), 1)
    rounded = b.binary("add", _int(b, "add", bits, 0x7FFF), odd)
    quiet = _int(b, "or", bits, 0x400000)
    chosen = b.select(b.compare("uno", x, x), quiet, rounded)
    return b.convert("trunc", _int(b, "lshr", chosen, 16), "int16")


def _narrow_float16(b: FunctionBuilder, x: Value) -> Value:
    bits = b.bitcast(x, "int32")
    size = _int(b, "and", bits, 0x7FFFFFFF)
    is_nan = b.compare("uno", x, x)
    special = b.select(is_nan, b.const(0x7E00, "int32", x.lanes), b.const(0x7C00, "int32", x.lanes))
    # Adding 0.5 aligns the mantissa of a subnormal result with the last bits of the sum, rounded by the addition.
    half = b.const(0.5, "float32", x.lanes)
    small = _int(b, "sub", b.bitcast(b.binary("fadd", b.bitcast(size, "float32"), half), "int32"), 0x3F000000)
    odd = _int(b, "and", _int(b, "lshr", size, 13), 1)
    normal = _int(b, "lshr", b.binary("add", _int(b, "add", size, 0xC8000FFF - (1 << 32)), odd), 13)
    is_small = b.compare("ult", size, b.const(0x38800000, "int32", x.lanes))
    is_special = b.compare("uge", size, b.const(0x47800000, "int32", x.lanes))
    result = b.select(is_special, special, b.select(is_small, small, normal))
    sign = _int(b, "and", _int(b, "lshr", bits, 16), 0x8000)
    return b.convert("trunc", b.binary("or", result, sign), "int16")


def _int(b: FunctionBuilder, opcode: str, x: Value, amount: int) -> Value:
    return b.binary(opcode, x, b.const(amount, x.dtype, x.lanes))


def convert(b: FunctionBuilder, target: Target, x: Value, dtype: str) -> Value:
    """`x` as a value of `dtype`; a half type rounds, and the result is held in float32."""
    if dtype in HALF_TYPES:
        is_double = x.dtype == "float64" and dtype == "float16"
        single = _round_to_odd(b, x) if is_double else convert(b, target, x, "float32")
        return widen(b, target, narrow(b, target, single, dtype), dtype)
    if x.dtype == dtype:
        return x
    if dtype == "bool":
        return b.compare("une" if is_float(x.dtype) else "ne", x, b.const(0, x.dtype, x.lanes))
    if is_float(x.dtype):
        return _from_float(b, x, dtype)
    if is_float(dtype):
        return b.convert("uitofp" if x.dtype in ("bool", "uint8") else "sitofp", x, dtype)
    return _resize(b, x, dtype)


def _round_to_odd(b: FunctionBuilder, x: Value) -> Value:
    """A float64 value as a float32 that rounds to the same float16: the last bit of an inexact one is set.

    Rounded to the nearest instead, it could become a tie that the value is not, and be rounded the wrong way again.
    """
    nearest = b.convert("fptrunc", x, "float32")
    back = b.convert("fpext", nearest, "float64")
    is_larger = b.compare("ogt", b.intrinsic("fabs", back), b.intrinsic("fabs", x))
    bits = b.bitcast(nearest, "int32")
    toward_zero = b.binary("sub", bits, b.convert("zext", is_larger, "int32"))
    is_inexact = b.convert("zext", b.compare("une", back, x), "int32")
    return b.bitcast(b.binary("or", toward_zero, is_inexact), "float32")


def _from_float(b: FunctionBuilder, x: Value, dtype: str) -> Value:
    if is_float(dtype):
        return b.convert("fpext" if dtype == "float64" else "fptrunc", x, dtype)
    wide = "int64" if dtype == "int64" else "int32"
    return _resize(b, b.convert("fptosi", x, wide), dtype)


def _resize(b: FunctionBuilder, x: Value, dtype: str) -> Value:
    """One integer type or bool to another; narrowing wraps around."""
    source, wanted = DTYPES[x.dtype].bits, DTYPES[dtype].bits
    if source == wanted:
        return x._replace(dtype=dtype)
    if source > wanted:
        return b.convert("trunc", x, dtype)
    return b.convert("zext" if x.dtype in ("bool", "uint8") else "sext", x, dtype)
