"""Operators that read shapes and attributes only."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tilewright.testing.operators import run_operator

X = np.zeros((2, 3, 4), np.float32)


def test_shapes_and_parts_of_them() -> None:
    assert run_operator("Shape", X)[0].tolist() == [2, 3, 4]
    assert run_operator("Shape", X, start=-2)[0].tolist() == [3, 4]
    assert run_operator("Shape", X, start=0, end=-1)[0].tolist() == [2, 3]
    assert run_operator("Size", X)[0].tolist() == 24


@pytest.mark.parametrize(
    ("start", "limit", "step", "dtype"),
    [(1, 10, 3, "int64"), (10, 1, -2, "int32"), (0.5, 3, 0.3, "float32"), (1, -1, -0.25, "float64")],
)
def test_ranges(start: float, limit: float, step: float, dtype: str) -> None:
    (found,) = run_operator("Range", *(np.array(number, dtype) for number in (start, limit, step)))
    np.testing.assert_allclose(found, np.arange(start, limit, step).astype(dtype), rtol=1e-6)


def test_a_constant_has_the_type_of_its_value() -> None:
    value = np.array([7], np.int8)
    (found,) = run_operator("ConstantOfShape", np.array([2, 2]), value=onnx.numpy_helper.from_array(value))
    assert found.dtype == np.int8
    assert found.tolist() == [[7, 7], [7, 7]]
    assert run_operator("ConstantOfShape", np.array([1]))[0].dtype == np.float32


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_ones_on_a_diagonal(k: int) -> None:
    (found,) = run_operator("EyeLike", X[0], k=k, dtype=7)
    np.testing.assert_array_equal(found, np.eye(3, 4, k, np.int64))
