"""Sums and products with their rounding errors, for results that need more digits than their type has.

No operation here carries flags: fusing or reordering any of them would lose the very error that is computed.
"""

from __future__ import annotations

from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.math.arithmetic import const_like

_SPLITTER = {"float32": 2.0**12 + 1, "float64": 2.0**27 + 1}


def sum_of_ordered(b: FunctionBuilder, large: Value, small: Value) -> tuple[Value, Value]:
    """`large + small` and its rounding error, exact when |large| >= |small| or large is 0 (Dekker)."""
    total = b.binary("fadd", large, small)
    return total, b.binary("fsub", small, b.binary("fsub", total, large))


def any_sum(b: FunctionBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    """`x + y` and its rounding error, whichever is larger (Knuth)."""
    total = b.binary("fadd", x, y)
    of_y = b.binary("fsub", total, x)
    of_x = b.binary("fsub", total, of_y)
    return total, b.binary("fadd", b.binary("fsub", x, of_x), b.binary("fsub", y, of_y))


def exact_product(b: FunctionBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    """`x y` and its rounding error (with fma, or by splitting the factors in halves as Veltkamp and Dekker do)."""
    product = b.binary("fmul", x, y)
    if b.has_fma:
        return product, b.fma(x, y, b.fneg(product))
    x_high, x_low = _halves(b, x)
    y_high, y_low = _halves(b, y)
    error = b.binary("fsub", b.binary("fmul", x_high, y_high), product)
    error = b.binary("fadd", error, b.binary("fmul", x_high, y_low))
    error = b.binary("fadd", error, b.binary("fmul", x_low, y_high))
    return product, b.binary("fadd", error, b.binary("fmul", x_low, y_low))


def _halves(b: FunctionBuilder, x: Value) -> tuple[Value, Value]:
    scaled = b.binary("fmul", x, const_like(b, _SPLITTER[x.dtype], x))
    high = b.binary("fsub", scaled, b.binary("fsub", scaled, x))
    return high, b.binary("fsub", x, high)
