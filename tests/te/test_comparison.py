"""Random inputs and comparison: the ranges they take, and what counts as equal."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import Task, te
from tilewright.te import assert_matches, random_inputs, reduction_size


@pytest.mark.parametrize("dtype", list(te.DTYPES))
def test_inputs_have_the_storage_type_and_come_from_the_seed(dtype: str) -> None:
    X = te.placeholder((64,), dtype, name="X")
    task = Task([X], te.compute((64,), lambda i: X[i], name="Y"))
    (a,) = random_inputs(task, np.random.default_rng(1))
    (b,) = random_inputs(task, np.random.default_rng(1))
    assert a.shape == (64,)
    assert a.dtype == te.numpy_dtype(dtype)
    assert len(np.unique(a)) > 1
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_rounding_is_accepted_and_a_wrong_term_is_not(dtype: str) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.uniform(-1, 1, (32, 256)), rng.uniform(-1, 1, (256, 32))
    exact = a @ b

    def stored(values: np.ndarray) -> np.ndarray:
        return te.float32_to_bfloat16(values) if dtype == "bfloat16" else values.astype(dtype)

    assert_matches(stored(exact * (1 + np.finfo(np.float64).eps)), stored(exact), dtype, 256)
    wrong = exact.copy()
    wrong[3, 4] += 2.0
    with pytest.raises(AssertionError, match=r"1 of 1024 elements of type \w+ differ; the first at \(3, 4\)"):
        assert_matches(stored(wrong), stored(exact), dtype, 256)


def test_float32_accumulation_in_order_is_accepted() -> None:
    rng = np.random.default_rng(3)
    terms = rng.uniform(-1, 1, (100, 4608)).astype(np.float32)
    in_order = np.cumsum(terms, axis=1, dtype=np.float32)[:, -1]
    assert_matches(in_order, terms.sum(1, dtype=np.float64).astype(np.float32), "float32", 4608)


def test_special_values_must_agree() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert_matches(values, values.copy(), "float32")
    with pytest.raises(AssertionError, match="2 of 4"):
        assert_matches(np.array([0.0, np.inf, np.inf, 1.0], np.float32), values, "float32")


def test_integers_must_be_equal() -> None:
    assert_matches(np.array([2**60]), np.array([2**60]), "int64")
    with pytest.raises(AssertionError, match="1 of 1"):
        assert_matches(np.array([2**60 + 1]), np.array([2**60]), "int64")


def test_shape_and_type_must_agree() -> None:
    with pytest.raises(AssertionError, match=r"shape is \(2,\), expected \(3,\)"):
        assert_matches(np.zeros(2), np.zeros(3), "float64")
    with pytest.raises(AssertionError, match="dtype is float64, expected float32"):
        assert_matches(np.zeros(2), np.zeros(2, np.float32), "float32")


def test_reduction_size_is_the_largest_of_the_stages() -> None:
    X = te.placeholder((4, 8, 2), name="X")
    k, l = te.reduce_axis(8, name="k"), te.reduce_axis(2, name="l")  # noqa: E741
    R = te.compute((4,), lambda i: te.sum(X[i, k, l], axis=[k, l]), name="R")
    assert reduction_size(Task([X], te.compute((4,), lambda i: R[i] + 1.0, name="Y"))) == 16
    assert reduction_size(Task([X], te.compute((4,), lambda i: X[i, 0, 0], name="Y"))) == 1
