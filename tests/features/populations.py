"""Small tasks with schedules whose factors are open: given ints they are concrete, given arrays a population."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright import te
from tilewright.schedule import Extent, Schedule
from tilewright.te import Expr, Task

Factors: TypeAlias = list[Extent]


@dataclass(frozen=True, slots=True)
class Family:
    """A schedule with open factors, and values for each: some that divide, and some that do not."""

    make: Callable[[Factors], Schedule]
    dividing: tuple[tuple[int, ...], ...]
    other: tuple[tuple[int, ...], ...]

    def sample(self, seed: int, n: int, *, is_dividing: bool) -> NDArray[np.int64]:
        rng = np.random.default_rng(seed)
        tables = self.dividing if is_dividing else self.other
        return np.stack([rng.choice(table, n) for table in tables], axis=1).astype(np.int64)

    def population(self, matrix: NDArray[np.int64]) -> Schedule:
        return self.make([matrix[:, k] for k in range(matrix.shape[1])])

    def concrete(self, matrix: NDArray[np.int64], row: int) -> Schedule:
        return self.make([int(value) for value in matrix[row]])


def _gemm_task(with_relu: bool) -> Task:
    A, B = te.placeholder((24, 16), name="A"), te.placeholder((16, 32), name="B")
    k = te.reduce_axis(16, name="k")
    C = te.compute((24, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    if not with_relu:
        return Task([A, B], C, "gemm")
    D = te.compute((24, 32), lambda i, j: te.maximum(C[i, j], 0.0), name="D")
    return Task([A, B], D, "gemm_relu")


def tiled_gemm(f: Factors) -> Schedule:
    s = Schedule(_gemm_task(False))
    i0, i1, i2 = s["C"].split("i", [f[0], f[1]])
    j0, j1 = s["C"].split("j", f[2])
    k0, k1 = s["C"].split("k", f[3])
    s["C"].reorder(i0, j0, k0, i1, k1, i2, j1)
    s["C"].parallel(i0)
    s["C"].unroll(i2)
    s["C"].vectorize(j1)
    return s


def unrolled_gemm(f: Factors) -> Schedule:
    """What the pragma unrolls depends on the candidate."""
    s = Schedule(_gemm_task(False))
    i0, i1 = s["C"].split("i", f[0])
    j0, j1 = s["C"].split("j", f[1])
    k0, k1 = s["C"].split("k", f[2])
    s["C"].reorder(i0, j0, k0, k1, i1, j1)
    s["C"].vectorize(j1)
    s["C"].pragma(i0, auto_unroll_max_step=f[3])  # type: ignore[arg-type]
    return s


def fused_gemm_relu(f: Factors) -> Schedule:
    s = Schedule(_gemm_task(True))
    i0, i1 = s["D"].split("i", f[0])
    j0, j1 = s["D"].split("j", f[1])
    s["D"].reorder(i0, j0, i1, j1)
    fused = s["D"].fuse(i0, j0)
    s["D"].parallel(fused)
    s["D"].vectorize(j1)
    s["C"].compute_at("D", fused)
    i2, i3 = s["C"].split("i", f[2])
    k0, k1 = s["C"].split("k", f[3])
    s["C"].reorder(i2, k0, k1, i3, "j")
    s["C"].unroll(i3)
    s["C"].vectorize("j")
    return s


def packed_gemm(f: Factors) -> Schedule:
    """The partial sums of blocks of the reduction, with a panel packed at run time."""
    s = Schedule(_gemm_task(False))
    k0, _ = s["C"].split("k", f[0])
    partial = s["C"].rfactor(k0)
    i, j, k0 = s["C"].loops
    i0, i1 = s["C"].split(i, f[1])
    j0, j1 = s["C"].split(j, f[2])
    s["C"].reorder(j0, k0, i0, i1, j1)
    s["C"].unroll(i1)
    s["C"].vectorize(j1)
    partial.compute_at("C", i0)
    i, j, block, inner = partial.loops
    partial.reorder(block, inner, i, j)
    partial.vectorize(j)
    panel = s["B"].pack(partial)
    panel.compute_at("C", k0)
    return s


def _conv_task() -> Task:
    X = te.placeholder((1, 8, 8, 4), name="X")
    W = te.placeholder((3, 3, 4, 16), name="W", constant=True)

    def padded(n: Expr, i: Expr, j: Expr, c: Expr) -> Expr:
        inside = (i >= 1) & (i < 9) & (j >= 1) & (j < 9)
        return te.select(inside, X[n, i - 1, j - 1, c], 0.0)

    P = te.compute((1, 10, 10, 4), padded, name="P")
    ry, rx, rc = te.reduce_axis(3, name="ry"), te.reduce_axis(3, name="rx"), te.reduce_axis(4, name="rc")
    Y = te.compute(
        (1, 8, 8, 16),
        lambda n, i, j, c: te.sum(P[n, i + ry, j + rx, rc] * W[ry, rx, rc, c], axis=[ry, rx, rc]),
        name="Y",
    )
    return Task([X, W], Y, "conv2d")


def conv2d(pad_at: str) -> Callable[[Factors], Schedule]:
    """The padding at the root, inlined, or inside a loop of the convolution; the weights packed ahead."""

    def make(f: Factors) -> Schedule:
        s = Schedule(_conv_task())
        if pad_at == "inline":
            s["P"].compute_inline()
        y = s["Y"]
        i0, i1 = y.split("i", f[0])
        j0, j1 = y.split("j", f[1])
        c0, c1 = y.split("c", f[2])
        rc0, rc1 = y.split("rc", f[3])
        y.reorder(c0, i0, j0, i1, rc0, "ry", "rx", rc1, j1, c1)
        y.unroll(j1)
        y.vectorize(c1)
        s["W"].pack("Y")
        if pad_at in ("c.0", "i.0", "j.0", "i.1"):
            s["P"].compute_at("Y", pad_at)
        return s

    return make


def strided_conv1d(f: Factors) -> Schedule:
    """Steps of two, and taps two apart."""
    X = te.placeholder((2, 45, 8), name="X")
    W = te.placeholder((3, 8, 8), name="W")
    rk, rc = te.reduce_axis(3, name="rk"), te.reduce_axis(8, name="rc")
    Y = te.compute((2, 20, 8), lambda n, x, c: te.sum(X[n, x * 2 + rk * 2, rc] * W[rk, rc, c], axis=[rk, rc]), name="Y")
    s = Schedule(Task([X, W], Y, "conv1d"))
    x0, x1 = s["Y"].split("x", f[0])
    s["Y"].reorder("n", x0, "rk", "rc", x1, "c")
    s["Y"].split("rc", f[1])
    copy = s["X"].cache_read("Y")
    copy.compute_at("Y", x0)
    return s


def depthwise(f: Factors) -> Schedule:
    X = te.placeholder((1, 10, 10, 16), name="X")
    W = te.placeholder((3, 3, 16), name="W", constant=True)
    ry, rx = te.reduce_axis(3, name="ry"), te.reduce_axis(3, name="rx")
    Y = te.compute(
        (1, 8, 8, 16), lambda n, i, j, c: te.sum(X[n, i + ry, j + rx, c] * W[ry, rx, c], axis=[ry, rx]), name="Y"
    )
    s = Schedule(Task([X, W], Y, "depthwise"))
    j0, j1 = s["Y"].split("j", f[0])
    c0, c1 = s["Y"].split("c", f[1])
    s["Y"].reorder("i", c0, j0, "ry", "rx", j1, c1)
    s["Y"].unroll("rx")
    s["Y"].unroll(j1)
    s["Y"].vectorize(c1)
    s["Y"].parallel("i")
    return s


def softmax(f: Factors) -> Schedule:
    X = te.placeholder((12, 48), name="X")
    k, q = te.reduce_axis(48, name="k"), te.reduce_axis(48, name="k")
    T = te.compute((12,), lambda i: te.max(X[i, k], axis=k), name="T")
    E = te.compute((12, 48), lambda i, j: te.exp(X[i, j] - T[i]), name="E")
    S = te.compute((12,), lambda i: te.sum(E[i, q], axis=q), name="S")
    O = te.compute((12, 48), lambda i, j: E[i, j] / S[i] * 2.0 + X[i, j] * X[i, j], name="O")  # noqa: E741
    s = Schedule(Task([X], O, "softmax"))
    i0, i1 = s["O"].split("i", f[0])
    _, j1 = s["O"].split("j", f[1])
    s["O"].parallel(i0)
    s["O"].vectorize(j1)
    for name in ("S", "E", "T"):
        s[name].compute_at("O", i1)
    _, k1 = s["T"].split("k", f[2])
    s["T"].vectorize(k1)
    s["E"].split("j", f[1])
    return s


_HALVES, _THIRDS = (1, 2, 4, 8, 16), (1, 2, 3, 4, 6, 8, 12)

FAMILIES: dict[str, Family] = {
    "gemm": Family(tiled_gemm, ((1, 2, 3), (1, 2, 4), _HALVES, _HALVES), ((1, 3, 5), (1, 2, 7), (3, 5, 8), (3, 5, 16))),
    "gemm with pragma": Family(
        unrolled_gemm, (_THIRDS, _HALVES, _HALVES, (0, 8, 16, 64, 512)), (_THIRDS, _HALVES, _HALVES, (0, 16, 64, 512))
    ),
    "gemm and relu": Family(
        fused_gemm_relu, ((4, 8, 24), _HALVES, (1, 2, 4), _HALVES), ((5, 7), (6, 16), (3, 4), (3, 8))
    ),
    "packed gemm": Family(packed_gemm, (_HALVES, _THIRDS, _HALVES), ((3, 5, 8), (5, 7), (6, 12))),
    "depthwise": Family(depthwise, ((1, 2, 4, 8), _HALVES), ((3, 5), (3, 6, 16))),
    "strided conv1d": Family(strided_conv1d, ((1, 2, 4, 5, 10), (1, 2, 4, 8)), ((3, 7), (3, 5))),
    "softmax": Family(softmax, ((1, 2, 3, 4), (4, 8, 16, 48), (1, 4, 16, 48)), ((5, 7), (5, 16), (5, 32))),
    **{
        f"conv2d, pad {where}": Family(
            conv2d(where), ((1, 2, 4, 8), (1, 2, 4, 8), _HALVES, (1, 2, 4)), ((3, 5), (3, 5, 8), (6, 16), (3, 4))
        )
        for where in ("root", "inline", "c.0", "i.0", "j.0", "i.1")
    },
}
