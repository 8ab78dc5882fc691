"""Circular and hyperbolic functions: errors in units in the last place, and special values."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.testing.operators import run_operator

ANGLES = np.concatenate([np.linspace(-30, 30, 4001), np.geomspace(1e-8, 1e5, 2001), np.arange(1, 50) * np.pi / 2])
UNIT = np.concatenate([np.linspace(-1, 1, 2001), np.geomspace(1e-8, 1, 500), 1 - np.geomspace(1e-6, 1, 500)])
ANY = np.concatenate([np.linspace(-80, 80, 2001), np.geomspace(1e-8, 80, 1000)])
LARGE = np.concatenate([ANY, np.geomspace(1e2, 1e30, 100), -np.geomspace(1e2, 1e30, 100)])

DOMAINS = {
    "Sin": ANGLES,
    "Cos": ANGLES,
    "Tan": ANGLES,
    "Asin": UNIT,
    "Acos": UNIT,
    "Atan": LARGE,
    "Sinh": ANY,
    "Cosh": ANY,
    "Asinh": LARGE,
    "Acosh": 1 + np.geomspace(1e-6, 1e30, 2001),
    "Atanh": UNIT,
}
NUMPY = {"Asin": "arcsin", "Acos": "arccos", "Atan": "arctan"}
NUMPY |= {"Asinh": "arcsinh", "Acosh": "arccosh", "Atanh": "arctanh"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", DOMAINS)
def test_errors_are_some_units_in_the_last_place(op: str, dtype: str) -> None:
    x = DOMAINS[op].astype(dtype)
    wide = np.float64 if dtype == "float32" else np.longdouble
    with np.errstate(divide="ignore"):
        expected = getattr(np, NUMPY.get(op, op.lower()))(x.astype(wide))
    (found,) = run_operator(op, x)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite].astype(dtype))
    error = np.abs(found[finite].astype(wide) - expected[finite])
    unit = np.spacing(np.abs(expected[finite]).astype(dtype)).astype(wide)
    assert float((error / unit).max()) <= (1.0 if dtype == "float32" else 4.0)


@pytest.mark.parametrize("op", ["Sin", "Cos", "Tan"])
def test_an_infinite_angle_is_not_a_number(op: str) -> None:
    assert np.isnan(run_operator(op, np.array([np.inf, -np.inf, np.nan], np.float32))[0]).all()


@pytest.mark.parametrize("op", ["Asin", "Acos", "Atanh"])
def test_beyond_one_there_is_no_number(op: str) -> None:
    assert np.isnan(run_operator(op, np.array([1.5, -1.5, np.nan], np.float32))[0]).all()


def test_limits_at_infinity() -> None:
    x = np.array([np.inf, -np.inf], np.float32)
    np.testing.assert_allclose(run_operator("Atan", x)[0], [np.pi / 2, -np.pi / 2], rtol=1e-7)
    np.testing.assert_array_equal(run_operator("Sinh", x)[0], x)
    np.testing.assert_array_equal(run_operator("Cosh", x)[0], np.abs(x))
    np.testing.assert_array_equal(run_operator("Asinh", x)[0], x)
