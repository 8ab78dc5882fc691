"""Softmax and its logarithm against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.operators.nodes import check, run, uniform


def softmax(x: NDArray[Any], axes: tuple[int, ...]) -> NDArray[Any]:
    wide = x.astype("float64")
    power = np.exp(wide - wide.max(axis=axes, keepdims=True))
    return np.asarray(power / power.sum(axis=axes, keepdims=True))


@pytest.mark.parametrize(
    ("opset", "axis", "axes"),
    [
        (13, None, (2,)),
        (13, 0, (0,)),
        (13, 1, (1,)),
        (13, -1, (2,)),
        (11, None, (1, 2)),
        (11, 0, (0, 1, 2)),
        (11, -1, (2,)),
    ],
)
def test_softmax_runs_along_an_axis_and_before_opset_13_along_all_from_it_on(
    opset: int, axis: int | None, axes: tuple[int, ...]
) -> None:
    x = uniform(np.random.default_rng(0), 2, 3, 5)
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    expected = softmax(x, axes)
    check(run("Softmax", [x], opset=opset, **attributes), expected.astype("float32"))
    check(run("LogSoftmax", [x], opset=opset, **attributes), np.log(expected).astype("float32"))


def test_large_elements_neither_overflow_nor_lose_their_differences() -> None:
    x = np.array([[1e4, 1e4 + 1, 1e4 - 2], [-1e4, -1e4 + 3, 0]], "float32")
    expected = softmax(x, (1,))
    check(run("Softmax", [x]), expected.astype("float32"))
    small = np.array([[-1e4, -1e4 + 3, 0]])  # their powers are too small for any type
    check(run("LogSoftmax", [x]), np.vstack([np.log(expected[:1]), small]).astype("float32"))


def test_half_floats_are_summed_in_float32() -> None:
    x = uniform(np.random.default_rng(0), 2, 3000, dtype="float16")
    check(run("Softmax", [x]), softmax(x, (1,)).astype("float16"), rtol=2e-3, atol=1e-7)
    check(run("LogSoftmax", [x]), np.log(softmax(x, (1,))).astype("float16"), rtol=2e-3)
