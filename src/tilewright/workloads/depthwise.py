"""The depthwise convolution: each channel by itself."""

from __future__ import annotations

from tilewright import te
from tilewright.workloads.computation import Computation
from tilewright.workloads.padding import pad2d, window_output, window_position


def depthwise(
    shape: tuple[int, int, int, int], kernel: tuple[int, int], *, stride: int, padding: int, dilation: int
) -> Computation:
    """X[n, y, x, c] with W[r, s, c] to Y[n, y, x, c]."""
    batch, height, width, channels = shape
    rows = window_output("height", height, kernel[0], stride, padding, dilation)
    columns = window_output("width", width, kernel[1], stride, padding, dilation)
    X = te.placeholder(shape, name="X")
    W = te.placeholder((*kernel, channels), name="W", constant=True)
    P = pad2d(X, padding)
    r, s = te.reduce_axis(kernel[0], "r"), te.reduce_axis(kernel[1], "s")
    Y = te.compute(
        (batch, rows, columns, channels),
        lambda n, y, x, c: te.sum(
            P[n, window_position(y, r, stride, dilation), window_position(x, s, stride, dilation), c] * W[r, s, c],
            axis=[r, s],
        ),
        "conv",
    )
    return Computation((X, W), Y)
