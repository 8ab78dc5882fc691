"""Operators that ONNX had for a trial before opset 10, and onnxruntime still has: old files hold them."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.graph.contrib.call import Call, Expansion


def _linear(call: Call, factor: float, offset: float) -> list[str]:
    scaled = call.scaled(call.required(0), factor, call.dtype(0))
    return [call.add("Add", scaled, call.constant(offset, call.dtype(0))) if offset else scaled]


def _affine(call: Call) -> list[str]:
    return _linear(call, call.attribute("alpha", 1.0), call.attribute("beta", 0.0))


def _scale(call: Call) -> list[str]:
    return _linear(call, call.attribute("scale", 1.0), 0.0)


def _image_scaler(call: Call) -> list[str]:
    """Each channel times a number, and shifted by one of its own."""
    bias: Sequence[float] = call.attribute("bias", ())
    scaled = call.scaled(call.required(0), call.attribute("scale", 1.0), call.dtype(0))
    return [call.add("Add", scaled, call.constant([[[number]] for number in bias], call.dtype(0)))]


def _crop(call: Call) -> list[str]:
    """An image without its borders, of which those on the left and on top come first; or of a size from these on."""
    left, top, right, bottom = call.attribute("border")
    height, width = call.shape(0)[-2:]
    ends = [height - bottom, width - right]
    if "scale" in call.node.attributes:
        rows, columns = call.attribute("scale")
        ends = [top + rows, left + columns]
    return [call.add("Slice", call.required(0), call.ints(top, left), call.ints(*ends), call.ints(-2, -1))]


def _scaled_tanh(call: Call) -> list[str]:
    inner = call.scaled(call.required(0), call.attribute("beta", 0.5), call.dtype(0))
    return [call.scaled(call.add("Tanh", inner), call.attribute("alpha", 1.0), call.dtype(0))]


def _parametric_softplus(call: Call) -> list[str]:
    inner = call.scaled(call.required(0), call.attribute("beta", 1.0), call.dtype(0))
    return [call.scaled(call.add("Softplus", inner), call.attribute("alpha", 1.0), call.dtype(0))]


def _thresholded_relu(call: Call) -> list[str]:
    return [call.add("ThresholdedRelu", call.required(0), alpha=call.attribute("alpha", 1.0))]


EXPANSIONS: dict[str, Expansion] = {
    "Affine": _affine,
    "Crop": _crop,
    "ImageScaler": _image_scaler,
    "ParametricSoftplus": _parametric_softplus,
    "Scale": _scale,
    "ScaledTanh": _scaled_tanh,
    "ThresholdedRelu": _thresholded_relu,
}
