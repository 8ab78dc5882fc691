"""The reference evaluator against the same computation written with NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright import ExpressionError, KernelArgumentError, Task, build, te
from tilewright.te import assert_matches, evaluate, random_inputs, reduction_size
from tilewright.te import evaluation as reference

Array = NDArray[Any]
RNG = np.random.default_rng(0)


def _f32(values: list[Any]) -> Array:
    return np.array(values, np.float32)


def _i32(values: list[int]) -> Array:
    return np.array(values, np.int32)


def _unary(function: Callable[[te.Expr], te.ExprLike], array: Array, dtype: str | None = None) -> Array:
    """`function` of every element of a vector."""
    X = te.placeholder(array.shape, dtype or array.dtype.name, name="X")
    return evaluate(Task([X], te.compute(array.shape, lambda i: function(X[i]), name="Y")), array)[0]


def _binary(function: Callable[[te.Expr, te.Expr], te.ExprLike], a: Array, b: Array) -> Array:
    X = te.placeholder(a.shape, a.dtype.name, name="X")
    Y = te.placeholder(b.shape, b.dtype.name, name="Y")
    Z = te.compute(a.shape, lambda i: function(X[i], Y[i]), name="Z")
    return evaluate(Task([X, Y], Z), a, b)[0]


@pytest.fixture(params=[None, 64, 7, 1], ids=lambda n: f"blocks of {n}")
def small_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with blocks so small that spatial and reduce axes are both cut."""
    if request.param is not None:
        monkeypatch.setattr(reference, "_BLOCK_POINTS", request.param)


@pytest.mark.usefixtures("small_blocks")
def test_gemm_with_epilogue() -> None:
    A, B = te.placeholder((5, 7), name="A"), te.placeholder((7, 3), name="B")
    k = te.reduce_axis(7, name="k")
    C = te.compute((5, 3), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((5, 3), lambda i, j: te.maximum(C[i, j], 0.0), name="D")
    task = Task([A, B], [D, C])
    a, b = random_inputs(task, RNG)
    d, c = evaluate(task, a, b)
    assert_matches(c, a @ b, "float32", 7)
    assert_matches(d, np.maximum(a @ b, 0), "float32", 7)


@pytest.mark.usefixtures("small_blocks")
def test_strided_convolution_with_padding() -> None:
    X = te.placeholder((2, 6, 5, 3), name="X")
    W = te.placeholder((3, 3, 3, 4), name="W", constant=True)
    y, x, c = te.reduce_axis(3, name="ry"), te.reduce_axis(3, name="rx"), te.reduce_axis(3, name="rc")

    def padded(n: te.Axis, h: te.Axis, w: te.Axis, ch: te.Axis) -> te.Expr:
        inside = (h >= 1) & (h < 7) & (w >= 1) & (w < 6)
        return te.select(inside, X[n, h - 1, w - 1, ch], 0.0)

    P = te.compute((2, 8, 7, 3), padded, name="P")
    Y = te.compute(
        (2, 3, 3, 4),
        lambda n, h, w, o: te.sum(P[n, h * 2 + y, w * 2 + x, c] * W[y, x, c, o], axis=[y, x, c]),
        name="Y",
    )
    task = Task([X, W], Y)
    data, weight = random_inputs(task, RNG)
    wide = np.pad(data, ((0, 0), (1, 1), (1, 1), (0, 0)))
    expected = np.zeros((2, 3, 3, 4), np.float32)
    for dy in range(3):
        for dx in range(3):
            expected += wide[:, dy : dy + 5 : 2, dx : dx + 5 : 2] @ weight[dy, dx]
    assert_matches(evaluate(task, data, weight)[0], expected, "float32", reduction_size(task))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.usefixtures("small_blocks")
def test_softmax_in_every_float_type(dtype: str) -> None:
    X = te.placeholder((4, 9), dtype, name="X")
    k, l = te.reduce_axis(9, name="k"), te.reduce_axis(9, name="l")  # noqa: E741
    M = te.compute((4,), lambda i: te.max(X[i, k], axis=k), name="M")
    E = te.compute((4, 9), lambda i, j: te.exp(X[i, j] - M[i]), name="E")
    S = te.compute((4,), lambda i: te.sum(E[i, l], axis=l), name="S")
    Y = te.compute((4, 9), lambda i, j: E[i, j] / S[i], name="Y")
    task = Task([X], Y)
    (x,) = random_inputs(task, RNG)
    numbers = te.bfloat16_to_float32(x) if dtype == "bfloat16" else x
    e = np.exp(numbers.astype(np.float64) - numbers.max(axis=1, keepdims=True))
    expected = e / e.sum(axis=1, keepdims=True)
    stored = te.float32_to_bfloat16(expected) if dtype == "bfloat16" else expected.astype(dtype)
    assert_matches(evaluate(task, x)[0], stored, dtype, 9)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg_reductions_give_the_first_of_equals(name: str) -> None:
    X = te.placeholder((6, 5, 4), name="X")
    a, b = te.reduce_axis(5, name="a"), te.reduce_axis(4, name="b")
    both = te.compute((6,), lambda i: getattr(te, name)(X[i, a, b], axis=[a, b]), name="both")
    one = te.compute((6, 4), lambda i, j: getattr(te, name)(X[i, a, j], axis=a), name="one")
    x = RNG.integers(0, 3, (6, 5, 4)).astype(np.float32)
    x[2, 3, 1] = x[2, 4, 0] = np.nan
    actual = evaluate(Task([X], [both, one]), x)
    numpy_function = getattr(np, name)
    np.testing.assert_array_equal(actual[0], numpy_function(x.reshape(6, -1), axis=1))
    np.testing.assert_array_equal(actual[1], numpy_function(x, axis=1))
    assert actual[0].dtype == np.int64


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32", "float64"])
def test_reductions_in_every_type(dtype: str) -> None:
    X = te.placeholder((3, 8), dtype, name="X")
    k = te.reduce_axis(8, name="k")
    task = Task(
        [X],
        [
            te.compute((3,), lambda i: te.sum(X[i, k], axis=k), name="total"),
            te.compute((3,), lambda i: te.prod(X[i, k], axis=k), name="product"),
            te.compute((3,), lambda i: te.max(X[i, k], axis=k), name="largest"),
            te.compute((3,), lambda i: te.min(X[i, k], axis=k), name="smallest"),
        ],
    )
    (x,) = random_inputs(task, RNG)
    expected = [x.sum(1, dtype=dtype), x.prod(1, dtype=dtype), x.max(1), x.min(1)]
    for actual, values in zip(evaluate(task, x), expected, strict=True):
        assert_matches(actual, values, dtype, 8)


def test_a_reduction_of_bools_by_max_and_min_is_any_and_all() -> None:
    X = te.placeholder((4, 3), "bool", name="X")
    k = te.reduce_axis(3, name="k")
    some = te.compute((4,), lambda i: te.max(X[i, k], axis=k), name="some")
    all_ = te.compute((4,), lambda i: te.min(X[i, k], axis=k), name="all")
    x = np.array([[0, 0, 0], [0, 1, 0], [1, 1, 1], [1, 1, 0]], bool)
    actual = evaluate(Task([X], [some, all_]), x)
    np.testing.assert_array_equal(actual[0], x.any(1))
    np.testing.assert_array_equal(actual[1], x.all(1))


def test_max_and_min_carry_nan() -> None:
    a, b = _f32([1, np.nan, 3, np.nan]), _f32([2, 2, np.nan, np.nan])
    np.testing.assert_array_equal(_binary(te.maximum, a, b), np.maximum(a, b))
    np.testing.assert_array_equal(_binary(te.minimum, a, b), np.minimum(a, b))


SIGNED = np.array([-128, -8, -7, -1, 0, 1, 7, 8, 127], np.int64)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integer_division_rounds_down_and_by_zero_gives_zero(dtype: str) -> None:
    a, b = (x.ravel().astype(dtype) for x in np.meshgrid(SIGNED, SIGNED))
    quotient, remainder = _binary(te.floordiv, a, b), _binary(te.floormod, a, b)
    for x, y, q, r in zip(a.tolist(), b.tolist(), quotient.tolist(), remainder.tolist(), strict=True):
        wraps = dtype == "int8" and (x, y) == (-128, -1)
        assert q == (0 if y == 0 else -128 if wraps else x // y)
        assert r == (0 if y == 0 else x % y)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_wrap_around(dtype: str) -> None:
    limits = np.iinfo(dtype)
    a = np.array([limits.max, limits.min, 3], dtype)
    low, span = int(limits.min), 1 << int(limits.bits)

    def wrapped(x: int) -> int:
        return (x - low) % span + low

    assert _binary(lambda x, y: x + y, a, a).tolist() == [wrapped(2 * x) for x in a.tolist()]
    assert _binary(lambda x, y: x * y, a, a).tolist() == [wrapped(x * x) for x in a.tolist()]
    assert _unary(lambda x: -x, a).tolist() == [wrapped(-x) for x in a.tolist()]
    assert _unary(lambda x: 0 - x - 1, a).tolist() == [wrapped(-x - 1) for x in a.tolist()]


SPECIAL = _f32([-np.inf, -100, -1.5, -1.0, -1e-3, -0.0, 0.0, 1e-3, 0.5, 1.0, 2.5, 100, np.inf, np.nan])
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)) if x != -math.inf else 0.0,
    "abs": abs,
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_at_special_values(name: str) -> None:
    expected = [FUNCTIONS[name](x) for x in SPECIAL.tolist()]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(_unary(getattr(te, name), SPECIAL), np.array(expected).astype(np.float32))


@pytest.mark.parametrize("name", ["log", "sqrt", "floor", "ceil", "sin", "cos", "tan", "sinh", "cosh"])
def test_functions_that_numpy_has_agree_with_it(name: str) -> None:
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(SPECIAL.astype(np.float64)).astype(np.float32)
        inverse_root = (1 / np.sqrt(SPECIAL.astype(np.float64))).astype(np.float32)
    np.testing.assert_array_equal(_unary(getattr(te, name), SPECIAL), expected)
    np.testing.assert_array_equal(_unary(te.rsqrt, SPECIAL), inverse_root)


def test_pow_and_division_by_zero() -> None:
    a, b = _f32([2, 0, -1, 4, 0]), _f32([3, 0, 0.5, -0.5, -1])
    np.testing.assert_array_equal(_binary(te.pow, a, b), _f32([8, 1, np.nan, 0.5, np.inf]))
    np.testing.assert_array_equal(_binary(lambda x, y: x / y, b, a), _f32([1.5, np.nan, -0.5, -0.125, -np.inf]))


def test_comparisons_and_logic() -> None:
    a, b = _i32([1, 2, 3, 4]), _i32([2, 2, 2, 5])
    np.testing.assert_array_equal(_binary(lambda x, y: (x < y) | te.equal(x, y) & (y > 2), a, b), a < b)
    np.testing.assert_array_equal(_binary(lambda x, y: ~(x >= y) & te.not_equal(x, 4), a, b), (a < b) & (a != 4))
    np.testing.assert_array_equal(_binary(lambda x, y: te.select(x <= y, x, y), a, b), np.minimum(a, b))


@pytest.mark.parametrize("target", list(te.DTYPES))
@pytest.mark.parametrize("source", list(te.DTYPES))
def test_casts_between_all_types(source: str, target: str) -> None:
    numbers = np.array([0, 1, 2, 100] if te.DTYPES[source].kind != "bool" else [0, 1])
    x = te.float32_to_bfloat16(numbers) if source == "bfloat16" else numbers.astype(te.numpy_dtype(source))
    y = _unary(lambda v: te.cast(v, target), x, source)
    expected = numbers != 0 if target == "bool" else numbers
    assert y.dtype == te.numpy_dtype(target)
    np.testing.assert_array_equal(te.bfloat16_to_float32(y) if target == "bfloat16" else y, expected)


def test_casts_to_integers_truncate() -> None:
    assert _unary(lambda x: te.cast(x, "int32"), _f32([-1.7, -0.2, 1.7])).tolist() == [-1, 0, 1]


@pytest.mark.parametrize(("dtype", "kept", "stored"), [("float16", 2049.0, 2048.0), ("bfloat16", 257.0, 256.0)])
def test_half_types_compute_in_float32_and_round_when_stored_or_cast(dtype: str, kept: float, stored: float) -> None:
    X = te.placeholder((1,), dtype, name="X")
    fused = te.compute((1,), lambda i: X[i] + 1.0 - stored, name="fused")
    first = te.compute((1,), lambda i: X[i] + 1.0, name="first")
    staged = te.compute((1,), lambda i: first[i] - stored, name="staged")
    through = te.compute((1,), lambda i: te.cast(te.cast(X[i] + 1.0 + 0.0, "float32"), dtype) - stored, name="through")
    value = _f32([kept - 1.0])
    x = te.float32_to_bfloat16(value) if dtype == "bfloat16" else value.astype(np.float16)
    outputs = evaluate(Task([X], [fused, staged, through]), x)
    numbers = [float(te.bfloat16_to_float32(y)[0] if dtype == "bfloat16" else y[0]) for y in outputs]
    assert numbers == [kept - stored, 0.0, 0.0]


def test_values_that_do_not_depend_on_an_axis_are_repeated() -> None:
    X = te.placeholder((3,), name="X")
    k = te.reduce_axis(4, name="k")
    Y = te.compute((2, 3), lambda i, j: X[j], name="Y")
    Z = te.compute((2,), lambda i: te.sum(1.5, axis=k), name="Z")
    x = _f32([1, 2, 3])
    y, z = evaluate(Task([X], [Y, Z]), x)
    np.testing.assert_array_equal(y, np.tile(x, (2, 1)))
    np.testing.assert_array_equal(z, _f32([6, 6]))


def test_a_tensor_without_dimensions() -> None:
    X = te.placeholder((), name="X")
    V = te.placeholder((3,), name="V")
    k = te.reduce_axis(3, name="k")
    total = te.compute((), lambda: te.sum(V[k] * X[()], axis=k), name="total")
    task = Task([X, V], total)
    (y,) = evaluate(task, np.array(2.0, np.float32), _f32([1, 2, 3]))
    assert y.shape == ()
    assert y == 12.0


def test_gather_by_data() -> None:
    X, I = te.placeholder((5, 2), name="X"), te.placeholder((4,), "int32", name="I")  # noqa: E741
    Y = te.compute((4, 2), lambda i, j: X[I[i], j], name="Y")
    task = Task([X, I], Y)
    x, index = random_inputs(task, RNG)
    assert 0 <= index.min() <= index.max() < 5
    np.testing.assert_array_equal(evaluate(task, x, index)[0], x[index])


def test_indices_that_count_from_the_end_where_negative_stay_inside() -> None:
    X, I = te.placeholder((3, 2), name="X"), te.placeholder((64,), "int64", name="I")  # noqa: E741
    Y = te.compute((64, 2), lambda i, j: X[te.select(I[i] < 0, I[i] + 3, I[i]), j], name="Y")
    task = Task([X, I], Y)
    x, index = random_inputs(task, RNG)
    np.testing.assert_array_equal(evaluate(task, x, index)[0], x[index])


def test_reads_out_of_bounds_raise_where_no_select_leaves_them_out() -> None:
    X, I = te.placeholder((5, 4), name="X"), te.placeholder((4,), "int32", name="I")  # noqa: E741
    wrong_guard = te.compute((5,), lambda i: te.select(i >= 0, X[i - 1, 0], 0.0), name="wrong")
    beside_data = te.compute((4,), lambda i: te.select(i < 4, X[I[i], i + 1], 0.0), name="beside_data")
    x = np.zeros((5, 4), np.float32)
    with pytest.raises(ExpressionError, match=r"compute wrong reads `X\[i - 1, 0\]` out of bounds"):
        evaluate(Task([X], wrong_guard), x)
    with pytest.raises(ExpressionError, match=r"compute beside_data reads `X\[.*, i \+ 1\]` out of bounds"):
        evaluate(Task([X, I], beside_data), x, _i32([0, 1, 2, 3]))


def test_an_index_that_depends_on_data_is_clamped_as_in_kernels() -> None:
    X, I = te.placeholder((5,), name="X"), te.placeholder((6,), "int32", name="I")  # noqa: E741
    task = Task([X, I], te.compute((6,), lambda i: X[I[i] + 1], name="next"))
    x, index = _f32([0, 10, 20, 30, 40]), _i32([-9, -1, 0, 3, 4, 9])
    expected = _f32([0, 0, 10, 40, 40, 40])
    np.testing.assert_array_equal(evaluate(task, x, index)[0], expected)
    np.testing.assert_array_equal(build(task)(x, index), expected)


def test_nested_selects_guard_together() -> None:
    X = te.placeholder((5,), name="X")
    Y = te.compute((9,), lambda i: te.select(i >= 2, te.select(i < 7, X[i - 2], 1.0), 2.0), name="Y")
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(Task([X], Y), x)[0], _f32([2, 2, 0, 1, 2, 3, 4, 1, 1]))


def test_wrong_arguments_are_named() -> None:
    X = te.placeholder((2,), name="X")
    task = Task([X], te.compute((2,), lambda i: X[i], name="Y"), name="copy")
    with pytest.raises(KernelArgumentError, match="task copy has 1 inputs, but 0 arrays"):
        evaluate(task)
    with pytest.raises(KernelArgumentError, match=r"input X must be float32\[2\], got float64\[3\]"):
        evaluate(task, np.zeros(3))
