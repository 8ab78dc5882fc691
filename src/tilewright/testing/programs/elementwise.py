"""Programs that compute each element by itself: arithmetic, functions, casts, integers, logic."""

from __future__ import annotations

from collections.abc import Callable

from tilewright import te
from tilewright.te import Expr, Task, Tensor
from tilewright.testing.programs.draw import FLOATS, INTEGERS, Draw


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
    names = (
        "exp",
        "tanh",
        "erf",
        "sigmoid",
        "sqrt",
        "log",
        "rsqrt",
        "pow",
        "floor",
        "ceil",
        "sin",
        "cos",
        "atan",
        "asinh",
    )
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
        "sin": lambda a, b: te.sin(a * 8.0 + b),
        "cos": lambda a, b: te.cos(b * 8.0 - a),
        "atan": lambda a, b: te.atan(a * 4.0 + b),
        "asinh": lambda a, b: te.asinh(b * 4.0 - a),
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
    A = te.placeholder(shape, draw.name(*INTEGERS), "A")
    B = te.placeholder(shape, draw.name(*INTEGERS), "B")
    divisor = draw.pick(3, 7, 8)
    Q = te.compute(shape, lambda i, j: A[i, j] // B[i, j] + A[i, j] // divisor, "Q")
    R = te.compute(shape, lambda i, j: A[i, j] % B[i, j] * 3 - B[i, j] % divisor, "R")
    M = te.compute(shape, lambda i, j: te.maximum(Q[i, j], R[i, j]) + te.abs(te.minimum(Q[i, j], R[i, j])), "M")
    out = te.compute(shape, lambda i, j: M[i, j] - te.cast(i - j * 2, M.dtype), "out")
    return Task([A, B], out, "integers")


def logic(draw: Draw) -> Task:
    shape = (draw.extent(33), draw.extent())
    A = te.placeholder(shape, draw.name(*FLOATS, *INTEGERS), "A")
    P = te.placeholder(shape, "bool", "P")
    big = te.compute(shape, lambda i, j: A[i, j] > A[i, 0], "big")
    mask = te.compute(shape, lambda i, j: (big[i, j] & ~P[i, j]) | te.equal((i + j) % 3, 0), "mask")
    k = te.reduce_axis(shape[1], "k")
    some = te.compute(shape[:1], lambda i: te.max(mask[i, k], axis=k), "some")
    out = te.compute(shape, lambda i, j: te.select(mask[i, j] & some[i], A[i, j], A[i, shape[1] - 1 - j]), "out")
    return Task([A, P], [out, mask], "logic")
