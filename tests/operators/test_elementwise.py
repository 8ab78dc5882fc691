"""Elementwise operators: broadcasting, roundings, bounds and types."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilewright import te
from tilewright.operators import Call, Node, NotCompilableError, express
from tilewright.testing.operators import run_operator

SPECIAL = [
    0.5,
    1.5,
    2.5,
    -0.5,
    -1.5,
    -2.5,
    0.49999997,
    -0.0,
    8388609.0,
    4194304.5,
    -1e30,
    math.inf,
    -math.inf,
    math.nan,
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_round_takes_the_even_of_two(dtype: str) -> None:
    with np.errstate(over="ignore"):
        x = np.array(SPECIAL).astype(dtype)
    np.testing.assert_array_equal(run_operator("Round", x)[0], np.rint(x))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_sign_of_zero_is_zero(dtype: str) -> None:
    x = np.array([3, 0, 1] if dtype == "uint8" else [3, 0, -2], dtype)
    np.testing.assert_array_equal(run_operator("Sign", x)[0], np.sign(x))
    if dtype == "float32":
        assert np.isnan(run_operator("Sign", np.array([np.nan], np.float32))[0][0])


def test_three_operands_broadcast_to_one_shape() -> None:
    a, b, c = (np.random.default_rng(0).normal(size=s).astype(np.float32) for s in ((2, 1, 4), (3, 1), ()))
    np.testing.assert_array_equal(run_operator("Max", a, b, c)[0], np.maximum(np.maximum(a, b), c))
    np.testing.assert_allclose(run_operator("Sum", a, b, c)[0], a + b + c, rtol=1e-6)
    np.testing.assert_allclose(run_operator("Mean", a, b, c)[0], (a + b + c) / 3, rtol=1e-6)


def test_max_and_min_keep_nan() -> None:
    a, b = np.array([1, np.nan, 3], np.float32), np.array([np.nan, 2, 1], np.float32)
    np.testing.assert_array_equal(run_operator("Max", a, b)[0], np.maximum(a, b))
    np.testing.assert_array_equal(run_operator("Min", a, b)[0], np.minimum(a, b))


def test_shapes_that_do_not_broadcast_are_not_compiled() -> None:
    with pytest.raises(NotCompilableError, match="cannot broadcast"):
        run_operator("Add", np.zeros(3, np.float32), np.zeros(4, np.float32))


def test_a_number_that_is_known_is_written_into_the_expression() -> None:
    X, two = te.placeholder((4,), name="X"), te.placeholder((1,), name="two")
    (Y,) = express(Call(Node("Mul", ("x", "two"), ("y",)), [X, two], [None, np.array([2], np.float32)]))
    assert str(Y) == "mul[i0] = X[i0] * 2.0"


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (2.0, -2.0), (None, 0.5), (0.5, None), (None, None)])
def test_clip_bounds_as_numpy_does(low: float | None, high: float | None) -> None:
    x = np.array([-3, -0.5, 0, 0.7, 5, np.nan], np.float32)
    bounds = [None if bound is None else np.array(bound, np.float32) for bound in (low, high)]
    expected = x if low is high is None else np.clip(x, low, high)
    np.testing.assert_array_equal(run_operator("Clip", x, *bounds)[0], expected)


def test_is_inf_looks_for_the_signs_that_are_asked_for() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1], np.float32)
    assert run_operator("IsInf", x, detect_negative=0)[0].tolist() == [True, False, False, False]
    assert run_operator("IsInf", x, detect_positive=0)[0].tolist() == [False, True, False, False]
    assert run_operator("IsInf", x, detect_positive=0, detect_negative=0)[0].tolist() == [False] * 4


def test_cast_truncates_floats_and_tests_for_zero() -> None:
    x = np.array([-2.7, -0.3, 0, 0.9, 2.5], np.float32)
    assert run_operator("Cast", x, to=6)[0].tolist() == [-2, 0, 0, 0, 2]
    assert run_operator("Cast", x, to=9)[0].tolist() == [True, True, False, True, True]
    with pytest.raises(NotCompilableError, match="element type 17"):
        run_operator("Cast", x, to=17)


def test_prelu_takes_slopes_that_broadcast_to_its_input_only() -> None:
    x = np.array([[-1, 2], [3, -4]], np.float32)
    np.testing.assert_array_equal(run_operator("PRelu", x, np.array([[2], [3]], np.float32))[0], [[-2, 2], [3, -12]])
    with pytest.raises(NotCompilableError, match="slope"):
        run_operator("PRelu", x[0], np.ones((2, 2), np.float32))
