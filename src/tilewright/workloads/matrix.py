"""Matrix products: one, a batch, and the one of attention with its transposes."""

from __future__ import annotations

from tilewright import te
from tilewright.workloads.computation import Computation


def matmul(shape: tuple[int, ...]) -> Computation:
    """A[i, k] with B[k, j] to C[i, j], or a batch of them: `shape` is ([batch,] rows, columns, depth).

    Neither operand is constant: libraries, too, get both at the call.
    """
    *batch, rows, columns, depth = shape
    A = te.placeholder((*batch, rows, depth), name="A")
    B = te.placeholder((*batch, depth, columns), name="B")
    k = te.reduce_axis(depth, "k")
    if batch:
        C = te.compute((*batch, rows, columns), lambda b, i, j: te.sum(A[b, i, k] * B[b, k, j], axis=k), "C")
    else:
        C = te.compute((rows, columns), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), "C")
    return Computation((A, B), C)


def transpose_batch_matmul(shape: tuple[int, int, int, int]) -> Computation:
    """The scores of attention: Q and K as [batch, position, head, dim], transposed, to C[batch, head, i, j]."""
    batch, positions, heads, dim = shape
    Q = te.placeholder(shape, name="Q")
    K = te.placeholder(shape, name="K")
    queries = te.compute((batch, heads, positions, dim), lambda b, h, i, d: Q[b, i, h, d], "queries")
    keys = te.compute((batch, heads, dim, positions), lambda b, h, d, j: K[b, j, h, d], "keys")
    d = te.reduce_axis(dim, "d")
    C = te.compute(
        (batch, heads, positions, positions),
        lambda b, h, i, j: te.sum(queries[b, h, i, d] * keys[b, h, d, j], axis=d),
        "C",
    )
    return Computation((Q, K), C)
