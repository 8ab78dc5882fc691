"""floor, ceil, and the nearest integer."""

from __future__ import annotations

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.math.arithmetic import const_like
from tilewright.codegen.math.float_format import FORMATS


def floor(b: FunctionBuilder, x: Value) -> Value:
    """The largest integer not above x.

    On an x86 from before SSE4.1 LLVM would call the math library, so the integer is found by arithmetic.
    """
    if b.has_rounding:
        return b.intrinsic("floor", x)
    near = nearest(b, x)
    above = b.compare("ogt", near, x)
    lower = b.binary("fsub", near, const_like(b, 1.0, x))
    return b.intrinsic("copysign", b.select(above, lower, near), x)


def ceil(b: FunctionBuilder, x: Value) -> Value:
    """The smallest integer not below x."""
    if b.has_rounding:
        return b.intrinsic("ceil", x)
    return b.fneg(floor(b, b.fneg(x)))


def nearest(b: FunctionBuilder, x: Value) -> Value:
    """The integer nearest to x, or x itself where it is too large to have a fraction, infinite or NaN."""
    if b.has_rounding:
        return b.intrinsic("rint", x)
    magnitude = b.intrinsic("fabs", x)
    # From 2^mantissa_bits on, neighbouring floats are integers: adding it drops the fraction.
    limit = const_like(b, 2.0 ** FORMATS[x.dtype].mantissa_bits, x)
    rounded = b.binary("fsub", b.binary("fadd", magnitude, limit), limit)
    return b.select(b.compare("olt", magnitude, limit), b.intrinsic("copysign", rounded, x), x)
