"""Quantisation of whole tensors, along axes, and in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.operators.nodes import reference
from tilewright.operators import NotCompilableError
from tilewright.testing.operators import run_operator

X = np.random.default_rng(0).normal(0, 60, (3, 4, 6)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quotients_round_to_even_and_saturate(dtype: str) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, 254.5, -300], np.float32)
    zero = np.array(3, dtype)
    (found,) = run_operator("QuantizeLinear", x, np.array(1, np.float32), zero)
    limits = np.iinfo(dtype)
    np.testing.assert_array_equal(found, np.clip(np.rint(x) + 3, limits.min, limits.max).astype(dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_parameters_along_an_axis(dtype: str) -> None:
    scale, zero = np.array([0.5, 1, 2, 4], np.float32), np.array([0, 1, 2, 100], dtype)
    (found,) = run_operator("QuantizeLinear", X, scale, zero, axis=1)
    np.testing.assert_array_equal(found, reference("QuantizeLinear", [X, scale, zero], axis=1)[0])
    (back,) = run_operator("DequantizeLinear", found, scale, zero, axis=1)
    np.testing.assert_allclose(back, reference("DequantizeLinear", [found, scale, zero], axis=1)[0], rtol=1e-6)


def test_parameters_of_blocks() -> None:
    scale = np.linspace(0.5, 2, 24, dtype=np.float32).reshape(3, 4, 2)
    zero = np.arange(24, dtype=np.int8).reshape(3, 4, 2)
    attributes: dict[str, Any] = {"axis": 2, "block_size": 3}
    (found,) = run_operator("QuantizeLinear", X, scale, zero, **attributes)
    np.testing.assert_array_equal(found, reference("QuantizeLinear", [X, scale, zero], **attributes)[0])
    (back,) = run_operator("DequantizeLinear", found, scale, zero, **attributes)
    np.testing.assert_allclose(back, reference("DequantizeLinear", [found, scale, zero], **attributes)[0], rtol=1e-6)


def test_without_a_zero_point_the_type_is_an_attribute() -> None:
    scale = np.array(1, np.float32)
    assert run_operator("QuantizeLinear", X, scale)[0].dtype == np.uint8
    assert run_operator("QuantizeLinear", X, scale, output_dtype=3)[0].dtype == np.int8
    with pytest.raises(NotCompilableError, match="element type 5"):
        run_operator("QuantizeLinear", X, scale, output_dtype=5)


@pytest.mark.parametrize("shift", [-300, 0, 300])
def test_a_range_always_holds_zero(shift: int) -> None:
    x = X + np.float32(shift)
    for found, expected in zip(
        run_operator("DynamicQuantizeLinear", x, outputs=3),
        reference("DynamicQuantizeLinear", [x], num_outputs=3),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_tensor_of_zeros_has_a_scale() -> None:
    quantized, scale, zero = run_operator("DynamicQuantizeLinear", np.zeros(4, np.float32), outputs=3)
    assert quantized.tolist() == [0] * 4
    assert scale > 0
    assert zero == 0
