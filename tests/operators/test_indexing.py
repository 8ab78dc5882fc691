"""Gathers and one-hot vectors."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.operators import Call, Node, express
from tilewright.testing.operators import run_operator

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("known", [(), (1,)])
@pytest.mark.parametrize("indices", [2, -1, [0, 2, -3], [[1, 1], [-1, 0]], [0, 1, 2], [3, 2, 1, 0], [1, 1, 1]])
def test_gather(indices: object, known: tuple[int, ...], dtype: str) -> None:
    places = np.array(indices, dtype)
    (found,) = run_operator("Gather", X, places, known=known, axis=1)
    np.testing.assert_array_equal(found, np.take(X, places, axis=1))


def test_places_that_are_known_and_evenly_spaced_are_not_read() -> None:
    table, places = te.placeholder((8, 3), name="table"), te.placeholder((3,), "int64", "places")
    node = Node("Gather", ("table", "places"), ("y",))
    (Y,) = express(Call(node, [table, places], [None, np.array([1, 3, 5])]))
    assert str(Y) == "gather[i0, i1] = table[i0 * 2 + 1, i1]"
    (Y,) = express(Call(node, [table, places], [None, np.array([1, 3, 4])]))
    assert "places" in str(Y)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements(axis: int) -> None:
    places = np.random.default_rng(0).integers(-3, 3, (3, 4, 5))
    (found,) = run_operator("GatherElements", X, places, axis=axis)
    np.testing.assert_array_equal(found, np.take_along_axis(X, places % X.shape[axis], axis))


def test_gather_nd_with_and_without_a_batch() -> None:
    places = np.array([[[0, 1], [2, -1]]])
    np.testing.assert_array_equal(run_operator("GatherND", X, places)[0], X[[[0, 2]], [[1, -1]]])
    batched = np.array([[[1, 0]], [[3, 4]], [[-1, 2]]])
    (found,) = run_operator("GatherND", X, batched, batch_dims=1)
    np.testing.assert_array_equal(found, X[[[0], [1], [2]], [[1], [3], [-1]], [[0], [4], [2]]])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_an_index_outside_of_the_depth_is_nowhere(axis: int) -> None:
    places, values = np.array([0, 2, -1, 5, -7]), np.array([1.5, 9], np.float32)
    rows = np.full((5, 4), 1.5, np.float32)
    rows[[0, 1, 2], [0, 2, 3]] = 9
    (found,) = run_operator("OneHot", places, np.array(4), values, axis=axis)
    np.testing.assert_array_equal(found, rows.T if axis == 0 else rows)


@pytest.mark.parametrize(("mode", "expected"), [("linear", [0, 0, 7, 8]), ("circular", [9, 0, 7, 8])])
def test_a_cache_is_written_at_each_place(mode: str, expected: list[int]) -> None:
    cache, update = np.zeros((1, 4, 1), np.float32), np.array([7, 8, 9], np.float32).reshape(1, 3, 1)
    (found,) = run_operator("TensorScatter", cache, update, np.array([2]), opset=24, mode=mode)
    assert found.reshape(-1).tolist() == expected
