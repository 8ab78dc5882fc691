"""Scatters: who wins, what is combined, and what costs too much."""

from __future__ import annotations

import numpy as np
import pytest

from tests.operators.nodes import reference
from tilewright.operators import NotCompilableError
from tilewright.testing.operators import run_operator

X = np.arange(12, dtype=np.float32).reshape(3, 4)
REDUCTIONS = ["none", "add", "mul", "max", "min"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1])
def test_scattered_elements_agree_with_onnx(reduction: str, axis: int) -> None:
    places = np.array([[0, -1, 1], [2, 1, 1]])
    updates = np.array([[10, -20, 3], [4, 5, 60]], np.float32)
    expected = reference("ScatterElements", [X, places, updates], axis=axis, reduction=reduction)[0]
    (found,) = run_operator("ScatterElements", X, places, updates, axis=axis, reduction=reduction)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_scattered_slices_agree_with_onnx(reduction: str, dtype: str) -> None:
    places = np.array([[[0], [2]], [[0], [-2]]])
    updates = np.arange(16).reshape(2, 2, 4).astype(dtype)
    expected = reference("ScatterND", [X.astype(dtype), places, updates], reduction=reduction)[0]
    (found,) = run_operator("ScatterND", X.astype(dtype), places, updates, reduction=reduction)
    np.testing.assert_array_equal(found, expected)


def test_the_last_of_several_updates_is_written() -> None:
    places, updates = np.array([[1, 2], [0, 0], [1, 2]]), np.array([7, 8, 9], np.float32)
    (found,) = run_operator("ScatterND", X, places, updates)
    assert (found[1, 2], found[0, 0]) == (9, 8)


def test_a_scatter_of_many_updates_is_not_compiled() -> None:
    large = np.zeros(1 << 13, np.float32)
    with pytest.raises(NotCompilableError, match="comparisons are compiled"):
        run_operator("ScatterElements", large, np.zeros(1 << 13, np.int64), large)
