"""The largest and smallest elements along an axis, against NumPy's stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.operators import MisfitError, NotCompilableError
from tilewright.testing.operators import run_operator


def sorted_first(x: NDArray[Any], number: int, axis: int, is_largest: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    keys = -x.astype(np.float64) if is_largest else x
    places = np.argsort(keys, axis=axis, kind="stable").take(range(number), axis=axis)
    return np.take_along_axis(x, places, axis), places


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "uint8"])
@pytest.mark.parametrize("is_largest", [True, False])
@pytest.mark.parametrize(
    ("shape", "number", "axis"), [((3, 20), 5, -1), ((7, 2), 7, 0), ((2, 9, 3), 1, 1), ((1,), 1, 0), ((4, 1), 1, 1)]
)
def test_the_first_elements_in_order(
    shape: tuple[int, ...], number: int, axis: int, is_largest: bool, dtype: str
) -> None:
    x = np.random.default_rng(0).integers(0, 6, shape).astype(dtype)
    values, places = run_operator("TopK", x, np.array([number]), axis=axis, largest=int(is_largest), outputs=2)
    expected_values, expected_places = sorted_first(x, number, axis, is_largest)
    np.testing.assert_array_equal(values, expected_values)
    np.testing.assert_array_equal(places, expected_places)


def test_infinities_are_elements_as_any() -> None:
    x = np.array([-np.inf, 1, -np.inf, np.inf], np.float32)
    values, places = run_operator("TopK", x, np.array([4]), outputs=2)
    np.testing.assert_array_equal(values, [np.inf, 1, -np.inf, -np.inf])
    np.testing.assert_array_equal(places, [3, 1, 0, 2])


@pytest.mark.parametrize("is_largest", [True, False])
def test_what_is_no_number_comes_last(is_largest: bool) -> None:
    x = np.array([1, np.nan, 3, np.nan, -np.inf, 1], np.float32)
    values, places = run_operator("TopK", x, np.array([6]), largest=int(is_largest), outputs=2)
    expected = [2, 0, 5, 4, 1, 3] if is_largest else [4, 0, 5, 2, 1, 3]
    assert places.tolist() == expected
    np.testing.assert_array_equal(values, x[expected])


def test_more_elements_than_there_are() -> None:
    with pytest.raises(MisfitError, match="TopK asks for 5 of 4 elements"):
        run_operator("TopK", np.zeros(4, np.float32), np.array([5]), outputs=2)


def test_long_rows_are_not_compiled() -> None:
    with pytest.raises(NotCompilableError, match="up to 16777216 are compiled"):
        run_operator("TopK", np.zeros(5000, np.float32), np.array([5]), outputs=2)
