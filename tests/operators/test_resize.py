"""Resize: every mode against ONNX's evaluator, and the index arithmetic of plain upsampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from tests.operators.nodes import reference
from tilewright import te
from tilewright.network import InferenceSession
from tilewright.operators import Call, Node, NotCompilableError, express
from tilewright.testing.operators import run_operator

X = np.random.default_rng(0).normal(size=(1, 2, 5, 7)).astype(np.float32)
NO_ROI = np.zeros(0, np.float32)
COORDINATES = ["half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners", "pytorch_half_pixel"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
SCALES = [[1, 1, 2, 2], [1, 1, 0.6, 1.7], [1, 1, 0.5, 3], [1, 1, 2.5, 0.3]]


def check(*operands: np.ndarray, **attributes: Any) -> None:
    # The evaluator has no defaults of its own for these.
    attributes = {"cubic_coeff_a": -0.75, **attributes}
    (expected,) = reference("Resize", [X, *operands], **attributes)
    (found,) = run_operator("Resize", X, *operands, **attributes)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_nearest(coordinates: str, rounding: str, scales: list[float]) -> None:
    check(
        NO_ROI,
        np.array(scales, np.float32),
        mode="nearest",
        coordinate_transformation_mode=coordinates,
        nearest_mode=rounding,
    )


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_interpolation(mode: str, coordinates: str, scales: list[float]) -> None:
    check(NO_ROI, np.array(scales, np.float32), mode=mode, coordinate_transformation_mode=coordinates)


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("options", [{"antialias": 1}, {"exclude_outside": 1}, {"antialias": 1, "exclude_outside": 1}])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_weights_that_are_normalised(mode: str, options: dict[str, int], scales: list[float]) -> None:
    check(NO_ROI, np.array(scales, np.float32), mode=mode, **options)


@pytest.mark.parametrize("sizes", [[1, 2, 8, 3], [1, 2, 1, 1], [1, 2, 5, 7], [1, 2, 13, 14]])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_sizes_instead_of_scales(mode: str, sizes: list[int]) -> None:
    check(NO_ROI, NO_ROI, np.array(sizes), mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crops_take_the_extrapolation_value_outside(mode: str) -> None:
    roi = np.array([0, 0, 0.4, -0.3, 1, 1, 1.2, 0.6], np.float32)
    check(
        roi,
        NO_ROI,
        np.array([1, 2, 4, 6]),
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=10.0,
    )


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_the_aspect_ratio_may_be_kept(policy: str) -> None:
    check(NO_ROI, NO_ROI, np.array([9, 9]), mode="linear", axes=[2, 3], keep_aspect_ratio_policy=policy)


def test_integers_take_the_nearest_value() -> None:
    x = np.array([[[[0, 255], [10, 7]]]], np.uint8)
    scales = np.array([1, 1, 2, 2], np.float32)
    (expected,) = reference("Resize", [x.astype(np.float64), NO_ROI, scales], mode="linear")
    (found,) = run_operator("Resize", x, NO_ROI, scales, mode="linear")
    np.testing.assert_array_equal(found, np.rint(expected).astype(np.uint8))


def test_an_output_of_one_element_takes_the_first_where_pytorch_does() -> None:
    """ONNX speaks of the length of the output, and so does onnxruntime; the reference takes 1.5 elements for more."""
    scales = np.array([1, 1, 0.5, 1], np.float32)
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 3, 2)
    (found,) = run_operator(
        "Resize", x, NO_ROI, scales, mode="linear", coordinate_transformation_mode="pytorch_half_pixel"
    )
    np.testing.assert_array_equal(found, [[[[0, 1]]]])


def upsampled(scale: float, **attributes: Any) -> str:
    image, roi, scales = (te.placeholder(s, name=n) for s, n in (((4, 6), "X"), ((1,), "roi"), ((2,), "scales")))
    node = Node("Resize", ("x", "", "scales"), ("y",), {"mode": "nearest", **attributes}, opset=19)
    values = [None, None, np.array([1, scale], np.float32)]
    return str(express(Call(node, [image, roi, scales], values))[0])


def test_upsampling_by_a_whole_number_is_one_division() -> None:
    assert upsampled(2) == "resize[i0, i1] = X[i0, i1 // 2]"
    floor = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    assert upsampled(3, **floor) == "resize[i0, i1] = X[i0, i1 // 3]"
    assert upsampled(0.5, **floor) == "resize[i0, i1] = X[i0, i1 * 2]"


def test_modes_that_do_not_exist_are_not_compiled() -> None:
    wrong: list[dict[str, Any]] = [{"mode": "lanczos"}, {"nearest_mode": "up"}]
    for attributes in [*wrong, {"coordinate_transformation_mode": "mine"}]:
        with pytest.raises(NotCompilableError):
            run_operator("Resize", X, NO_ROI, np.array([1, 1, 2, 2], np.float32), **attributes)


def test_a_scale_that_is_rounded_down_gives_the_size_it_was_made_from() -> None:
    """As exporters write sizes for old opsets: 18/11 as a float is less than that."""
    text = """<ir_version: 8, opset_import: ["" : 13]> net (float[1, 1, 11] x) => (y)
        <float[3] s = {1, 1, 1.6363636}> { y = Resize <mode = "linear"> (x, , s) }"""
    (y,) = InferenceSession(onnx.parser.parse_model(text)).run(None, {"x": np.ones((1, 1, 11), np.float32)})
    assert y.shape == (1, 1, 18)
