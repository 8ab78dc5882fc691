"""Products and convolutions of 8-bit integers: sums in int32, and rounded back to 8 bits where that is asked for.

A zero point is taken off each operand before it is multiplied, so that padding is zero. Scales and zero points are
single numbers, or one for each row of A, column of B or output channel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright import te
from tilewright.operators.convolution import convolve, filter_of, flatten
from tilewright.operators.layout import Layout, spatial_operator
from tilewright.operators.matmul import MatMul, matmul_of, multiply
from tilewright.operators.operands import element
from tilewright.operators.quantize import saturated
from tilewright.operators.registry import Call, NotCompilableError, operator
from tilewright.operators.window import pad_windows, windows
from tilewright.te import Expr, Tensor


@operator("MatMulInteger")
def matmul_integer(call: Call) -> Tensor:
    product = matmul_of(call, call.tensor(0), call.tensor(1))
    return _integer_product(call, product, call.optional(2), call.optional(3))


@operator("QLinearMatMul")
def qlinear_matmul(call: Call) -> Tensor:
    A, B = call.tensor(0), call.tensor(3)
    product = matmul_of(call, A, B)
    summed = _integer_product(call, product, call.optional(2), call.optional(5))
    a_scale, b_scale = call.tensor(1), call.tensor(4)

    def requantized(*i: Expr) -> Expr:
        scale = _of_row(a_scale, product, i) * _of_column(b_scale, product, i)
        return _requantized(call, summed[i], scale, 6, 7)

    return te.compute(summed.shape, requantized, call.name("requantized"))


def _integer_product(call: Call, product: MatMul, a_zero: Tensor | None, b_zero: Tensor | None) -> Tensor:
    def term(a: Expr, b: Expr, i: Sequence[Expr]) -> Expr:
        x, y = te.cast(a, "int32"), te.cast(b, "int32")
        x = x if a_zero is None else x - te.cast(_of_row(a_zero, product, i), "int32")
        y = y if b_zero is None else y - te.cast(_of_column(b_zero, product, i), "int32")
        return x * y

    return multiply(call, product, term)


def _of_row(T: Tensor, product: MatMul, i: Sequence[Expr]) -> Expr:
    """A parameter of A: one number, one for each row, or of the shape [*batch, rows, 1]."""
    rows = i[: len(product.batch) + len(product.rows)]
    return element(T, rows if T.ndim < 2 else (*rows, te.constant(0, "int64")))


def _of_column(T: Tensor, product: MatMul, i: Sequence[Expr]) -> Expr:
    """A parameter of B: one number, one for each column, or of the shape [*batch, 1, columns]."""
    batch, columns = i[: len(product.batch)], i[len(product.batch) + len(product.rows) :]
    return element(T, (*batch, te.constant(0, "int64"), *columns))


@spatial_operator("ConvInteger")
def conv_integer(call: Call, layout: Layout) -> Tensor:
    return flatten(call, _integer_convolution(call, layout, 0, 1, 2, 3), layout, None)


@spatial_operator("QLinearConv")
def qlinear_conv(call: Call, layout: Layout) -> Tensor:
    summed = _integer_convolution(call, layout, 0, 3, 2, 5)
    x_scale, w_scale, bias = call.tensor(1), call.tensor(4), call.optional(8)

    def requantized(total: Expr, f: Expr) -> Expr:
        value = total if bias is None else total + bias[f]
        return _requantized(call, value, element(x_scale, (f,)) * element(w_scale, (f,)), 6, 7)

    return flatten(call, summed, layout, requantized)


def _integer_convolution(call: Call, layout: Layout, x: int, w: int, x_zero: int, w_zero: int) -> Tensor:
    """The sums of a convolution whose operands stand at these positions."""
    X, x_point, w_point = call.tensor(x), call.optional(x_zero), call.optional(w_zero)
    weights = filter_of(call, w, layout)
    dimensions = windows(call, layout.spatial(X.shape), weights.kernel)
    centred = X if x_point is None else te.compute(X.shape, _minus(X, x_point), call.name("centred"))
    P = pad_windows(call, centred, layout, dimensions)

    def term(value: Expr, weight: Expr, f: Expr) -> Expr:
        factor = te.cast(weight, "int32")
        if w_point is not None:
            factor = factor - te.cast(element(w_point, (f,)), "int32")
        return te.cast(value, "int32") * factor

    return convolve(call, P, weights, dimensions, term)


def _minus(X: Tensor, point: Tensor) -> Callable[..., Expr]:
    if point.shape not in ((), (1,)):
        raise NotCompilableError(f"the zero point of the input of a convolution has the shape {point.shape}")
    return lambda *i: te.cast(X[i], "int32") - te.cast(element(point, i), "int32")


def _requantized(call: Call, total: Expr, scale: Expr, y_scale: int, y_zero: int) -> Expr:
    """The sum in units of the output's scale, from its zero point; in float64, since int32 does not fit float32."""
    to, zero = call.tensor(y_scale), call.optional(y_zero)
    dtype = call.tensor(0).dtype if zero is None else zero.dtype
    if to.shape not in ((), (1,)) or dtype not in ("int8", "uint8"):
        raise NotCompilableError(f"{call.node.op} to {dtype} with a scale of shape {to.shape} is not compiled")
    one: tuple[Expr, ...] = (te.constant(0, "int64"),)
    value = te.cast(total, "float64") * te.cast(
        te.cast(scale, "float32") / te.cast(element(to, one), "float32"), "float64"
    )
    if zero is not None:
        value = value + te.cast(element(zero, one), "float64")
    return saturated(value, None, dtype)
