"""Programs that move data: gather, concat, padding, neighbours, reshape, and graphs with shared stages."""

from __future__ import annotations

from collections.abc import Callable

from tilewright import te
from tilewright.te import Expr, Task, Tensor
from tilewright.testing.programs.draw import FLOATS, INTEGERS, Draw


def gather(draw: Draw) -> Task:
    rows, columns, num = draw.extent(33), draw.extent(), draw.extent()
    A = te.placeholder((rows, columns), draw.name(*FLOATS, "int8"), "A")
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
    dtype = draw.name(*FLOATS, *INTEGERS)
    A, B = te.placeholder((left, columns), dtype, "A"), te.placeholder((right, columns), dtype, "B")
    double = te.compute((right, columns), lambda i, j: B[i, j] + B[i, j], "double")
    if draw.chance():
        C = te.compute((left + right, columns), lambda i, j: te.select(i < left, A[i, j], double[i - left, j]), "C")
    else:
        C = te.compute((columns, left + right), lambda j, i: te.select(i < left, A[i, j], double[i - left, j]), "C")
    out = te.compute(C.shape, lambda i, j: te.maximum(C[i, j], C[C.shape[0] - 1 - i, j]), "out")
    return Task([A, B], out, "concat")


def padding(draw: Draw) -> Task:
    rows, columns, pad = draw.extent(33), draw.extent(), draw.pick(1, 2, 5)
    A = te.placeholder((rows, columns), draw.name(*FLOATS, *INTEGERS), "A")
    shape = (rows + 2 * pad, columns + pad)

    def element(i: Expr, j: Expr) -> Expr:
        inside = te.select(i < rows + pad, A[i - pad, j], A[rows - 1, j])
        return te.select(j < columns, te.select(i >= pad, inside, A[0, j]), 1)

    P = te.compute(shape, element, "P")
    crop = te.compute((rows, columns), lambda i, j: P[i + pad, j + pad] + P[i, j], "crop")
    return Task([A], crop, "padding")


def stencil(draw: Draw) -> Task:
    """A chain of stages that read neighbours: guarded at the border, clamped, reversed, or every second one."""
    rows, length = draw.extent(7), draw.extent(131, 8)
    A = te.placeholder((rows, length), draw.name("float32", "float64", "int32"), "A")
    T = te.compute((rows, length), lambda i, x: A[i, x] + 1, "T")
    for n in range(draw.pick(2, 3, 4)):
        size = T.shape[1]
        if draw.chance(0.25) and size >= 8:
            size //= 2
        T = te.compute((rows, size), _neighbours(draw, T, size), f"T{n}")
    return Task([A], T, "stencil")


def _neighbours(draw: Draw, T: Tensor, size: int) -> Callable[[Expr, Expr], Expr]:
    last, step, by = T.shape[1] - 1, T.shape[1] // size, draw.pick(1, 1, 2, 5)
    kind = draw.pick(0, 1, 2, 3)
    if kind == 0:
        return lambda i, x: te.select(x * step >= by, T[i, x * step - by], 0) + T[i, x * step]
    if kind == 1:
        return lambda i, x: te.select(x * step + by <= last, T[i, x * step + by], 1) - T[i, x * step]
    if kind == 2:
        return lambda i, x: T[i, te.minimum(x * step + by, last)] + T[i, te.maximum(x - by, 0)]
    return lambda i, x: T[i, last - x] - T[i, x // 2]


def reshape(draw: Draw) -> Task:
    rows, columns = draw.extent(33), draw.extent(33)
    A = te.placeholder((rows, columns), draw.name(*FLOATS, *INTEGERS), "A")
    T = te.compute((columns, rows), lambda i, j: A[j, i] + A[j, columns - 1 - i], "T")
    flat = te.compute((rows * columns,), lambda n: T[n // rows, n % rows], "flat")
    part = next(d for d in (7, 5, 4, 3, 2, 1) if rows * columns % d == 0)
    out = te.compute(
        (rows * columns // part, part), lambda i, j: te.maximum(flat[i * part + j], flat[(i * part + j) // 2]), "out"
    )
    return Task([A], out, "reshape")


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
