"""x ** y with the special cases of C99, which are NumPy's.

|x| ** y is exp(y log|x|). The product of y and the logarithm reaches about a thousand, and its absolute error becomes
the relative error of the result, so the logarithm needs ten bits more than the result has: float32 computes in float64,
float64 carries the logarithm in two numbers.
"""

from __future__ import annotations

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.math.arithmetic import at_least, at_most, const_like, integer_and_power, polynomial
from tilewright.codegen.math.double_word import exact_product, sum_of_ordered
from tilewright.codegen.math.exponential import clamp_to_exp_range, exp_of_sum
from tilewright.codegen.math.float_format import FORMATS
from tilewright.codegen.math.logarithm import LN2, split_exponent
from tilewright.codegen.math.rounding import floor
from tilewright.errors import CodegenError

# Whatever |x| != 1 is, an exponent of this size gives 0 or infinity already, and |x| = 1 gives 1 as for infinity.
_LARGEST_EXPONENT = 2.0**80

# log2((1 + s) / (1 - s)) / s in s^2 on [0, 0.02944]; relative error 2^-37.8.
_LOG2 = (2.8853900817901468, 0.9617966732760449, 0.5770835961219909, 0.41167211302656814, 0.34074039359078384)

# 2^r on [-0.5, 0.5]; relative error 2^-28.9.
_EXP2 = (
    1.0, 0.6931472028999593, 0.2402264791240139, 0.05550332369002807, 0.00961843681057254, 0.0013398916614390738,
    0.00015353702678415555,
)  # fmt: skip

# (log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5 in s^2 on [0, 0.02944]; relative error of the logarithm 2^-65.
_LOG_TAIL = (
    0.4000000000000226, 0.2857142857009624, 0.22222222520449023, 0.181817843255928, 0.15386759081729115,
    0.13256780041975053, 0.13196655197388196,
)  # fmt: skip

_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)


def emit_pow(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """Write `x ** y`, lane by lane; x and y have one type."""
    if x.dtype not in FORMATS or x.type != y.type:
        raise CodegenError(f"pow takes two values of float32 or float64; got {x.type} and {y.type}: convert them first")
    one, zero, infinity = (const_like(b, value, x) for value in (1.0, 0.0, float("inf")))
    magnitude = b.intrinsic("fabs", x)
    exponent = at_least(b, at_most(b, y, _LARGEST_EXPONENT), -_LARGEST_EXPONENT)
    power = _power_float32 if x.dtype == "float32" else _power_float64
    result = power(b, magnitude, exponent)

    whole = floor(b, y)
    half = b.binary("fmul", y, const_like(b, 0.5, x))
    odd = b.binary("and", b.compare("oeq", whole, y), b.compare("une", floor(b, half), half))
    result = b.select(odd, b.intrinsic("copysign", result, x), result)

    negative = b.binary("and", b.compare("olt", x, zero), b.compare("olt", magnitude, infinity))
    no_real_power = b.binary("and", negative, b.compare("une", whole, y))
    undefined = b.binary("or", no_real_power, b.compare("uno", x, y))
    result = b.select(undefined, const_like(b, float("nan"), x), result)
    always_one = b.binary("or", b.compare("oeq", x, one), b.compare("oeq", y, zero))
    return b.select(always_one, one, result)


def _power_float32(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """`x ** y` for x >= 0 as 2^(y log2 x) in float64, whose range makes subnormal results and overflow disappear."""
    exponent, mantissa = split_exponent(b, x)
    exponent = _log_at_limits(b, x, exponent)
    m = b.convert("fpext", mantissa, "float64")
    one = const_like(b, 1.0, m)
    s = b.fdiv(b.fsub(m, one), b.fadd(m, one))
    logarithm = b.fma(s, polynomial(b, b.fmul(s, s), _LOG2), b.convert("fpext", exponent, "float64"))
    product = b.fmul(b.convert("fpext", y, "float64"), logarithm)
    product = at_least(b, at_most(b, product, 130.0), -160.0)

    k, scale = integer_and_power(b, product, 1.0)
    p = polynomial(b, b.binary("fsub", product, k), _EXP2)
    return b.convert("fptrunc", b.binary("fmul", p, scale), "float32")


def _power_float64(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """`x ** y` for x >= 0 as exp(y log x) with the logarithm and the product in two numbers each."""
    high, low = _log_in_two(b, x)
    product, error = exact_product(b, y, _log_at_limits(b, x, high))
    error = b.fma(y, low, error)
    clamped = clamp_to_exp_range(b, product)
    # Where the product was clamped, its error is of no meaning (and NaN where the logarithm is infinite).
    error = b.select(b.compare("oeq", clamped, product), error, const_like(b, 0.0, x))
    return exp_of_sum(b, clamped, error)


def _log_at_limits(b: FunctionBuilder, x: Value, logarithm: Value) -> Value:
    infinity = const_like(b, float("inf"), x)
    logarithm = b.select(b.compare("oeq", x, infinity), infinity, logarithm)
    return b.select(b.compare("oeq", x, const_like(b, 0.0, x)), b.fneg(infinity), logarithm)


def _log_in_two(b: FunctionBuilder, x: Value) -> tuple[Value, Value]:
    """log(x) as a sum of two numbers, with a relative error of about 2^-64.

    With m = (1 + s) / (1 - s): log m = 2 s + 2/3 s^3 + ..., the first two terms in two numbers each.
    """
    exponent, m = split_exponent(b, x)
    one, two_thirds, two_thirds_low = (const_like(b, value, x) for value in (1.0, *_TWO_THIRDS))
    s, s_low = _quotient_in_two(b, b.binary("fsub", m, one), *sum_of_ordered(b, one, m))
    twice = b.binary("fadd", s, s)

    square, square_low = exact_product(b, s, s)
    square_low = b.fma(twice, s_low, square_low)
    cube, cube_low = exact_product(b, square, s)
    cube_low = b.fma(square, s_low, b.fma(square_low, s, cube_low))
    term, term_low = exact_product(b, cube, two_thirds)
    term_low = b.fma(cube_low, two_thirds, b.fma(cube, two_thirds_low, term_low))
    tail = b.fmul(b.fmul(cube, square), polynomial(b, square, _LOG_TAIL))

    log_m, log_m_low = sum_of_ordered(b, twice, term)
    ln2_high, ln2_low = (const_like(b, part, x) for part in LN2[x.dtype])
    total, total_low = sum_of_ordered(b, b.binary("fmul", exponent, ln2_high), log_m)
    # From the smallest to the largest, so that the sum loses least.
    low = b.fadd(b.fma(const_like(b, 2.0, x), s_low, term_low), tail)
    low = b.fadd(b.fma(exponent, ln2_low, low), log_m_low)
    return sum_of_ordered(b, total, b.fadd(low, total_low))


def _quotient_in_two(b: FunctionBuilder, x: Value, y: Value, y_low: Value) -> tuple[Value, Value]:
    """`x / (y + y_low)` as a quotient and its remainder divided by y."""
    reciprocal = b.fdiv(const_like(b, 1.0, x), y)
    quotient = b.binary("fmul", x, reciprocal)
    product, error = exact_product(b, quotient, y)
    remainder = b.binary("fsub", b.binary("fsub", x, product), error)
    remainder = b.binary("fsub", remainder, b.binary("fmul", quotient, y_low))
    return quotient, b.binary("fmul", remainder, reciprocal)
