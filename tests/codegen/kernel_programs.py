"""Schedules as people write them, with extents that neither tiles nor vectors divide on any target."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.schedules import conv2d_schedule, depthwise_schedule, gemm_schedule, row_schedule
from tests.codegen.elementwise_programs import (
    casts,
    divisions,
    functions,
    functions_of_angles,
    functions_of_two,
    narrowing,
    widening,
)
from tests.codegen.program import Array, Program, random
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.te import Task

# --- matrix products -------------------------------------------------------------------------------------------------


def product(dtype: str, wide: str) -> Program:
    """A matrix product of `dtype`, summed in `wide`."""
    return product_of(dtype, lambda a, b: te.cast(a, wide) * te.cast(b, wide), random)


def product_of(
    dtype: str, term: Callable[[te.Expr, te.Expr], te.Expr], inputs: Callable[[Task], list[Array]]
) -> Program:
    """Sums of a term of the elements of two matrices."""

    def schedule(target: Target, threads: int) -> Schedule:
        A, B = te.placeholder((13, 35), dtype, "A"), te.placeholder((35, 21), dtype, "B")
        r = te.reduce_axis(35, name="r")
        C = te.compute((13, 21), lambda i, j: te.sum(term(A[i, r], B[r, j]), axis=r), "C")
        s = Schedule(Task([A, B], [C], "product"))
        stage = s["C"]
        i, j, k = stage.loops
        i_tile, i_row = stage.split(i, 4)
        j_tile, j_lane = stage.split(j, 2 * target.lanes("float32"))
        stage.reorder(i_tile, j_tile, k, i_row, j_lane)
        stage.unroll(i_row)
        stage.vectorize(j_lane)
        if threads > 1:
            stage.parallel(i_tile)
        return s

    return Program(schedule, inputs)


def any_words(task: Task) -> list[Array]:
    """Bytes of all kinds, and rows of the largest and the smallest: an instruction that saturates would show."""
    rng = np.random.default_rng(5)
    arrays = [rng.integers(-(2**31), 2**31, tensor.shape).astype(np.int32) for tensor in task.inputs]
    for array in arrays:
        array[:2], array[2:3] = -1, np.int32(-2139062144)  # bytes of 255 and -1, and of 128 and -128
    return arrays


# --- rows ------------------------------------------------------------------------------------------------------------


def softmax(target: Target, threads: int) -> Schedule:
    rows, cols = 11, 101
    X = te.placeholder((rows, cols), name="X")
    k, q = te.reduce_axis(cols, name="k"), te.reduce_axis(cols, name="q")
    T = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="T")
    E = te.compute((rows, cols), lambda i, j: te.exp(X[i, j] - T[i]), name="E")
    S = te.compute((rows,), lambda i: te.sum(E[i, q], axis=q), name="S")
    out = te.compute((rows, cols), lambda i, j: E[i, j] / S[i], name="O")
    return row_schedule(Schedule(Task([X], [out], "softmax")), ["T", "E", "S"], threads)


def softmax_inputs(task: Task) -> list[Array]:
    """Rows with NaN, with an infinity of either sign, and with numbers whose exponentials overflow."""
    x = random(task)[0]
    x[1, 50], x[2, 3], x[3, 77] = np.nan, np.inf, -np.inf
    x[4] *= 1e4
    x[5] = 100.0
    return [x]


def layer_norm(target: Target, threads: int) -> Schedule:
    rows, cols = 11, 131
    X = te.placeholder((rows, cols), name="X")
    gamma, beta = te.placeholder((cols,), name="gamma"), te.placeholder((cols,), name="beta")
    k, q = te.reduce_axis(cols, name="k"), te.reduce_axis(cols, name="q")
    T = te.compute((rows,), lambda i: te.sum(X[i, k], axis=k), name="T")
    M = te.compute((rows,), lambda i: T[i] * (1.0 / cols), name="M")
    V = te.compute((rows,), lambda i: te.sum((X[i, q] - M[i]) * (X[i, q] - M[i]), axis=q), name="V")
    R = te.compute((rows,), lambda i: te.rsqrt(V[i] * (1.0 / cols) + 1e-5), name="R")
    out = te.compute((rows, cols), lambda i, j: (X[i, j] - M[i]) * R[i] * gamma[j] + beta[j], name="O")
    s = Schedule(Task([X, gamma, beta], [out], "layer_norm"))
    return row_schedule(s, ["T", "M", "V", "R"], threads)


def arg_reductions(target: Target, threads: int) -> Schedule:
    """The first largest and the first smallest of each row, across lanes."""
    rows, cols = 9, 45
    X = te.placeholder((rows, cols), name="X")
    k, q = te.reduce_axis(cols, name="k"), te.reduce_axis(cols, name="q")
    top = te.compute((rows,), lambda i: te.argmax(X[i, k], axis=k), name="top")
    low = te.compute((rows,), lambda i: te.argmin(X[i, q], axis=q), name="low")
    s = Schedule(Task([X], [top, low], "arg_reductions"))
    for name in ("top", "low"):
        stage = s[name]
        _, lane = stage.split(stage.loops[-1], 16)
        stage.vectorize(lane)
        if threads > 1:
            stage.parallel(stage.loops[0])
    return s


def arg_inputs(task: Task) -> list[Array]:
    """Many equal values, rows of infinities, NaN in several places, and zeros of both signs."""
    x = np.random.default_rng(7).integers(-3, 4, (9, 45)).astype(np.float32)
    x[1], x[2] = np.inf, -np.inf
    x[3, 0] = x[4, 22] = x[5, 30] = x[5, 44] = np.nan
    x[6], x[7, 1::2] = -0.0, 0.0
    return [x]


# --- all -------------------------------------------------------------------------------------------------------------


def _on_target(schedule: Callable[..., Schedule], *sizes: int) -> Program:
    return Program(lambda target, threads: schedule(*sizes, threads, target))


PROGRAMS: dict[str, Program] = {
    "gemm": _on_target(gemm_schedule, 37, 45, 29),
    "conv2d": _on_target(conv2d_schedule, 7, 9, 5, 19),
    "depthwise": _on_target(depthwise_schedule, 7, 9, 21),
    "gemm_int8": product("int8", "int32"),
    "gemm_words": product_of("int32", te.dot4, any_words),
    "gemm_float16": product("float16", "float16"),
    "gemm_bfloat16": product("bfloat16", "bfloat16"),
    "gemm_float64": product("float64", "float64"),
    "softmax": Program(softmax, softmax_inputs),
    "layer_norm": Program(layer_norm),
    "arg_reductions": Program(arg_reductions, arg_inputs),
    "functions_float32": functions("float32"),
    "functions_float64": functions("float64"),
    "functions_of_angles_float32": functions_of_angles("float32"),
    "functions_of_angles_float64": functions_of_angles("float64"),
    "functions_of_two_float32": functions_of_two("float32"),
    "functions_of_two_float64": functions_of_two("float64"),
    "divisions_int8": divisions("int8"),
    "divisions_uint8": divisions("uint8"),
    "divisions_int32": divisions("int32"),
    "divisions_int64": divisions("int64"),
    "casts_uint8": casts("uint8"),
    "casts_int64": casts("int64"),
    "casts_float64": casts("float64"),
    "widening_float16": widening("float16"),
    "widening_bfloat16": widening("bfloat16"),
    "narrowing_float16": narrowing("float16"),
    "narrowing_bfloat16": narrowing("bfloat16"),
}
