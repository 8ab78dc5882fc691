"""Activation functions where a plain formula overflows or loses digits."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.testing.operators import run_operator

X = np.array([-1000, -90, -20, -1e-3, -0.0, 1e-6, 0.5, 3, 30, 90, 1000], np.float32)


def test_softplus_neither_overflows_nor_vanishes_too_early() -> None:
    expected = np.logaddexp(0, X.astype(np.float64))
    np.testing.assert_allclose(run_operator("Softplus", X)[0], expected, rtol=1e-6, atol=1e-38)


def test_mish_is_the_identity_far_right_and_zero_far_left() -> None:
    x = X.astype(np.float64)
    np.testing.assert_allclose(run_operator("Mish", X)[0], x * np.tanh(np.logaddexp(0, x)), rtol=1e-6, atol=1e-36)


@pytest.mark.parametrize("op", ["Elu", "Selu", "Celu"])
def test_exponential_units_stay_finite(op: str) -> None:
    assert np.isfinite(run_operator(op, X)[0]).all()


def test_shrink_of_integers_gives_integers() -> None:
    x = np.array([-3, -1, 0, 1, 3], np.int32)
    (found,) = run_operator("Shrink", x, lambd=1.5, bias=1.5)
    assert found.dtype == np.int32
    assert found.tolist() == [-1, 0, 0, 0, 1]
