"""Convolutions in one, two and three dimensions, channels last."""

from __future__ import annotations

from tilewright import te
from tilewright.errors import UsageError
from tilewright.te import Tensor
from tilewright.workloads.computation import Computation, batch_norm, relu
from tilewright.workloads.padding import inside, pad1d, pad2d, window_output, window_position


def conv1d(
    shape: tuple[int, int, int], channels: int, kernel: int, *, stride: int, padding: int, dilation: int
) -> Computation:
    """X[n, x, c] with W[r, c, f] to Y[n, x, f]."""
    batch, width, ci = shape
    columns = window_output("width", width, kernel, stride, padding, dilation)
    X = te.placeholder(shape, name="X")
    W = te.placeholder((kernel, ci, channels), name="W", constant=True)
    P = pad1d(X, padding)
    r, c = te.reduce_axis(kernel, "r"), te.reduce_axis(ci, "c")
    Y = te.compute(
        (batch, columns, channels),
        lambda n, x, f: te.sum(P[n, window_position(x, r, stride, dilation), c] * W[r, c, f], axis=[r, c]),
        "conv",
    )
    return Computation((X, W), Y)


def conv2d(
    shape: tuple[int, int, int, int],
    channels: int,
    kernel: tuple[int, int],
    *,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Computation:
    """X[n, y, x, c] with W[r, s, c, f] to Y[n, y, x, f]; in groups, see `_grouped_conv2d`."""
    if groups > 1:
        return _grouped_conv2d(shape, channels, kernel, stride, padding, dilation, groups)
    batch, height, width, ci = shape
    rows = window_output("height", height, kernel[0], stride, padding, dilation)
    columns = window_output("width", width, kernel[1], stride, padding, dilation)
    X = te.placeholder(shape, name="X")
    W = te.placeholder((*kernel, ci, channels), name="W", constant=True)
    P = pad2d(X, padding)
    r, s, c = te.reduce_axis(kernel[0], "r"), te.reduce_axis(kernel[1], "s"), te.reduce_axis(ci, "c")
    Y = te.compute(
        (batch, rows, columns, channels),
        lambda n, y, x, f: te.sum(
            P[n, window_position(y, r, stride, dilation), window_position(x, s, stride, dilation), c] * W[r, s, c, f],
            axis=[r, s, c],
        ),
        "conv",
    )
    return Computation((X, W), Y)


def conv_layer(
    shape: tuple[int, int, int, int],
    channels: int,
    kernel: tuple[int, int],
    *,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Computation:
    """A convolution, batch norm and ReLU."""
    conv = conv2d(shape, channels, kernel, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return relu(batch_norm(conv))


def conv3d(
    shape: tuple[int, int, int, int, int],
    channels: int,
    kernel: tuple[int, int, int],
    *,
    stride: int,
    padding: int,
    dilation: int,
) -> Computation:
    """X[n, z, y, x, c] with W[q, r, s, c, f] to Y[n, z, y, x, f]."""
    batch, depth, height, width, ci = shape
    planes = window_output("depth", depth, kernel[0], stride, padding, dilation)
    rows = window_output("height", height, kernel[1], stride, padding, dilation)
    columns = window_output("width", width, kernel[2], stride, padding, dilation)
    X = te.placeholder(shape, name="X")
    W = te.placeholder((*kernel, ci, channels), name="W", constant=True)
    P = _pad3d(X, padding)
    q, r, s = te.reduce_axis(kernel[0], "q"), te.reduce_axis(kernel[1], "r"), te.reduce_axis(kernel[2], "s")
    c = te.reduce_axis(ci, "c")
    Y = te.compute(
        (batch, planes, rows, columns, channels),
        lambda n, z, y, x, f: te.sum(
            P[
                n,
                window_position(z, q, stride, dilation),
                window_position(y, r, stride, dilation),
                window_position(x, s, stride, dilation),
                c,
            ]
            * W[q, r, s, c, f],
            axis=[q, r, s, c],
        ),
        "conv",
    )
    return Computation((X, W), Y)


def _grouped_conv2d(
    shape: tuple[int, int, int, int],
    channels: int,
    kernel: tuple[int, int],
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Computation:
    """X[n, y, x, g, c] with W[r, s, g, c, f] to Y[n, y, x, g, f].

    The channels are seen as groups of channels, the same memory as without. A flat channel f would read the input at
    f // (channels per group), which no tile of f can rely on.
    """
    batch, height, width, ci = shape
    for what, number in (("input", ci), ("output", channels)):
        if number % groups:
            raise UsageError(
                f"groups must divide the channels: {groups} groups do not divide the {number} {what} channels; "
                f"change one of them"
            )
    ci, co = ci // groups, channels // groups
    rows = window_output("height", height, kernel[0], stride, padding, dilation)
    columns = window_output("width", width, kernel[1], stride, padding, dilation)
    X = te.placeholder((batch, height, width, groups, ci), name="X")
    W = te.placeholder((*kernel, groups, ci, co), name="W", constant=True)
    P = _pad_groups(X, padding)
    r, s, c = te.reduce_axis(kernel[0], "r"), te.reduce_axis(kernel[1], "s"), te.reduce_axis(ci, "c")
    Y = te.compute(
        (batch, rows, columns, groups, co),
        lambda n, y, x, g, f: te.sum(
            P[n, window_position(y, r, stride, dilation), window_position(x, s, stride, dilation), g, c]
            * W[r, s, g, c, f],
            axis=[r, s, c],
        ),
        "conv",
    )
    return Computation((X, W), Y, num_channel_axes=2)


def _pad_groups(X: Tensor, padding: int) -> Tensor:
    if padding == 0:
        return X
    batch, height, width, groups, channels = X.shape
    return te.compute(
        (batch, height + 2 * padding, width + 2 * padding, groups, channels),
        lambda n, y, x, g, c: te.select(
            inside(y, height, padding) & inside(x, width, padding), X[n, y - padding, x - padding, g, c], 0.0
        ),
        "padded",
    )


def _pad3d(X: Tensor, padding: int) -> Tensor:
    if padding == 0:
        return X
    batch, depth, height, width, channels = X.shape
    return te.compute(
        (batch, depth + 2 * padding, height + 2 * padding, width + 2 * padding, channels),
        lambda n, z, y, x, c: te.select(
            inside(z, depth, padding) & inside(y, height, padding) & inside(x, width, padding),
            X[n, z - padding, y - padding, x - padding, c],
            0.0,
        ),
        "padded",
    )
