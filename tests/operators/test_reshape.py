"""Reshapes: their index arithmetic against NumPy, and how much of it there is."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import te
from tilewright.operators import NotCompilableError
from tilewright.operators.reshape import source_indices
from tilewright.te import Task, evaluate
from tilewright.testing.operators import run_operator


def text(source: tuple[int, ...], target: tuple[int, ...]) -> list[str]:
    axes = [te.reduce_axis(extent, name) for extent, name in zip(target, "ijklm", strict=False)]
    return [str(index) for index in source_indices(source, target, axes)]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ((24,), (2, 3, 4), ["i * 12 + j * 4 + k"]),
        ((2, 12, 64), (2, 3, 4, 64), ["i", "j * 4 + k", "l"]),
        ((2, 1, 5), (2, 5), ["i", "0", "j"]),
        ((2, 3, 4), (6, 4), ["i // 3", "i % 3", "j"]),
        ((2, 3, 4), (24,), ["i // 12", "i // 4 % 3", "i % 4"]),
        ((4, 6), (8, 3), ["i // 2", "i % 2 * 3 + j"]),
        ((4, 6), (3, 8), ["(i * 8 + j) // 6", "(i * 8 + j) % 6"]),
        ((1, 1), (1,), ["0", "0"]),
    ],
)
def test_divisions_are_only_where_dimensions_are_merged(
    source: tuple[int, ...], target: tuple[int, ...], expected: list[str]
) -> None:
    assert text(source, target) == expected


@st.composite
def two_shapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two shapes of the same elements, made of the same factors in another grouping."""
    factors = draw(st.lists(st.sampled_from([1, 2, 3, 4, 5]), min_size=1, max_size=6))

    def grouped() -> list[int]:
        cuts = sorted(draw(st.lists(st.integers(0, len(factors)), max_size=4)))
        bounds = [0, *cuts, len(factors)]
        order = draw(st.permutations(factors)) if draw(st.booleans()) else factors
        return [math.prod(order[a:b]) for a, b in pairwise(bounds)]

    return grouped(), grouped()


@given(two_shapes())
def test_any_two_shapes_keep_the_row_major_order(shapes: tuple[list[int], list[int]]) -> None:
    source, target = shapes
    X = te.placeholder(source, "int64", "X")
    Y = te.compute(target, lambda *i: X[source_indices(source, target, i)], "Y")
    numbers = np.arange(math.prod(source))
    np.testing.assert_array_equal(evaluate(Task([X], Y), numbers.reshape(source))[0], numbers.reshape(target))


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("shape", "attributes", "expected"),
    [([4, 6], {}, (4, 6)), ([0, -1], {}, (2, 12)), ([-1], {}, (24,)), ([2, 0, 2, 2], {}, (2, 3, 2, 2))],
)
def test_reshape_fills_in_dimensions(shape: list[int], attributes: dict[str, Any], expected: tuple[int, ...]) -> None:
    (found,) = run_operator("Reshape", X, np.array(shape), **attributes)
    np.testing.assert_array_equal(found, X.reshape(expected))


@pytest.mark.parametrize(
    ("shape", "attributes"), [([5, 5], {}), ([-1, -1], {}), ([0, 24], {"allowzero": 1}), ([7, -1], {})]
)
def test_a_shape_of_other_elements_is_not_compiled(shape: list[int], attributes: dict[str, Any]) -> None:
    with pytest.raises(NotCompilableError):
        run_operator("Reshape", X, np.array(shape), **attributes)


def test_flatten_squeeze_and_unsqueeze() -> None:
    np.testing.assert_array_equal(run_operator("Flatten", X, axis=-1)[0], X.reshape(6, 4))
    np.testing.assert_array_equal(run_operator("Flatten", X, axis=3)[0], X.reshape(24, 1))
    np.testing.assert_array_equal(run_operator("Squeeze", X[None, :, None], np.array([0, -3]))[0], X)
    np.testing.assert_array_equal(run_operator("Squeeze", X[None, :, None])[0], X)
    np.testing.assert_array_equal(run_operator("Unsqueeze", X, np.array([-1, 1]))[0], X[:, None, :, :, None])


def test_axes_are_attributes_before_opset_13() -> None:
    np.testing.assert_array_equal(run_operator("Squeeze", X[None], opset=11, axes=[0])[0], X)
    np.testing.assert_array_equal(run_operator("Unsqueeze", X, opset=11, axes=[0, 4])[0], X[None, ..., None])


def test_shape_arithmetic_is_exact_in_a_kernel() -> None:
    y = np.arange(60, dtype=np.int64).reshape(4, 15)
    np.testing.assert_array_equal(run_operator("Reshape", y, np.array([6, 10]), known=[1])[0], y.reshape(6, 10))
