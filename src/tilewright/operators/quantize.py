"""Quantisation: floats as integers with a scale and a zero point, for a tensor, along an axis, or in blocks of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright import te
from tilewright.operators.elementwise import element_type
from tilewright.operators.operands import known_number, own_axis, reader
from tilewright.operators.registry import Call, Facts, MisfitError, NotCompilableError, operator
from tilewright.te import Expr, Tensor

_RANGES = {"uint8": (0, 255), "int8": (-128, 127)}


def _parameter(call: Call, position: int) -> Callable[[Sequence[Expr]], Expr]:
    """How to read a scale or a zero point: one number, one for each place of an axis, or one for each block of it."""
    X, P = call.tensor(0), call.tensor(position)
    if P.ndim == 0 or P.shape == (1,):
        read = reader(call, position)
        return lambda i: read(i[:0] if P.ndim == 0 else [te.constant(0, "int64")])
    axis = own_axis(call, X.ndim)
    block = call.attribute("block_size", 0)
    if P.ndim == 1 and not block and P.shape != (X.shape[axis],):
        raise MisfitError(f"there are {P.shape[0]} scales or zero points for {X.shape[axis]} places of axis {axis}")
    if P.ndim == 1 and not block:
        return lambda i: P[i[axis]]
    if not block or P.ndim != X.ndim:
        raise NotCompilableError(f"{call.node.op} has parameters of shape {P.shape} for an input of shape {X.shape}")
    return lambda i: P[tuple(x // block if d == axis else x for d, x in enumerate(i))]


@operator("QuantizeLinear", facts=Facts(axis=1))
def quantize_linear(call: Call) -> Tensor:
    """round(x / scale) + zero point, kept within the integer type."""
    X = call.tensor(0)
    dtype = _quantized_type(call)
    scale = _parameter(call, 1)
    zero_point = _parameter(call, 2) if _is_given(call, 2) else None
    precision = call.attribute("precision", 0)
    compute = element_type(call, precision) if precision else te.promote(X.dtype, call.tensor(1).dtype)
    is_one = call.is_computed and known_number(call, 1) == 1

    def quantized(*i: Expr) -> Expr:
        x = te.cast(X[i], compute)
        x = x if is_one else x / te.cast(scale(i), compute)
        offset = None if zero_point is None else te.cast(zero_point(i), compute)
        return saturated(x, offset, dtype)

    return te.compute(X.shape, quantized, call.name())


def saturated(x: Expr, offset: Expr | None, dtype: str) -> Expr:
    """A float, rounded half to even, plus an offset as the nearest number of a small integer type.

    Bounded first, it is so small that a sum with 1.5 * 2**23 has no room for its fraction, and rounds it.
    """
    low, high = (te.constant(bound, x.dtype) for bound in _RANGES[dtype])
    no_room = 1.5 * (2.0**52 if x.dtype == "float64" else 2.0**23)
    if offset is None or _is_zero(offset):
        return te.cast(te.minimum(te.maximum(x, low), high) + no_room - no_room, dtype)
    bounded = te.minimum(te.maximum(x, low - offset), high - offset)
    return te.cast(bounded + no_room - no_room + offset, dtype)


def _is_zero(e: Expr) -> bool:
    return _is_zero(e.x) if isinstance(e, te.Cast) else isinstance(e, te.Const) and e.value == 0


def _is_given(call: Call, position: int) -> bool:
    return position < len(call.node.inputs) and bool(call.node.inputs[position])


def _quantized_type(call: Call) -> str:
    number = call.attribute("output_dtype", 0)
    if _is_given(call, 2):
        dtype = call.tensor(2).dtype
    else:
        dtype = element_type(call, number) if number else "uint8"
    if dtype not in _RANGES:
        raise NotCompilableError(f"{call.node.op} gives {dtype}; only int8 and uint8 are compiled")
    return dtype


@operator("DequantizeLinear", facts=Facts(axis=1))
def dequantize_linear(call: Call) -> Tensor:
    """(x - zero point) * scale, in the type of the scale or in the one asked for."""
    X = call.tensor(0)
    scale = _parameter(call, 1)
    zero_point = _parameter(call, 2) if _is_given(call, 2) else None
    number = call.attribute("output_dtype", 0)
    dtype = element_type(call, number) if number else call.tensor(1).dtype
    if te.is_float(X.dtype):
        raise NotCompilableError(f"DequantizeLinear of {X.dtype} is not compiled")

    def dequantized(*i: Expr) -> Expr:
        x = te.cast(X[i], "int32")
        offset = x if zero_point is None else x - te.cast(zero_point(i), "int32")
        return te.cast(te.cast(offset, "float32") * te.cast(scale(i), "float32"), dtype)

    return te.compute(X.shape, dequantized, call.name())


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: Call) -> tuple[Tensor, ...]:
    """A tensor quantised to uint8 with the scale and zero point that its own range asks for."""
    X = call.tensor(0)
    low, high = _extreme(call, te.min), _extreme(call, te.max)
    lowest = te.compute((), lambda: te.minimum(low[()], 0.0), call.name("lowest"))

    def scale_of() -> Expr:
        span = te.maximum(high[()], 0.0) - lowest[()]
        return te.select(te.equal(span, 0.0), te.constant(1.0 / 255.0, X.dtype), span / 255.0)

    scale = te.compute((), scale_of, call.name("scale"))
    point = te.compute(
        (),
        lambda: saturated(-lowest[()] / scale[()], None, "uint8"),
        call.name("zero"),
    )
    quantized = te.compute(
        X.shape,
        lambda *i: saturated(X[i] / scale[()], te.cast(point[()], X.dtype), "uint8"),
        call.name(),
    )
    return quantized, scale, point


def _extreme(call: Call, op: Callable[..., Expr]) -> Tensor:
    X = call.tensor(0)
    axes = [te.reduce_axis(extent, f"k{d}") for d, extent in enumerate(X.shape)]
    return te.compute((), lambda: op(X[tuple(axes)], axis=axes) if axes else X[()], call.name("extreme"))
