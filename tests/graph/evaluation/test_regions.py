"""RoiAlign and MaxRoiPool on the reference evaluator, next to onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.graph.onnx_models import model, random, tensor
from tilewright.graph.evaluation.fallback import run_fallback
from tilewright.graph.protos import node_from_proto

# Within the image, across its borders, outside of it, of no size, and the wrong way round.
CORNERS = [[0, 0, 7, 7], [2, 1, 5, 9], [-3, -2, 3, 3], [30, 30, 40, 40], [2, 2, 2, 2], [5, 4, 3, 2]]


def check(op: str, inputs: dict[str, np.ndarray], opset: int, **attributes: Any) -> None:
    node = onnx.helper.make_node(op, list(inputs), ["y"], **attributes)
    declared = [tensor(name, x.shape, onnx.helper.np_dtype_to_tensor_dtype(x.dtype)) for name, x in inputs.items()]
    proto = model([node], declared, ["y"], opset=opset, ir_version=8)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, inputs)
    (got,) = run_fallback(node_from_proto(node, opset), list(inputs.values()))
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 2])
def test_samples_of_regions(mode: str, coordinates: str, ratio: int) -> None:
    inputs = {
        "x": random((2, 3, 8, 9)),
        "rois": np.array(CORNERS, np.float32),
        "batch": np.array([0, 1, 0, 1, 0, 1]),
    }
    # Of regions without samples, the largest is not defined.
    if mode == "max" and ratio == 0:
        inputs = {"x": inputs["x"], "rois": inputs["rois"][:4], "batch": inputs["batch"][:4]}
    check("RoiAlign", inputs, 16, mode=mode, coordinate_transformation_mode=coordinates, sampling_ratio=ratio,
          output_height=2, output_width=3, spatial_scale=0.5)  # fmt: skip


def test_samples_of_regions_as_before_opset_16() -> None:
    inputs = {"x": random((1, 2, 8, 9)), "rois": np.array(CORNERS, np.float32), "batch": np.zeros(6, np.int64)}
    check("RoiAlign", inputs, 10, output_height=2, output_width=3, sampling_ratio=2)


def test_the_largest_of_regions() -> None:
    corners = [[0, *numbers] for numbers in CORNERS[:3]] + [[1, 1, 1, 5, 6]]
    inputs = {"x": random((2, 3, 8, 9)), "rois": np.array(corners, np.float32)}
    check("MaxRoiPool", inputs, 13, pooled_shape=[2, 3], spatial_scale=0.75)
