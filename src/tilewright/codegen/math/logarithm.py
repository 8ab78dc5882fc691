"""log, and the split of a number into exponent and mantissa that pow shares.

log(x) = e ln 2 + log(m) with x = 2^e m and m in [sqrt(1/2), sqrt(2)). With f = m - 1, float32 takes a polynomial in f;
float64 takes one in s^2, s = f / (2 + f), since the division is cheaper than the many more terms in f.
"""

from __future__ import annotations

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.math.arithmetic import const_like, polynomial
from tilewright.codegen.math.float_format import FORMATS

# High and low part of ln 2: a product of the high part and any exponent is exact without fma.
LN2 = {
    "float32": (0.69317626953125, -2.9088971132296138e-05),
    "float64": (0.6931471805601177, -1.7239444525614835e-13),
}

_SQRT_HALF_BITS = {"float32": 0x3F3504F3, "float64": 0x3FE6A09E667F3BCD}

# (log(1 + f) - f) / f^2 on [sqrt(1/2) - 1, sqrt(2) - 1]; relative error of log(1 + f) 2^-27.8.
_LOG_FLOAT32 = (
    -0.49999988079071045, 0.33333325386047363, -0.2500159740447998, 0.20001953840255737, -0.16608795523643494,
    0.14182497560977936, -0.13245946168899536, 0.12899786233901978, -0.07608146965503693,
)  # fmt: skip

# (log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2 on [0, 0.02944]; relative error of the logarithm 2^-58.9.
_LOG_FLOAT64 = (
    0.6666666666666734, 0.3999999999941428, 0.28571428742480887, 0.22222198563003556, 0.1818356488696734,
    0.15314035403176962, 0.14796109112863373,
)  # fmt: skip


def log(b: FunctionBuilder, x: Value) -> Value:
    exponent, mantissa = split_exponent(b, x)
    f = b.fsub(mantissa, const_like(b, 1.0, x))
    ln2_high, ln2_low = (const_like(b, part, x) for part in LN2[x.dtype])
    low = b.fmul(exponent, ln2_low)
    if x.dtype == "float32":
        rest = b.fma(b.fmul(f, f), polynomial(b, f, _LOG_FLOAT32), low)
    else:
        rest = _log1p_minus_f(b, f, low)
    result = b.fma(exponent, ln2_high, b.binary("fadd", f, rest))
    return _with_special_values(b, x, result)


def split_exponent(b: FunctionBuilder, x: Value) -> tuple[Value, Value]:
    """`(e, m)` as floats, x = 2^e m and m in [sqrt(1/2), sqrt(2)), for finite x > 0, subnormal ones included."""
    layout = FORMATS[x.dtype]
    bits = layout.mantissa_bits
    offset = layout.bias + 1

    def integer(value: int) -> Value:
        return b.const(value, layout.int_dtype, x.lanes)

    subnormal = b.compare("olt", x, const_like(b, layout.min_normal, x))
    normalized = b.select(subnormal, b.fmul(x, const_like(b, 2.0**bits, x)), x)
    sqrt_half = _SQRT_HALF_BITS[x.dtype]
    # The exponent field, counted from sqrt(1/2) and kept positive, becomes a float as the low bits of 2^bits: this is
    # as cheap for 64 bits as for 32, where a conversion of 64-bit integers is not an instruction of AVX2.
    counted = b.binary("add", b.bitcast(normalized, layout.int_dtype), integer((offset << bits) - sqrt_half))
    field = b.binary("lshr", counted, integer(bits))
    as_float = b.bitcast(b.binary("or", field, integer((layout.bias + bits) << bits)), x.dtype)
    base = 2.0**bits + offset
    exponent = b.binary("fsub", as_float, b.select(subnormal, const_like(b, base + bits, x), const_like(b, base, x)))
    fraction = b.binary("and", counted, integer((1 << bits) - 1))
    return exponent, b.bitcast(b.binary("add", fraction, integer(sqrt_half)), x.dtype)


def _log1p_minus_f(b: FunctionBuilder, f: Value, low: Value) -> Value:
    """`log(1 + f) - f + low`; subtracting f^2 / 2 first keeps the rounding of s away from the leading digits."""
    half_square = b.fmul(const_like(b, 0.5, f), b.fmul(f, f))
    s = b.fdiv(f, b.fadd(f, const_like(b, 2.0, f)))
    z = b.fmul(s, s)
    correction = b.fma(z, polynomial(b, z, _LOG_FLOAT64), half_square)
    return b.binary("fsub", b.fma(s, correction, low), half_square)


def _with_special_values(b: FunctionBuilder, x: Value, result: Value) -> Value:
    infinity, zero = const_like(b, float("inf"), x), const_like(b, 0.0, x)
    pole = b.select(b.compare("oeq", x, zero), b.fneg(infinity), const_like(b, float("nan"), x))
    result = b.select(b.compare("oeq", x, infinity), infinity, result)
    return b.select(b.compare("ogt", x, zero), result, pole)
