"""Reductions of matrices in a batch: the 2-norm of each matrix, the softmax of each row."""

from __future__ import annotations

from tilewright import te
from tilewright.workloads.computation import Computation


def norm(shape: tuple[int, int, int]) -> Computation:
    """The square root of the sum of squares of each matrix A[b]."""
    batch, rows, columns = shape
    A = te.placeholder(shape, name="A")
    i, j = te.reduce_axis(rows, "i"), te.reduce_axis(columns, "j")
    squares = te.compute((batch,), lambda b: te.sum(A[b, i, j] * A[b, i, j], axis=[i, j]), "squares")
    return Computation((A,), te.compute((batch,), lambda b: te.sqrt(squares[b]), "norm"))


def softmax(shape: tuple[int, int, int]) -> Computation:
    """The softmax of each row A[b, i]; the largest element is taken off first, so that nothing overflows."""
    batch, rows, columns = shape
    A = te.placeholder(shape, name="A")
    k = te.reduce_axis(columns, "k")
    largest = te.compute((batch, rows), lambda b, i: te.max(A[b, i, k], axis=k), "largest")
    power = te.compute(shape, lambda b, i, j: te.exp(A[b, i, j] - largest[b, i]), "power")
    m = te.reduce_axis(columns, "m")
    total = te.compute((batch, rows), lambda b, i: te.sum(power[b, i, m], axis=m), "total")
    return Computation((A,), te.compute(shape, lambda b, i, j: power[b, i, j] / total[b, i], "softmax"))
