"""Mathematical functions as vector code: only instructions, never a call into a math library.

`emit_function` and `emit_pow` write a function of float32 or float64 values of any number of lanes. They have no
branches and no tables, so that every lane costs the same. Infinities, NaN, signed zeros and subnormal numbers give
what NumPy gives. Each function is one module; its constants are beside it, with what they approximate.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.math.circular import cos, sin, tan
from tilewright.codegen.math.exponential import exp, sigmoid
from tilewright.codegen.math.hyperbolic import acosh, asinh, atanh, cosh, sinh
from tilewright.codegen.math.inverse_circular import acos, asin, atan
from tilewright.codegen.math.logarithm import log
from tilewright.codegen.math.power import emit_pow
from tilewright.codegen.math.rounding import ceil, floor
from tilewright.codegen.math.saturating import erf, tanh
from tilewright.errors import CodegenError

__all__ = ["FUNCTIONS", "emit_function", "emit_pow"]


def absolute(b: FunctionBuilder, x: Value) -> Value:
    return b.intrinsic("fabs", x)


def sqrt(b: FunctionBuilder, x: Value) -> Value:
    return b.intrinsic("sqrt", x)


def rsqrt(b: FunctionBuilder, x: Value) -> Value:
    return b.fdiv(b.const(1.0, x.dtype, x.lanes), b.intrinsic("sqrt", x))


FUNCTIONS: dict[str, Callable[[FunctionBuilder, Value], Value]] = {
    "abs": absolute,
    "acos": acos,
    "acosh": acosh,
    "asin": asin,
    "asinh": asinh,
    "atan": atan,
    "atanh": atanh,
    "ceil": ceil,
    "cos": cos,
    "cosh": cosh,
    "erf": erf,
    "exp": exp,
    "floor": floor,
    "log": log,
    "rsqrt": rsqrt,
    "sigmoid": sigmoid,
    "sin": sin,
    "sinh": sinh,
    "sqrt": sqrt,
    "tan": tan,
    "tanh": tanh,
}


def emit_function(b: FunctionBuilder, name: str, x: Value) -> Value:
    """Write the function `name` of `x`, lane by lane."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise CodegenError(f"a math function must be one of {', '.join(FUNCTIONS)}; got {name!r}")
    if x.dtype not in ("float32", "float64"):
        raise CodegenError(f"{name} is written for float32 and float64; got {x.dtype}: convert it to float32 first")
    return function(b, x)
