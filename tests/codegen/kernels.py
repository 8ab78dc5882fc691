"""The kernels that are compiled for other machines: schedules as people write them, their inputs, and what to expect.

Extents are such that tiles and vectors do not divide them, for every target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import tilewright as tw
from benchmarks.schedules import conv2d_schedule, depthwise_schedule, gemm_schedule, row_schedule
from tests.codegen.test_math import special, ulp_distance
from tilewright import te
from tilewright.te import Expr, Tensor
from tilewright.testing import assert_matches, evaluate, random_inputs
from tilewright.testing.arrays import reduction_size

Array = npt.NDArray[Any]

# What functions of one argument promise; those not named here promise 4.
MAX_ULP = {"floor": 0, "ceil": 0, "sqrt": 0, "abs": 0, "rsqrt": 1}


@dataclass(frozen=True, slots=True)
class Program:
    """A schedule for a target and a number of threads, inputs for its task, and the comparison of its outputs."""

    schedule: Callable[[tw.Target, int], tw.Schedule]
    inputs: Callable[[tw.Task], list[Array]]
    check: Callable[[tw.Task, Sequence[Array], Sequence[Array]], None]


def check_rounded(task: tw.Task, actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """The outputs are equal up to rounding."""
    for tensor, a, e in zip(task.outputs, actual, expected, strict=True):
        assert_matches(a, e, tensor.dtype, reduction_size(task))


def check_ulp(task: tw.Task, actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """The outputs are equal to a few units in the last place, whatever their magnitude; zeros have the same sign."""
    for tensor, a, e in zip(task.outputs, actual, expected, strict=True):
        distance = ulp_distance(a, e)
        worst = int(np.argmax(distance))
        message = f"{tensor.name} at {worst} is {a[worst]!r}, expected {e[worst]!r}: {distance[worst]} ulp"
        assert distance[worst] <= MAX_ULP.get(tensor.name, 4), message


def check_bits(task: tw.Task, actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """The outputs are equal bit by bit; any NaN is as good as another."""
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(e))


def random(task: tw.Task) -> list[Array]:
    return random_inputs(task, np.random.default_rng(7))


# --- matrix products and convolutions ----------------------------------------------------------------------------


def integer_gemm(target: tw.Target, threads: int) -> tw.Schedule:
    """int8 by int8 into int32."""
    return _tiled_product((13, 21, 35), "int8", "int32", target, threads)


def half_gemm(dtype: str) -> Callable[[tw.Target, int], tw.Schedule]:
    return lambda target, threads: _tiled_product((13, 21, 35), dtype, dtype, target, threads)


def _tiled_product(
    shape: tuple[int, int, int], dtype: str, wide: str, target: tw.Target, threads: int
) -> tw.Schedule:
    m, n, k = shape
    A, B = te.placeholder((m, k), dtype, "A"), te.placeholder((k, n), dtype, "B")
    r = te.reduce_axis(k, name="r")
    C = te.compute((m, n), lambda i, j: te.sum(te.cast(A[i, r], wide) * te.cast(B[r, j], wide), axis=r), name="C")
    s = tw.Schedule(tw.Task([A, B], [C], name="product"))
    stage = s["C"]
    i, j, r_loop = stage.loops
    i_tile, i_row = stage.split(i, 4)
    j_tile, j_lane = stage.split(j, 2 * target.lanes("float32"))
    stage.reorder(i_tile, j_tile, r_loop, i_row, j_lane)
    stage.unroll(i_row)
    stage.vectorize(j_lane)
    if threads > 1:
        stage.parallel(i_tile)
    return s


# --- rows ----------------------------------------------------------------------------------------------------------


def softmax(target: tw.Target, threads: int) -> tw.Schedule:
    rows, cols = 11, 101
    X = te.placeholder((rows, cols), name="X")
    k, q = te.reduce_axis(cols, name="k"), te.reduce_axis(cols, name="q")
    T = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="T")
    E = te.compute((rows, cols), lambda i, j: te.exp(X[i, j] - T[i]), name="E")
    S = te.compute((rows,), lambda i: te.sum(E[i, q], axis=q), name="S")
    out = te.compute((rows, cols), lambda i, j: E[i, j] / S[i], name="O")
    return row_schedule(tw.Schedule(tw.Task([X], [out], name="softmax")), ["T", "E", "S"], threads)


def softmax_inputs(task: tw.Task) -> list[Array]:
    """A row each with NaN, an infinity of either sign, and numbers whose exponentials would overflow."""
    x = random(task)[0]
    x[1, 50], x[2, 3], x[3, 77] = np.nan, np.inf, -np.inf
    x[4] *= 1e4
    x[5] = 88.0
    return [x]


def layer_norm(target: tw.Target, threads: int) -> tw.Schedule:
    rows, cols = 11, 131
    X = te.placeholder((rows, cols), name="X")
    gamma, beta = te.placeholder((cols,), name="gamma"), te.placeholder((cols,), name="beta")
    k, q = te.reduce_axis(cols, name="k"), te.reduce_axis(cols, name="q")
    T = te.compute((rows,), lambda i: te.sum(X[i, k], axis=k), name="T")
    M = te.compute((rows,), lambda i: T[i] * (1.0 / cols), name="M")
    V = te.compute((rows,), lambda i: te.sum((X[i, q] - M[i]) * (X[i, q] - M[i]), axis=q), name="V")
    R = te.compute((rows,), lambda i: te.rsqrt(V[i] * (1.0 / cols) + 1e-5), name="R")
    out = te.compute((rows, cols), lambda i, j: (X[i, j] - M[i]) * R[i] * gamma[j] + beta[j], name="O")
    s = tw.Schedule(tw.Task([X, gamma, beta], [out], name="layer_norm"))
    return row_schedule(s, ["T", "M", "V", "R"], threads)


def argmax(target: tw.Target, threads: int) -> tw.Schedule:
    """The first largest and the first smallest of each row; the reductions run across lanes."""
    rows, cols = 9, 45
    X = te.placeholder((rows, cols), name="X")
    k, q = te.reduce_axis(cols, name="k"), te.reduce_axis(cols, name="q")
    top = te.compute((rows,), lambda i: te.argmax(X[i, k], axis=k), name="top")
    low = te.compute((rows,), lambda i: te.argmin(X[i, q], axis=q), name="low")
    s = tw.Schedule(tw.Task([X], [top, low], name="argmax"))
    for name in ("top", "low"):
        stage = s[name]
        _, lane = stage.split(stage.loops[-1], 16)
        stage.vectorize(lane)
        if threads > 1:
            stage.parallel(stage.loops[0])
    return s


def argmax_inputs(task: tw.Task) -> list[Array]:
    """Many equal values, rows of infinities, and NaN at the beginning, in the middle and twice."""
    x = np.random.default_rng(7).integers(-3, 4, (9, 45)).astype(np.float32)
    x[1], x[2] = np.inf, -np.inf
    x[3, 0] = x[4, 22] = x[5, 30] = x[5, 44] = np.nan
    x[6], x[7, 1::2] = -0.0, 0.0
    return [x]


# --- elementwise ---------------------------------------------------------------------------------------------------


def elementwise(
    inputs: Sequence[Tensor], lanes: int, bodies: dict[str, Callable[..., Expr]], threads: int
) -> tw.Schedule:
    """Each body of the same element of all inputs, in vectors and a rest."""
    shape = inputs[0].shape
    outputs = [te.compute(shape, lambda i, f=body: f(*(t[i] for t in inputs)), name=n) for n, body in bodies.items()]
    s = tw.Schedule(tw.Task(list(inputs), outputs, name="elementwise"))
    for output in outputs:
        stage = s[output.name]
        block, inner = stage.split(stage.loops[0], 2 * lanes + 3)
        stage.vectorize(inner)
        if threads > 1:
            stage.parallel(block)
    return s


def functions(dtype: str) -> Program:
    """Every function of one argument, and pow, on special values and on ordinary ones."""
    values = special(dtype)
    pairs = np.repeat(values, len(values)), np.tile(values, len(values))
    ordinary = np.random.default_rng(7).uniform(-20, 20, (2, 1000)).astype(dtype)
    x, y = (np.concatenate([a, b]) for a, b in zip(pairs, ordinary, strict=True))

    def schedule(target: tw.Target, threads: int) -> tw.Schedule:
        X, Y = te.placeholder(x.shape, dtype, "X"), te.placeholder(x.shape, dtype, "Y")
        unary = (te.abs, te.ceil, te.erf, te.exp, te.floor, te.log, te.rsqrt, te.sigmoid, te.sqrt, te.tanh)
        bodies: dict[str, Callable[..., Expr]] = {f.__name__: lambda a, b, f=f: f(a) for f in unary}
        bodies["pow"] = te.pow
        bodies["largest"], bodies["smallest"] = te.maximum, te.minimum
        return elementwise([X, Y], target.lanes(dtype), bodies, threads)

    return Program(schedule, lambda task: [x, y], check_ulp)


def divisions(dtype: str) -> Program:
    """Floor division and remainder of integers by everything, zero and -1 included."""
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, *range(max(info.min, -5), 6), 7, 100, info.max - 1, info.max], dtype)
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))

    def schedule(target: tw.Target, threads: int) -> tw.Schedule:
        X, Y = te.placeholder(x.shape, dtype, "X"), te.placeholder(x.shape, dtype, "Y")
        return elementwise([X, Y], target.lanes(dtype), {"quotient": te.floordiv, "rest": te.floormod}, threads)

    return Program(schedule, lambda task: [x, y], check_bits)


def all_halves(dtype: str) -> Program:
    """Every value of a half type to float32 and to itself, and float32 values between its neighbours to it."""
    bits = np.arange(0x10000, dtype=np.uint16)
    halves = bits.view(np.float16) if dtype == "float16" else bits
    singles = between_halves(dtype)

    def schedule(target: tw.Target, threads: int) -> tw.Schedule:
        H, F = te.placeholder(halves.shape, dtype, "H"), te.placeholder(singles.shape, "float32", "F")
        wide = te.compute(halves.shape, lambda i: te.cast(H[i], "float32"), name="wide")
        narrow = te.compute(singles.shape, lambda i: te.cast(F[i], dtype), name="narrow")
        s = tw.Schedule(tw.Task([H, F], [wide, narrow], name="halves"))
        for name in ("wide", "narrow"):
            _, inner = s[name].split(s[name].loops[0], 2 * target.lanes("float32") + 3)
            s[name].vectorize(inner)
        return s

    return Program(schedule, lambda task: [halves, singles], check_halves)


def between_halves(dtype: str) -> Array:
    """For neighbouring values of a half type: the tie between them and its two neighbours in float32, of both signs.

    Above the largest finite value it is the tie with the power of two that would follow, from where all is infinite.
    """
    infinity, shift = (0x7C00, 13) if dtype == "float16" else (0x7F80, 16)
    below = np.arange(infinity, dtype=np.uint16)
    if dtype == "float16":
        low, high = below.view(np.float16).astype(np.float64), (below + 1).astype(np.uint16).view(np.float16).astype(np.float64)
        high[-1] = 2.0**16
        tie = ((low + high) / 2).astype(np.float32)
    else:
        tie = ((below.astype(np.uint32) << shift) + (1 << (shift - 1))).astype(np.uint32).view(np.float32)
    near = np.concatenate([tie, np.nextafter(tie, np.float32(0)), np.nextafter(tie, np.float32(np.inf))])
    return np.concatenate([near, -near])
