"""Reductions: axes of all opsets, types that overflow, places of extremes, running sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.operators import NotCompilableError
from tilewright.testing.operators import run_operator

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [None, [1], [-1, 0], [0, 1, 2]])
@pytest.mark.parametrize(("opset", "is_operand"), [(11, False), (13, False), (18, True)])
def test_axes_are_an_attribute_and_then_an_operand(
    axes: list[int] | None, keepdims: int, opset: int, is_operand: bool
) -> None:
    operands = [np.array(axes)] if is_operand and axes is not None else []
    attributes: dict[str, Any] = {"axes": axes} if not is_operand and axes is not None else {}
    (found,) = run_operator("ReduceMax", X, *operands, opset=opset, keepdims=keepdims, **attributes)
    np.testing.assert_array_equal(found, X.max(None if axes is None else tuple(axes), keepdims=bool(keepdims)))


def test_sums_take_their_axes_as_an_operand_since_opset_13() -> None:
    np.testing.assert_allclose(run_operator("ReduceSum", X, opset=11, axes=[1])[0], X.sum(1, keepdims=True), rtol=1e-5)
    (found,) = run_operator("ReduceSum", X, np.array([1]), opset=13, keepdims=0)
    np.testing.assert_allclose(found, X.sum(1), rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "expected"), [("ReduceSum", X), ("ReduceL1", abs(X)), ("ReduceSumSquare", X * X), ("ReduceL2", abs(X))]
)
def test_without_axes_nothing_is_reduced_if_so_asked(op: str, expected: np.ndarray) -> None:
    np.testing.assert_allclose(run_operator(op, X, noop_with_empty_axes=1)[0], expected, rtol=1e-6)


def test_a_mean_of_16_bit_floats_does_not_overflow() -> None:
    x = np.full((2, 4096), 100, np.float16)
    assert run_operator("ReduceMean", x, np.array([1]))[0].tolist() == [[100], [100]]
    assert run_operator("ReduceL2", x, np.array([1]))[0].tolist() == [[6400], [6400]]


def test_integer_means_are_rounded_towards_zero() -> None:
    x = np.array([[-1, -2], [1, 2], [4, 4]], np.int32)
    assert run_operator("ReduceMean", x, np.array([1]), keepdims=0)[0].tolist() == [-1, 1, 4]


def test_log_sum_exp_of_large_and_infinite_elements() -> None:
    x = np.array([[1000, 1000], [-np.inf, 3], [-np.inf, -np.inf], [np.inf, 1], [-1000, -1001]], np.float32)
    (found,) = run_operator("ReduceLogSumExp", x, np.array([1]), keepdims=0)
    np.testing.assert_allclose(found, np.logaddexp(*x.astype(np.float64).T), rtol=1e-6)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_the_first_or_the_last_of_equals(op: str, dtype: str) -> None:
    x = np.array([[1, 3, 3, 1, 2], [0, 0, 0, 0, 0]], dtype)
    first = {"ArgMax": [1, 0], "ArgMin": [0, 0]}[op]
    last = {"ArgMax": [2, 4], "ArgMin": [3, 4]}[op]
    assert run_operator(op, x, axis=1, keepdims=0)[0].tolist() == first
    assert run_operator(op, x, axis=1, keepdims=0, select_last_index=1)[0].tolist() == last


@pytest.mark.parametrize("opset", [11, 13])
def test_hardmax_took_all_axes_from_its_own_before_opset_13(opset: int) -> None:
    (found,) = run_operator("Hardmax", X, opset=opset, axis=1)
    flat = X.reshape(3, 20) if opset == 11 else np.moveaxis(X, 1, 2).reshape(15, 4)
    rows = np.zeros_like(flat)
    rows[np.arange(len(flat)), flat.argmax(1)] = 1
    expected = rows.reshape(X.shape) if opset == 11 else np.moveaxis(rows.reshape(3, 5, 4), 2, 1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("p", [1, 2])
def test_a_norm_of_zero_leaves_zeros(p: int) -> None:
    x = np.array([[3, -4], [0, 0]], np.float32)
    expected = np.array([[3, -4], [0, 0]]) / ([[7], [1]] if p == 1 else [[5], [1]])
    np.testing.assert_allclose(run_operator("LpNormalization", x, p=p, axis=1)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_sums_and_products(exclusive: int, reverse: int) -> None:
    x = np.arange(1, 11, dtype=np.int64).reshape(2, 5)
    for op, run, neutral in (("CumSum", np.cumsum, 0), ("CumProd", np.cumprod, 1)):
        y = x[:, ::-1] if reverse else x
        if exclusive:
            y = np.concatenate([np.full((2, 1), neutral), y[:, :-1]], 1)
        expected = run(y, axis=1)
        (found,) = run_operator(op, x, np.array(1), opset=26, exclusive=exclusive, reverse=reverse)
        np.testing.assert_array_equal(found, expected[:, ::-1] if reverse else expected)


def test_running_sums_of_very_long_axes_are_not_compiled() -> None:
    with pytest.raises(NotCompilableError, match="steps"):
        run_operator("CumSum", np.zeros(1 << 13, np.float32), np.array(0))


def test_the_norm_of_integers_whose_squares_leave_their_type() -> None:
    np.testing.assert_array_equal(run_operator("ReduceL2", np.array([[60000, 80000]], np.int32))[0], [[100000]])
