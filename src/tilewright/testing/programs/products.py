"""Programs that multiply and sum: matrix products and convolutions."""

from __future__ import annotations

from tilewright import te
from tilewright.te import Expr, Task
from tilewright.testing.programs.draw import Draw


def gemm(draw: Draw) -> Task:
    n, m, length = draw.extent(70), draw.extent(70), draw.extent(100)
    dtype = draw.float_type()
    is_wide = draw.chance(0.3)
    A = te.placeholder((n, length), dtype, "A")
    W = te.placeholder((m, length) if is_wide else (length, m), dtype, "W", constant=draw.chance())
    k = te.reduce_axis(length, "k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * (W[j, k] if is_wide else W[k, j]), axis=k), "C")
    if draw.chance(0.3):
        return Task([A, W], C, "gemm")
    bias = te.placeholder((m,), dtype, "bias", constant=draw.chance())
    D = te.compute((n, m), lambda i, j: C[i, j] + bias[j], "D")
    E = te.compute((n, m), lambda i, j: te.maximum(D[i, j], 0.0), "E")
    return Task([A, W, bias], E, "gemm")


def batched_matmul(draw: Draw) -> Task:
    batch, n, m, length = draw.extent(7), draw.extent(33), draw.extent(33), draw.extent(33)
    dtype = draw.float_type()
    turn_a, turn_b = draw.chance(), draw.chance()
    A = te.placeholder((batch, length, n) if turn_a else (batch, n, length), dtype, "A")
    B = te.placeholder((batch, m, length) if turn_b else (batch, length, m), dtype, "B")
    k = te.reduce_axis(length, "k")
    C = te.compute(
        (batch, n, m),
        lambda b, i, j: te.sum((A[b, k, i] if turn_a else A[b, i, k]) * (B[b, j, k] if turn_b else B[b, k, j]), axis=k),
        "C",
    )
    T = te.compute((batch, m, n), lambda b, j, i: C[b, i, j] * 0.5, "T")
    return Task([A, B], T if draw.chance() else C, "batched_matmul")


def quantized(draw: Draw) -> Task:
    n, m, length = draw.extent(33), draw.extent(33), draw.extent(70)
    A = te.placeholder((n, length), draw.name("uint8", "int8"), "A")
    W = te.placeholder((length, m), draw.name("uint8", "int8"), "W", constant=draw.chance(0.7))
    k = te.reduce_axis(length, "k")
    wide = te.compute(
        (n, m), lambda i, j: te.sum(te.cast(A[i, k], "int32") * te.cast(W[k, j], "int32"), axis=k), "wide"
    )
    scaled = te.compute((n, m), lambda i, j: te.minimum(te.maximum(wide[i, j] // 64, -128), 127), "scaled")
    out = te.compute((n, m), lambda i, j: te.cast(scaled[i, j], "int8"), "out")
    return Task([A, W], out, "quantized")


def conv1d(draw: Draw) -> Task:
    length, ci, co, kernel = draw.extent(70, 5), draw.extent(16), draw.extent(33), draw.pick(1, 3, 5)
    stride, dtype = draw.pick(1, 2), draw.float_type()
    X = te.placeholder((length, ci), dtype, "X")
    W = te.placeholder((kernel, ci, co), dtype, "W", constant=draw.chance(0.7))
    r, c = te.reduce_axis(kernel, "r"), te.reduce_axis(ci, "c")
    num = (length - kernel) // stride + 1
    Y = te.compute((num, co), lambda x, f: te.sum(X[x * stride + r, c] * W[r, c, f], axis=[r, c]), "Y")
    Z = te.compute((num, co), lambda x, f: te.maximum(Y[x, f], Y[num - 1 - x, f]), "Z")
    return Task([X, W], Z if draw.chance(0.3) else Y, "conv1d")


def conv2d(draw: Draw) -> Task:
    batch, size, width = draw.pick(1, 1, 2), draw.extent(17, 3), draw.extent(17, 3)
    kernel, pad, stride, dilation = draw.pick(1, 2, 3), draw.pick(0, 1, 1, 2), draw.pick(1, 1, 2), draw.pick(1, 1, 2)
    groups = draw.pick(1, 1, 2)
    ci, co = draw.extent(8) * groups, draw.extent(17) * groups
    dtype = draw.float_type()
    X = te.placeholder((batch, size, width, ci), dtype, "X")
    W = te.placeholder((kernel, kernel, ci // groups, co), dtype, "W", constant=draw.chance(0.7))
    reach = (kernel - 1) * dilation + 1
    high, wide = max(size + 2 * pad, reach), max(width + 2 * pad, reach)
    padded = te.compute(
        (batch, high, wide, ci),
        lambda n, y, x, c: te.select(
            (y >= pad) & (y < size + pad) & (x >= pad) & (x < width + pad), X[n, y - pad, x - pad, c], 0.0
        ),
        "padded",
    )
    r, s, c = te.reduce_axis(kernel, "r"), te.reduce_axis(kernel, "s"), te.reduce_axis(ci // groups, "c")
    rows, columns = (high - reach) // stride + 1, (wide - reach) // stride + 1
    per_group = co // groups
    Y = te.compute(
        (batch, rows, columns, co),
        lambda n, y, x, f: te.sum(
            padded[n, y * stride + r * dilation, x * stride + s * dilation, f // per_group * (ci // groups) + c]
            * W[r, s, c, f],
            axis=[r, s, c],
        ),
        "Y",
    )
    bias = te.placeholder((co,), dtype, "bias")
    Z = te.compute((batch, rows, columns, co), lambda n, y, x, f: te.maximum(Y[n, y, x, f] + bias[f], 0.0), "Z")
    return Task([X, W, bias], Z, "conv2d")


def depthwise(draw: Draw) -> Task:
    size, width, channels = draw.extent(17, 3), draw.extent(17, 3), draw.extent(33)
    stride, dtype = draw.pick(1, 2), draw.float_type()
    X = te.placeholder((size, width, channels), dtype, "X")
    W = te.placeholder((3, 3, channels), dtype, "W", constant=draw.chance(0.7))
    r, s = te.reduce_axis(3, "r"), te.reduce_axis(3, "s")

    def padded(y: Expr, x: Expr, c: Expr) -> Expr:
        return te.select((y >= 1) & (y <= size) & (x >= 1) & (x <= width), X[y - 1, x - 1, c], 0.0)

    rows, columns = (size - 1) // stride + 1, (width - 1) // stride + 1
    Y = te.compute(
        (rows, columns, channels),
        lambda y, x, c: te.sum(padded(y * stride + r, x * stride + s, c) * W[r, s, c], axis=[r, s]),
        "Y",
    )
    return Task([X, W], Y, "depthwise")


def conv_transpose(draw: Draw) -> Task:
    size, ci, co, kernel, stride = draw.extent(33), draw.extent(8), draw.extent(17), draw.pick(2, 3), draw.pick(1, 2, 3)
    dtype = draw.float_type()
    X = te.placeholder((size, ci), dtype, "X")
    W = te.placeholder((kernel, ci, co), dtype, "W", constant=draw.chance(0.7))
    long = (size - 1) * stride + kernel
    r, c = te.reduce_axis(kernel, "r"), te.reduce_axis(ci, "c")

    def spread(x: Expr, k: Expr) -> Expr:
        return te.select((x >= 0) & (x < (size - 1) * stride + 1) & te.equal(x % stride, 0), X[x // stride, k], 0.0)

    Y = te.compute((long, co), lambda x, f: te.sum(spread(x - r, c) * W[r, c, f], axis=[r, c]), "Y")
    return Task([X, W], Y, "conv_transpose")
