"""Programs that reduce: pooling, softmax, normalisation, argmax, and plain reductions."""

from __future__ import annotations

from tilewright import te
from tilewright.te import Expr, Task
from tilewright.testing.programs.draw import FLOATS, INTEGERS, Draw


def pooling(draw: Draw) -> Task:
    size, width, channels = draw.extent(24, 3), draw.extent(24, 3), draw.extent(33)
    window, stride = draw.pick(2, 3), draw.pick(1, 2)
    X = te.placeholder((size, width, channels), draw.float_type(), "X")
    r, s = te.reduce_axis(window, "r"), te.reduce_axis(window, "s")
    shape = ((size - window) // stride + 1, (width - window) // stride + 1, channels)
    if draw.chance():
        Y = te.compute(shape, lambda y, x, c: te.max(X[y * stride + r, x * stride + s, c], axis=[r, s]), "Y")
        return Task([X], Y, "pooling")
    total = te.compute(shape, lambda y, x, c: te.sum(X[y * stride + r, x * stride + s, c], axis=[r, s]), "total")
    mean = te.compute(shape, lambda y, x, c: total[y, x, c] * (1.0 / window**2), "mean")
    return Task([X], mean, "pooling")


def softmax(draw: Draw) -> Task:
    rows, columns = draw.extent(33), draw.extent()
    X = te.placeholder((rows, columns), draw.name("float32", "float32", "float64", "float16"), "X")
    k, q = te.reduce_axis(columns, "k"), te.reduce_axis(columns, "q")
    top = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), "top")
    power = te.compute((rows, columns), lambda i, j: te.exp(X[i, j] - top[i]), "power")
    total = te.compute((rows,), lambda i: te.sum(power[i, q], axis=q), "total")
    Y = te.compute((rows, columns), lambda i, j: power[i, j] / total[i], "Y")
    return Task([X], Y, "softmax")


def layer_norm(draw: Draw) -> Task:
    rows, columns = draw.extent(33), draw.extent()
    dtype = draw.name("float32", "float64")
    X = te.placeholder((rows, columns), dtype, "X")
    gain = te.placeholder((columns,), dtype, "gain", constant=True)
    k, q = te.reduce_axis(columns, "k"), te.reduce_axis(columns, "q")
    total = te.compute((rows,), lambda i: te.sum(X[i, k], axis=k), "total")
    mean = te.compute((rows,), lambda i: total[i] * (1.0 / columns), "mean")
    spread = te.compute((rows,), lambda i: te.sum((X[i, q] - mean[i]) * (X[i, q] - mean[i]), axis=q), "spread")
    Y = te.compute(
        (rows, columns),
        lambda i, j: (X[i, j] - mean[i]) * te.rsqrt(spread[i] * (1.0 / columns) + 0.05) * gain[j],
        "Y",
    )
    return Task([X, gain], Y, "layer_norm")


def arg_reduce(draw: Draw) -> Task:
    rows, columns, depth = draw.extent(33), draw.extent(), draw.extent(5)
    X = te.placeholder((rows, columns, depth), draw.name(*FLOATS, *INTEGERS), "X")
    find = te.argmax if draw.chance() else te.argmin
    k, q = te.reduce_axis(columns, "k"), te.reduce_axis(depth, "q")
    has_ties = te.is_int(X.dtype) and draw.chance(0.7)

    def value(i: Expr, j: Expr, d: Expr) -> Expr:
        return X[i, j, d] % 5 if has_ties else X[i, j, d]

    if draw.chance():
        where = te.compute((rows,), lambda i: find(value(i, k, q), axis=[k, q]), "where")
        return Task([X], where, "arg_reduce")
    where = te.compute((rows, depth), lambda i, d: find(value(i, k, d), axis=k), "where")
    twice = te.compute((rows, depth), lambda i, d: where[i, d] * 2 + d, "twice")
    return Task([X], [twice, where] if draw.chance() else twice, "arg_reduce")


def reductions(draw: Draw) -> Task:
    shape = (draw.extent(17), draw.extent(33), draw.extent(17), draw.extent(33))
    dtype = draw.name(*FLOATS, *INTEGERS)
    X = te.placeholder(shape, dtype, "X")
    reduce = {"sum": te.sum, "max": te.max, "min": te.min, "prod": te.prod}[draw.name("sum", "max", "min", "prod")]
    k, q = te.reduce_axis(shape[1], "k"), te.reduce_axis(shape[3], "q")
    if draw.chance():
        Y = te.compute((shape[0], shape[2]), lambda i, j: reduce(X[i, k, j, q], axis=[k, q]), "Y")
    else:
        Y = te.compute((shape[0], shape[2], shape[3]), lambda i, j, m: reduce(X[i, k, j, m], axis=k), "Y")
    return Task([X], Y, "reductions")


def scalar(draw: Draw) -> Task:
    shape = (draw.extent(), draw.extent())
    X = te.placeholder(shape, draw.name("float32", "float64", "float16", "bfloat16", "int32", "int64"), "X")
    k, q = te.reduce_axis(shape[0], "k"), te.reduce_axis(shape[1], "q")
    reduce = te.sum if draw.chance() else te.max
    total = te.compute((), lambda: reduce(X[k, q], axis=[k, q]), "total")
    if draw.chance():
        return Task([X], total, "scalar")
    shifted = te.compute(shape, lambda i, j: X[i, j] - total[()], "shifted")
    return Task([X], [shifted, total] if draw.chance() else shifted, "scalar")
