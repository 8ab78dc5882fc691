"""GridSample at random coordinates, inside and outside of the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.graph.onnx_models import model, node, tensor
from tilewright.graph.evaluation.fallback import run_fallback
from tilewright.operators import Node
from tilewright.testing.operators import run_operator

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("size", [(4, 5), (2, 3, 4)])
def test_coordinates_anywhere(size: tuple[int, ...], mode: str, padding: str, align_corners: int) -> None:
    x = RNG.normal(size=(2, 1, *size)).astype(np.float32)
    grid = RNG.uniform(-2.5, 2.5, (2, *(3,) * len(size), len(size))).astype(np.float32)
    attributes: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": align_corners}
    (expected,) = run_fallback(Node("GridSample", ("x", "grid"), ("y",), attributes, opset=22), [x, grid])
    (found,) = run_operator("GridSample", x, grid, **attributes)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_cubics_outside_of_an_image_are_those_of_onnxruntime(padding: str, align_corners: int) -> None:
    x = RNG.normal(size=(2, 1, 4, 5)).astype(np.float32)
    grid = RNG.uniform(-2.5, 2.5, (2, 3, 3, 2)).astype(np.float32)
    attributes: dict[str, Any] = {"mode": "cubic", "padding_mode": padding, "align_corners": align_corners}
    inputs = [tensor("x", x.shape), tensor("grid", grid.shape)]
    proto = model([node("GridSample", ["x", "grid"], ["y"], **attributes)], inputs, ["y"], opset=20, ir_version=9)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x, "grid": grid})
    (found,) = run_operator("GridSample", x, grid, **attributes)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
