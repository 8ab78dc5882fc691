"""The transposed convolution, without the multiplications by zero that its definition has.

Input row i and kernel row r meet in output row i * stride + r - padding. So output row y meets only those kernel rows
that are y + padding modulo the stride: r = (y + padding) % stride + stride * t, for t = 0, 1, ..., and there the
input row is (y + padding) // stride - t.
"""

from __future__ import annotations

from tilewright import te
from tilewright.errors import UsageError
from tilewright.te import Expr
from tilewright.workloads.computation import Computation
from tilewright.workloads.padding import inside


def transposed_conv2d(
    shape: tuple[int, int, int, int], channels: int, kernel: tuple[int, int], *, stride: int, padding: int
) -> Computation:
    """X[n, y, x, c] with W[r, s, c, f] to Y[n, y, x, f]."""
    batch, height, width, ci = shape
    rows = _output("height", height, kernel[0], stride, padding)
    columns = _output("width", width, kernel[1], stride, padding)
    last_y, last_x = (kernel[0] - 1) // stride, (kernel[1] - 1) // stride
    X = te.placeholder(shape, name="X")
    W = te.placeholder((*kernel, ci, channels), name="W", constant=True)
    P = te.compute(
        (batch, (rows - 1 + padding) // stride + last_y + 1, (columns - 1 + padding) // stride + last_x + 1, ci),
        lambda n, y, x, c: te.select(
            inside(y, height, last_y) & inside(x, width, last_x), X[n, y - last_y, x - last_x, c], 0.0
        ),
        "padded",
    )
    t, u, c = te.reduce_axis(last_y + 1, "t"), te.reduce_axis(last_x + 1, "u"), te.reduce_axis(ci, "c")

    def weight(y: Expr, x: Expr, f: Expr) -> Expr:
        r, s = (y + padding) % stride + t * stride, (x + padding) % stride + u * stride
        if kernel[0] % stride == 0 and kernel[1] % stride == 0:
            return W[r, s, c, f]
        return te.select((r < kernel[0]) & (s < kernel[1]), W[r, s, c, f], 0.0)

    Y = te.compute(
        (batch, rows, columns, channels),
        lambda n, y, x, f: te.sum(
            P[n, (y + padding) // stride + last_y - t, (x + padding) // stride + last_x - u, c] * weight(y, x, f),
            axis=[t, u, c],
        ),
        "conv",
    )
    return Computation((X, W), Y)


def _output(what: str, size: int, kernel: int, stride: int, padding: int) -> int:
    result = (size - 1) * stride + kernel - 2 * padding
    if result <= 0:
        raise UsageError(
            f"a transposed convolution must leave an output: along the {what} it has "
            f"({size} - 1)*{stride} + {kernel} - 2*{padding} = {result} elements; make the padding smaller"
        )
    return result
