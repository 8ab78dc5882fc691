"""Products and convolutions of 8-bit integers against ONNX's evaluator and NumPy, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.operators.nodes import check, conv_weights, reference, run, run_channels_last
from tilewright.operators import NotCompilableError


def integers(rng: np.random.Generator, dtype: str, *shape: int) -> NDArray[Any]:
    limits = np.iinfo(dtype)
    return np.asarray(rng.integers(limits.min, limits.max + 1, shape).astype(dtype))


@pytest.mark.parametrize(("a_type", "b_type"), [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")])
@pytest.mark.parametrize(("a_shape", "b_shape"), [((3, 40), (40, 5)), ((2, 3, 40), (40, 5)), ((2, 3, 40), (2, 40, 5))])
def test_integer_products_take_off_zero_points(
    a_type: str, b_type: str, a_shape: tuple[int, ...], b_shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    a, b = integers(rng, a_type, *a_shape), integers(rng, b_type, *b_shape)
    expected = a.astype("int32") @ b.astype("int32")
    check(run("MatMulInteger", [a, b]), expected)
    a_zero, b_zero = integers(rng, a_type, 1), integers(rng, b_type, 5)
    expected = (a.astype("int32") - a_zero) @ (b.astype("int32") - b_zero)
    check(run("MatMulInteger", [a, b, a_zero, b_zero]), expected)


def test_a_zero_point_for_each_row() -> None:
    rng = np.random.default_rng(0)
    a, b, zero = integers(rng, "uint8", 3, 4), integers(rng, "int8", 4, 5), integers(rng, "uint8", 3)
    check(run("MatMulInteger", [a, b, zero]), (a.astype("int32") - zero[:, None]) @ b.astype("int32"))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_requantized_products_agree_with_onnx(dtype: str) -> None:
    rng = np.random.default_rng(0)
    inputs = [
        integers(rng, dtype, 20, 8), np.array([0.01], "float32"), integers(rng, dtype, 1),
        integers(rng, dtype, 8, 30), np.array([0.02], "float32"), integers(rng, dtype, 1),
        np.array([0.031], "float32"), integers(rng, dtype, 1),
    ]  # fmt: skip
    check(run("QLinearMatMul", inputs), *reference("QLinearMatMul", inputs), atol=0)


@pytest.mark.parametrize(
    "attributes", [{}, {"pads": [1, 1, 1, 1]}, {"strides": [2, 2], "auto_pad": "SAME_UPPER"}, {"group": 2}]
)
def test_integer_convolutions_in_both_layouts_agree_with_onnx(attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    x = integers(rng, "uint8", 1, 4, 6, 6)
    w = integers(rng, "int8", 6, 4 // attributes.get("group", 1), 3, 3)
    # The evaluator reads attributes that were left out as none at all.
    whole = {"group": 1, "strides": [1, 1], "dilations": [1, 1], "kernel_shape": [3, 3], **attributes}
    for inputs in ([x, w], [x, w, integers(rng, "uint8"), integers(rng, "int8", 6)]):
        (expected,) = reference("ConvInteger", inputs, **whole)
        check(run("ConvInteger", inputs, **attributes), expected)
        check(run_channels_last("ConvInteger", inputs, conv_weights(4), **attributes), expected)


@pytest.mark.parametrize("is_per_channel", [True, False])
@pytest.mark.parametrize("has_bias", [True, False])
def test_requantized_convolutions_in_both_layouts_agree_with_onnx(is_per_channel: bool, has_bias: bool) -> None:
    rng = np.random.default_rng(0)
    num = 6 if is_per_channel else 1
    w_scale = rng.uniform(0.001, 0.01, num).astype("float32")
    inputs = [
        integers(rng, "uint8", 1, 4, 6, 6), np.array(0.02, "float32"), integers(rng, "uint8"),
        integers(rng, "int8", 6, 4, 3, 3), w_scale, integers(rng, "int8", num),
        np.array(0.03, "float32"), integers(rng, "uint8"),
    ]  # fmt: skip
    inputs += [rng.integers(-1000, 1000, 6).astype("int32")] if has_bias else []
    attributes: dict[str, Any] = {
        "pads": [1, 0, 1, 2],
        "strides": [1, 2],
        "kernel_shape": [3, 3],
        "group": 1,
        "dilations": [1, 1],
    }
    (expected,) = reference("QLinearConv", inputs, **attributes)
    check(run("QLinearConv", inputs, **attributes), expected, atol=0)
    weights = {3: conv_weights(4)[1]}
    check(run_channels_last("QLinearConv", inputs, weights, **attributes), expected, atol=0)


def test_a_zero_point_for_each_input_channel_is_not_compiled() -> None:
    rng = np.random.default_rng(0)
    inputs = [integers(rng, "uint8", 1, 2, 4, 4), integers(rng, "int8", 3, 2, 3, 3), integers(rng, "uint8", 2)]
    with pytest.raises(NotCompilableError, match="zero point of the input of a convolution"):
        run("ConvInteger", inputs)
