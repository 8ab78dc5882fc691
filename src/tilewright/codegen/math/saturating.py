"""tanh and erf: odd functions that approach 1 exponentially.

Both come from c = 1 - 2^-h with h >= 0: tanh|x| = c / (2 - c) for 2^-h = exp(-2|x|), and erf|x| = c for
h = -log2(1 - erf|x|), which is a smooth function that a polynomial without cancellation approximates. c keeps its
digits both where it is small (a sum 1 - exp would not) and near 1 (where a quotient of polynomials would not).
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.math.arithmetic import at_most, const_like, integer_and_power, polynomial


@dataclass(frozen=True, slots=True)
class _Complement:
    """1 - 2^(-h): h is `per_unit` times the argument, and the polynomial in r is (1 - 2^(-per_unit r)) / r."""

    per_unit: float
    coefficients: tuple[float, ...]


_TWO_LOG2_E = 2.8853900817779268

# From here on the functions round to 1.
_TANH_SATURATION = {"float32": 9.02, "float64": 19.07}
_ERF_SATURATION = {"float32": 3.93, "float64": 5.93}

# (1 - exp(-2 r)) / r for |r| <= ln(2)/4, exactly 2 at r = 0: relative error 2^-26.1 and 2^-55.6.
_TANH_COMPLEMENT = {
    "float32": _Complement(
        _TWO_LOG2_E,
        (2.0, -2.0, 1.3333234786987305, -0.6666629910469055, 0.2677297592163086, -0.08920034766197205),
    ),
    "float64": _Complement(
        _TWO_LOG2_E,
        (
            2.0, -2.000000000000002, 1.3333333333333348, -0.6666666666651732, 0.26666666666608557,
            -0.0888888891681434, 0.02539682547421618, -0.006349185084784299, 0.0014109301311570912,
            -0.00028289454317045545, 5.143368211493785e-05,
        ),
    ),
}  # fmt: skip

# (1 - 2^-r) / r for |r| <= 1/2: relative error 2^-26.2 and 2^-54.7.
_ERF_COMPLEMENT = {
    "float32": _Complement(
        1.0,
        (
            0.6931471824645996, -0.24022650718688965, 0.055503666400909424, -0.009618070907890797,
            0.0013387739891186357, -0.00015459407586604357,
        ),
    ),
    "float64": _Complement(
        1.0,
        (
            0.6931471805599453, -0.2402265069591007, 0.05550410866482345, -0.00961812910761987,
            0.0013333558146041834, -0.00015403530424921592, 1.5252734139433146e-05, -1.321545092178421e-06,
            1.01779492827065e-07, -7.071182390532192e-09, 4.4701905792676896e-10,
        ),
    ),
}  # fmt: skip

# -log2(1 - erf(x)) / x on [0, saturation]: relative error of erf 2^-27.4 and 2^-55.1.
_ERF_EXPONENT = {
    "float32": (
        1.6279070377349854, 0.9184474349021912, 0.1482793092727661, -0.02764202654361725, -0.00021000676497351378,
        0.00238078273832798, -0.0008982137660495937, 0.00016516257892362773, -1.2799156138498802e-05,
    ),
    "float64": (
        1.627907028611115, 0.9184481885265711, 0.14826952512260883, -0.027596515627057866, -0.0003018042734872652,
        0.0024471097175433163, -0.0008513781748536851, 3.736307323359732e-05, 9.29603747401089e-05,
        -4.270596319070414e-05, 4.623460382605419e-06, 4.466053568075797e-06, -2.8936180347212156e-06,
        7.927113227470952e-07, -4.839464439844286e-10, -1.0187451326299388e-07, 5.229849260337697e-08,
        -1.6189364176216808e-08, 3.540779699230004e-09, -5.640601330910731e-10, 6.456806870703705e-11,
        -5.055450388095585e-12, 2.4298188755836406e-13, -5.41267449863544e-15,
    ),
}  # fmt: skip


def tanh(b: FunctionBuilder, x: Value) -> Value:
    magnitude = at_most(b, b.intrinsic("fabs", x), _TANH_SATURATION[x.dtype])
    c = _complement_of_power(b, magnitude, _TANH_COMPLEMENT[x.dtype])
    return b.intrinsic("copysign", b.fdiv(c, b.fsub(const_like(b, 2.0, x), c)), x)


def erf(b: FunctionBuilder, x: Value) -> Value:
    magnitude = at_most(b, b.intrinsic("fabs", x), _ERF_SATURATION[x.dtype])
    h = b.binary("fmul", magnitude, polynomial(b, magnitude, _ERF_EXPONENT[x.dtype]))
    return b.intrinsic("copysign", _complement_of_power(b, h, _ERF_COMPLEMENT[x.dtype]), x)


def _complement_of_power(b: FunctionBuilder, q: Value, function: _Complement) -> Value:
    """1 - 2^(-per_unit q) as 2^-k (1 - 2^(-per_unit r)) + (1 - 2^-k), q = k / per_unit + r.

    The last term is exact. It is 0 where q is small, so nothing cancels; elsewhere the factor 2^-k makes the rounding
    of k / per_unit harmless, which exp needs two constants for.
    """
    minus_k, scale = integer_and_power(b, q, -function.per_unit)
    r = b.fma(minus_k, const_like(b, 1 / function.per_unit, q), q)
    p = b.binary("fmul", r, polynomial(b, r, function.coefficients))
    return b.fma(scale, p, b.binary("fsub", const_like(b, 1.0, q), scale))
