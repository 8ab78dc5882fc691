"""exp and sigmoid.

exp(x) = 2^k 2^k exp(r) with k = round(x / (2 ln 2)) and |r| <= ln 2. An even power of two costs a longer polynomial
than the usual |r| <= ln(2)/2, but both factors 2^k are normal numbers made by one shift. Their two products overflow
to infinity and round to subnormal numbers by themselves, with no comparison, where a single factor 2^(2k) could not.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.math.arithmetic import at_least, at_most, const_like, integer_and_power, polynomial

_HALF_LOG2_E = 0.7213475204444817  # 1 / (2 ln 2)


@dataclass(frozen=True, slots=True)
class _ExpConstants:
    """`step_high + step_low` is 2 ln 2; a product of `step_high` and any k is exact without fma."""

    lowest: float
    highest: float
    step_high: float
    step_low: float
    coefficients: tuple[float, ...]


# Below `lowest` the result is 0, above `highest` infinity. The polynomials are exp(r) on [-0.6935, 0.6935], least
# maximum relative error with the first coefficient 1: 2^-26.0 for float32, 2^-56.0 for float64.
_EXP = {
    "float32": _ExpConstants(
        lowest=-104.0,
        highest=89.0,
        step_high=1.38629150390625,
        step_low=2.857213530660374e-06,
        coefficients=(
            1.0, 1.0, 0.5000003576278687, 0.1666661649942398, 0.04166119918227196, 0.00833597220480442,
            0.0014105492737144232, 0.0001962935202755034,
        ),
    ),
    "float64": _ExpConstants(
        lowest=-746.0,
        highest=710.0,
        step_high=1.3862943611202354,
        step_low=-3.447888905122967e-13,
        coefficients=(
            1.0, 1.0, 0.5, 0.16666666666666902, 0.041666666666684046, 0.008333333333272375, 0.0013888888885133855,
            0.00019841269893915194, 2.48015902252668e-05, 2.755729937981103e-06, 2.7556266624673365e-07,
            2.5055366038741533e-08, 2.105499160358266e-09, 1.590791304126538e-10,
        ),
    ),
}  # fmt: skip


def exp(b: FunctionBuilder, x: Value) -> Value:
    return _exp_in_range(b, clamp_to_exp_range(b, x))


def exp_of_sum(b: FunctionBuilder, x: Value, low: Value) -> Value:
    """`exp(x + low)` for a `low` far smaller than `x`, and `x` from `clamp_to_exp_range`."""
    return _exp_in_range(b, x, low)


def clamp_to_exp_range(b: FunctionBuilder, x: Value) -> Value:
    """`x`, or the nearest number whose exponential is already 0 or infinity."""
    constants = _EXP[x.dtype]
    return at_least(b, at_most(b, x, constants.highest), constants.lowest)


def sigmoid(b: FunctionBuilder, x: Value) -> Value:
    """1 / (1 + exp(-x)); exp(-|x|) cannot overflow, so small results keep all their digits."""
    negative_magnitude = b.fneg(b.intrinsic("fabs", x))
    e = _exp_in_range(b, at_least(b, negative_magnitude, _EXP[x.dtype].lowest))
    one = const_like(b, 1.0, x)
    numerator = b.select(b.compare("olt", x, const_like(b, 0.0, x)), e, one)
    return b.fdiv(numerator, b.fadd(e, one))


def _exp_in_range(b: FunctionBuilder, x: Value, low: Value | None = None) -> Value:
    constants = _EXP[x.dtype]
    k, scale = integer_and_power(b, x, _HALF_LOG2_E)
    r = b.fma(k, const_like(b, -constants.step_high, x), x)
    r = b.fma(k, const_like(b, -constants.step_low, x), r)
    if low is not None:
        r = b.binary("fadd", r, low)
    p = polynomial(b, r, constants.coefficients)
    return b.binary("fmul", b.binary("fmul", p, scale), scale)
