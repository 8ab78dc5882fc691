"""The capsule convolution: a convolution whose elements are 4x4 matrices, multiplied as matrices."""

from __future__ import annotations

from tilewright import te
from tilewright.te import Tensor
from tilewright.workloads.computation import Computation
from tilewright.workloads.padding import inside, window_output, window_position

CAPSULE = 4
"""The rows and columns of a capsule."""


def capsule_conv2d(
    shape: tuple[int, int, int, int], channels: int, kernel: tuple[int, int], *, stride: int, padding: int
) -> Computation:
    """X[n, y, x, i, k, c] with W[r, s, k, j, c, f] to Y[n, y, x, i, j, f]."""
    batch, height, width, ci = shape
    rows = window_output("height", height, kernel[0], stride, padding, dilation=1)
    columns = window_output("width", width, kernel[1], stride, padding, dilation=1)
    X = te.placeholder((batch, height, width, CAPSULE, CAPSULE, ci), name="X")
    W = te.placeholder((*kernel, CAPSULE, CAPSULE, ci, channels), name="W", constant=True)
    P = _pad(X, padding)
    r, s = te.reduce_axis(kernel[0], "r"), te.reduce_axis(kernel[1], "s")
    k, c = te.reduce_axis(CAPSULE, "k"), te.reduce_axis(ci, "c")
    Y = te.compute(
        (batch, rows, columns, CAPSULE, CAPSULE, channels),
        lambda n, y, x, i, j, f: te.sum(
            P[n, window_position(y, r, stride), window_position(x, s, stride), i, k, c] * W[r, s, k, j, c, f],
            axis=[r, s, k, c],
        ),
        "conv",
    )
    return Computation((X, W), Y)


def _pad(X: Tensor, padding: int) -> Tensor:
    if padding == 0:
        return X
    batch, height, width, _, _, channels = X.shape
    return te.compute(
        (batch, height + 2 * padding, width + 2 * padding, CAPSULE, CAPSULE, channels),
        lambda n, y, x, i, k, c: te.select(
            inside(y, height, padding) & inside(x, width, padding), X[n, y - padding, x - padding, i, k, c], 0.0
        ),
        "padded",
    )
