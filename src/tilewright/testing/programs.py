"""Random small tasks of many kinds, with awkward extents: what schedules are tried on.

Every family is a function from random draws to a task. Float values that are compared, rounded or cast to integers
come straight from an input, so that no legal order of operations can change the answer by more than rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tilewright import te
from tilewright.task import Task
from tilewright.te import Expr, Reduce, Tensor

_EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 16, 17, 24, 31, 33, 49, 64, 70, 100, 131)
_FLOATS = ("float32", "float32", "float32", "float64", "float16", "bfloat16")
_INTEGERS = ("int8", "uint8", "int32", "int64")


class Draw:
    """The random choices of one program; `most` bounds its extents."""

    def __init__(self, rng: np.random.Generator, most: int) -> None:
        self.rng = rng
        self.most = most

    def extent(self, most: int = 200, least: int = 1) -> int:
        fitting = [e for e in _EXTENTS if least <= e <= min(most, self.most)]
        return self.pick(*fitting) if fitting else least

    def pick(self, *choices: int) -> int:
        return choices[int(self.rng.integers(len(choices)))]

    def name(self, *choices: str) -> str:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def float_type(self) -> str:
        return self.name(*_FLOATS)


Family = Callable[[Draw], Task]


def random_task(family: str, rng: np.random.Generator, max_points: int = 50_000) -> Task:
    """A random member of the family whose stages run over at most `max_points` points together."""
    most = 200
    while True:
        task = FAMILIES[family](Draw(rng, most))
        if num_points(task) <= max_points or most <= 1:
            return task
        most = most * 4 // 5


def num_points(task: Task) -> int:
    """How many points the stages of the task run over, reductions included."""
    return sum(math.prod(stage.shape) * _reduced(stage.body) for stage in task.stages)


def _reduced(body: Expr | None) -> int:
    return math.prod(axis.extent for axis in body.axes) if isinstance(body, Reduce) else 1


# --- elementwise -----------------------------------------------------------------------------------------------------


def elementwise(draw: Draw) -> Task:
    shape = tuple(draw.extent() for _ in range(draw.pick(1, 2, 3)))
    dtype = draw.float_type()
    A = te.placeholder(shape, dtype, "A")
    row = te.placeholder(shape[-1:], dtype, "row")
    T = te.compute(shape, lambda *i: A[i] * 2.0 + row[i[-1]], "T")
    for n in range(draw.pick(0, 1, 2, 3)):
        T = te.compute(shape, _smooth(draw, T, A), f"T{n}")
    out = te.compute(shape, lambda *i: te.maximum(T[i], -0.25) + A[i] * 0.5, "out")
    return Task([A, row], out, "elementwise")


def _smooth(draw: Draw, T: Tensor, A: Tensor) -> Callable[..., Expr]:
    kind = draw.pick(0, 1, 2, 3)
    if kind == 0:
        return lambda *i: T[i] * 0.5 - A[i]
    if kind == 1:
        return lambda *i: te.minimum(te.abs(T[i]), 1.5)
    if kind == 2:
        return lambda *i: te.select(A[i] > 0.25, T[i], A[i] * 3.0)
    return lambda *i: T[i] / (te.abs(A[i]) + 1.0)


def functions(draw: Draw) -> Task:
    shape = (draw.extent(17), draw.extent())
    dtype = draw.name("float32", "float32", "float64", "float16")
    A, B = te.placeholder(shape, dtype, "A"), te.placeholder(shape, dtype, "B")
    names = ("exp", "tanh", "erf", "sigmoid", "sqrt", "log", "rsqrt", "pow", "floor", "ceil")
    stages = [_function(name, A, B, shape) for name in draw.rng.permutation(names)[:3]]
    total = te.compute(shape, lambda i, j: stages[0][i, j] + stages[1][i, j] * 0.5 - stages[2][i, j], "total")
    return Task([A, B], total, "functions")


def _function(name: str, A: Tensor, B: Tensor, shape: tuple[int, int]) -> Tensor:
    bodies: dict[str, Callable[[Expr, Expr], Expr]] = {
        "exp": lambda a, b: te.exp(a * 2.0 + b * 0.0),
        "tanh": lambda a, b: te.tanh(a * 3.0 - b),
        "erf": lambda a, b: te.erf(b * 2.0 + a * 0.0),
        "sigmoid": lambda a, b: te.sigmoid(a * 4.0 + b),
        "sqrt": lambda a, b: te.sqrt(te.abs(a) + te.abs(b)),
        "log": lambda a, b: te.log(te.abs(a * b) + 0.5),
        "rsqrt": lambda a, b: te.rsqrt(te.abs(a - b) + 0.25),
        "pow": lambda a, b: te.pow(te.abs(a) + 0.5, b * 2.0),
        "floor": lambda a, b: te.floor(a * 8.0) + b,
        "ceil": lambda a, b: te.ceil(b * 8.0) - a,
    }
    return te.compute(shape, lambda i, j: bodies[name](A[i, j], B[i, j]), name)


def casts(draw: Draw) -> Task:
    shape = (draw.extent(33), draw.extent())
    A = te.placeholder(shape, draw.name("int8", "uint8", "int32", "int64", "bool"), "A")
    F = te.placeholder(shape, draw.name("float16", "bfloat16", "float32", "float64"), "F")
    narrow = te.compute(shape, lambda i, j: te.cast(A[i, j], draw.name("int8", "uint8", "int32")), "narrow")
    whole = te.compute(shape, lambda i, j: te.cast(F[i, j] * 64.0, draw.name("int8", "int32", "int64")), "whole")
    single = te.compute(shape, lambda i, j: te.cast(F[i, j], "float32"), "single")
    half = te.compute(shape, lambda i, j: te.cast(single[i, j], draw.name("float16", "bfloat16")), "half")
    flag = te.compute(shape, lambda i, j: te.cast(narrow[i, j], "bool"), "flag")
    out = te.compute(
        shape,
        lambda i, j: te.cast(whole[i, j], "float32") + te.cast(half[i, j], "float32") * te.cast(flag[i, j], "float32"),
        "out",
    )
    return Task([A, F], [out, narrow], "casts")


def integers(draw: Draw) -> Task:
    shape = (draw.extent(33), draw.extent())
    A = te.placeholder(shape, draw.name(*_INTEGERS), "A")
    B = te.placeholder(shape, draw.name(*_INTEGERS), "B")
    divisor = draw.pick(3, 7, 8)
    Q = te.compute(shape, lambda i, j: A[i, j] // B[i, j] + A[i, j] // divisor, "Q")
    R = te.compute(shape, lambda i, j: A[i, j] % B[i, j] * 3 - B[i, j] % divisor, "R")
    M = te.compute(shape, lambda i, j: te.maximum(Q[i, j], R[i, j]) + te.abs(te.minimum(Q[i, j], R[i, j])), "M")
    out = te.compute(shape, lambda i, j: M[i, j] - te.cast(i - j * 2, M.dtype), "out")
    return Task([A, B], out, "integers")


def logic(draw: Draw) -> Task:
    shape = (draw.extent(33), draw.extent())
    A = te.placeholder(shape, draw.name(*_FLOATS, *_INTEGERS), "A")
    P = te.placeholder(shape, "bool", "P")
    big = te.compute(shape, lambda i, j: A[i, j] > A[i, 0], "big")
    mask = te.compute(shape, lambda i, j: (big[i, j] & ~P[i, j]) | te.equal((i + j) % 3, 0), "mask")
    k = te.reduce_axis(shape[1], "k")
    some = te.compute(shape[:1], lambda i: te.max(mask[i, k], axis=k), "some")
    out = te.compute(shape, lambda i, j: te.select(mask[i, j] & some[i], A[i, j], A[i, shape[1] - 1 - j]), "out")
    return Task([A, P], [out, mask], "logic")


# --- products --------------------------------------------------------------------------------------------------------


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
        lambda b, i, j: te.sum(
            (A[b, k, i] if turn_a else A[b, i, k]) * (B[b, j, k] if turn_b else B[b, k, j]), axis=k
        ),
        "C",
    )
    T = te.compute((batch, m, n), lambda b, j, i: C[b, i, j] * 0.5, "T")
    return Task([A, B], T if draw.chance() else C, "batched_matmul")


def quantized(draw: Draw) -> Task:
    n, m, length = draw.extent(33), draw.extent(33), draw.extent(70)
    A = te.placeholder((n, length), draw.name("uint8", "int8"), "A")
    W = te.placeholder((length, m), "int8", "W", constant=True)
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
        return te.select(
            (x >= 0) & (x < (size - 1) * stride + 1) & te.equal(x % stride, 0), X[x // stride, k], 0.0
        )

    Y = te.compute((long, co), lambda x, f: te.sum(spread(x - r, c) * W[r, c, f], axis=[r, c]), "Y")
    return Task([X, W], Y, "conv_transpose")


# --- reductions ------------------------------------------------------------------------------------------------------


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
    X = te.placeholder((rows, columns, depth), draw.name(*_FLOATS, *_INTEGERS), "X")
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
    dtype = draw.name(*_FLOATS, *_INTEGERS)
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


# --- moving data -----------------------------------------------------------------------------------------------------


def gather(draw: Draw) -> Task:
    rows, columns, num = draw.extent(33), draw.extent(), draw.extent()
    A = te.placeholder((rows, columns), draw.name(*_FLOATS, "int8"), "A")
    B = te.placeholder((num,), draw.name("int32", "int64"), "B")
    scaled = te.compute((rows, columns), lambda i, j: A[i, j] + A[i, j], "scaled")
    source = scaled if draw.chance() else A
    G = te.compute((num, columns), lambda i, j: source[B[i], j], "G")
    if draw.chance():
        return Task([A, B], G, "gather")
    k = te.reduce_axis(num, "k")
    total = te.compute((columns,), lambda j: te.max(G[k, j], axis=k), "total")
    return Task([A, B], total, "gather")


def concat(draw: Draw) -> Task:
    left, right, columns = draw.extent(33), draw.extent(33), draw.extent()
    dtype = draw.name(*_FLOATS, *_INTEGERS)
    A, B = te.placeholder((left, columns), dtype, "A"), te.placeholder((right, columns), dtype, "B")
    double = te.compute((right, columns), lambda i, j: B[i, j] + B[i, j], "double")
    if draw.chance():
        C = te.compute(
            (left + right, columns), lambda i, j: te.select(i < left, A[i, j], double[i - left, j]), "C"
        )
    else:
        C = te.compute(
            (columns, left + right), lambda j, i: te.select(i < left, A[i, j], double[i - left, j]), "C"
        )
    out = te.compute(C.shape, lambda i, j: te.maximum(C[i, j], C[C.shape[0] - 1 - i, j]), "out")
    return Task([A, B], out, "concat")


def padding(draw: Draw) -> Task:
    rows, columns, pad = draw.extent(33), draw.extent(), draw.pick(1, 2, 5)
    A = te.placeholder((rows, columns), draw.name(*_FLOATS, *_INTEGERS), "A")
    shape = (rows + 2 * pad, columns + pad)

    def element(i: Expr, j: Expr) -> Expr:
        inside = te.select(i < rows + pad, A[i - pad, j], A[rows - 1, j])
        return te.select(j < columns, te.select(i >= pad, inside, A[0, j]), 1)

    P = te.compute(shape, element, "P")
    crop = te.compute((rows, columns), lambda i, j: P[i + pad, j + pad] + P[i, j], "crop")
    return Task([A], crop, "padding")


def reshape(draw: Draw) -> Task:
    rows, columns = draw.extent(33), draw.extent(33)
    A = te.placeholder((rows, columns), draw.name(*_FLOATS, *_INTEGERS), "A")
    T = te.compute((columns, rows), lambda i, j: A[j, i] + A[j, columns - 1 - i], "T")
    flat = te.compute((rows * columns,), lambda n: T[n // rows, n % rows], "flat")
    part = next(d for d in (7, 5, 4, 3, 2, 1) if rows * columns % d == 0)
    out = te.compute(
        (rows * columns // part, part), lambda i, j: te.maximum(flat[i * part + j], flat[(i * part + j) // 2]), "out"
    )
    return Task([A], out, "reshape")


# --- graphs ----------------------------------------------------------------------------------------------------------


def outputs(draw: Draw) -> Task:
    shape = (draw.extent(33), draw.extent())
    dtype = draw.float_type()
    A, B = te.placeholder(shape, dtype, "A"), te.placeholder(shape, dtype, "B")
    both = te.compute(shape, lambda i, j: A[i, j] + B[i, j], "both")
    k = te.reduce_axis(shape[1], "k")
    total = te.compute(shape[:1], lambda i: te.sum(both[i, k] * A[i, k], axis=k), "total")
    turned = te.compute(shape[::-1], lambda j, i: both[i, j] * B[i, shape[1] - 1 - j], "turned")
    return Task([A, B], [turned, total, both] if draw.chance() else [total, turned], "outputs")


def diamond(draw: Draw) -> Task:
    shape = (draw.extent(33), draw.extent())
    A = te.placeholder(shape, draw.name("float32", "float64", "int32", "float16"), "A")
    top = te.compute(shape, lambda i, j: A[i, j] * 2 + 1, "top")
    wide = te.compute(
        shape, lambda i, j: top[i, te.maximum(j - 1, 0)] + top[i, te.minimum(j + 1, shape[1] - 1)], "wide"
    )
    k = te.reduce_axis(shape[0], "k")
    column = te.compute(shape[1:], lambda j: te.max(top[k, j], axis=k), "column")
    out = te.compute(shape, lambda i, j: wide[i, j] - top[i, j] + column[j], "out")
    return Task([A], out, "diamond")


FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (
        elementwise, functions, casts, integers, logic, gemm, batched_matmul, quantized, conv1d, conv2d, depthwise,
        conv_transpose, pooling, softmax, layer_norm, arg_reduce, reductions, scalar, gather, concat, padding, reshape,
        outputs, diamond,
    )
}  # fmt: skip
