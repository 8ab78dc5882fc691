"""The small tasks whose schedules the tests print."""

from __future__ import annotations

from tilewright import te
from tilewright.schedule import Schedule
from tilewright.te import Task


def gemm_relu(n: int = 20, m: int = 12, length: int = 10) -> Schedule:
    A = te.placeholder((n, length), name="A")
    B = te.placeholder((length, m), name="B", constant=True)
    k = te.reduce_axis(length, name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((n, m), lambda i, j: te.maximum(C[i, j], 0.0), name="D")
    return Schedule(Task([A, B], D, "gemm_relu"))


def gram(n: int = 12, length: int = 10) -> Schedule:
    """The products of all rows with each other: one tensor read in two places."""
    X = te.placeholder((n, length), name="X")
    k = te.reduce_axis(length, name="k")
    G = te.compute((n, n), lambda i, j: te.sum(X[i, k] * X[j, k], axis=k), name="G")
    return Schedule(Task([X], G, "gram"))


def blur(n: int = 20) -> Schedule:
    """Two neighbours read one producer: what is computed for a tile overlaps the next one's."""
    A = te.placeholder((n + 4,), name="A")
    B = te.compute((n + 2,), lambda x: A[x] + A[x + 2], name="B")
    C = te.compute((n,), lambda x: B[x] * 0.5 + B[x + 2] * 0.25, name="C")
    return Schedule(Task([A], C, "blur"))


def padded_sum(n: int = 12) -> Schedule:
    """A padded input and a window over it."""
    A = te.placeholder((n,), name="A")
    P = te.compute((n + 2,), lambda x: te.select((x >= 1) & (x < n + 1), A[x - 1], 0.0), name="P")
    r = te.reduce_axis(3, name="r")
    S = te.compute((n,), lambda x: te.sum(P[x + r], axis=r), name="S")
    return Schedule(Task([A], S, "padded_sum"))


def diamond(n: int = 8) -> Schedule:
    """One producer with two readers."""
    A = te.placeholder((n,), name="A")
    T = te.compute((n,), lambda i: A[i] + 1.0, name="T")
    L = te.compute((n,), lambda i: T[i] * 2.0, name="L")
    R = te.compute((n,), lambda i: T[i] * L[i], name="R")
    return Schedule(Task([A], R, "diamond"))


def best_index(n: int = 6, m: int = 9) -> Schedule:
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis(m, name="k")
    best = te.compute((n,), lambda i: te.argmax(A[i, k], axis=k), name="best")
    return Schedule(Task([A], best, "best_index"))


def gather(n: int = 6) -> Schedule:
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), "int64", name="B")
    G = te.compute((n,), lambda i: A[B[i]] + 1.0, name="G")
    return Schedule(Task([A, B], G, "gather"))


def phases() -> Schedule:
    """Even and odd results have weights of their own, as in a transposed convolution."""
    X = te.placeholder((4,), name="X")
    W = te.placeholder((4, 8), name="W", constant=True)
    t = te.reduce_axis(2, "t")
    Y = te.compute((6, 8), lambda y, f: te.sum(X[y // 2 + t] * W[y % 2 + t * 2, f], axis=t), "Y")
    return Schedule(Task([X, W], Y, "phases"))
