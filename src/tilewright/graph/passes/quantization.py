"""What QuantizeLinear and DequantizeLinear say: the scale of a whole tensor, and weights that are constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright.graph.passes.editor import Editor
from tilewright.operators import ONNX, Node, axis_attribute

Floats: TypeAlias = npt.NDArray[np.float64]
HALF = 128
"""What signed bytes become unsigned by."""


@dataclass(frozen=True, slots=True)
class Scale:
    """One scale and one zero point for all bytes of a value."""

    scale: float
    zero: int
    is_signed: bool

    @property
    def unsigned(self) -> Scale:
        """The same of bytes that are 128 more where they were signed."""
        return Scale(self.scale, self.zero + HALF, False) if self.is_signed else self


def scale_of(editor: Editor, node: Node) -> Scale | None:
    """The scale of a QuantizeLinear to bytes, or a DequantizeLinear of them to float32; None where it is none such."""
    of_bytes, of_floats = node.inputs[0], node.outputs[0]
    if node.op == "QuantizeLinear":
        of_bytes, of_floats = of_floats, of_bytes
    dtype = editor.type(of_bytes).dtype
    if dtype not in ("int8", "uint8") or editor.type(of_floats).dtype != "float32" or node.attributes.get("precision"):
        return None
    scale = editor.constants.get(node.inputs[1])
    zero = editor.constants.get(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else np.zeros((), dtype)
    if scale is None or zero is None or scale.size != 1 or zero.size != 1 or scale.dtype != np.float32:
        return None
    found = float(scale.item())
    if not np.isfinite(found) or found <= 0:
        return None
    return Scale(found, int(zero.item()), dtype == "int8")


@dataclass(frozen=True, slots=True)
class QuantizedWeights:
    """Constants as signed integers around zero: values * scales, one for all or one for each place of an axis."""

    values: npt.NDArray[np.integer]
    scales: Floats
    axis: int

    @property
    def floats(self) -> Floats:
        shape = [1] * self.values.ndim
        if self.scales.size > 1:
            shape[self.axis] = -1
        return self.values * self.scales.reshape(shape if self.values.ndim else ())


def quantized_weights(editor: Editor, node: Node) -> QuantizedWeights | None:
    """The constant that a DequantizeLinear gives; None where it is none, or its zero points are not in the middle."""
    if node.op != "DequantizeLinear" or node.domain != ONNX or node.attributes.get("block_size"):
        return None
    values, scale = editor.constants.get(node.inputs[0]), editor.constants.get(node.inputs[1])
    has_zero = len(node.inputs) > 2 and bool(node.inputs[2])
    zero = editor.constants.get(node.inputs[2]) if has_zero else np.zeros((), np.int32)
    if values is None or scale is None or zero is None or values.dtype not in (np.int8, np.uint8, np.int32):
        return None
    if scale.dtype != np.float32 or scale.ndim > 1 or not np.all(np.isfinite(scale)):
        return None
    middle = HALF if values.dtype == np.uint8 else 0
    if np.any(zero.astype(np.int64) != middle):
        return None
    axis = axis_attribute(node) % values.ndim if values.ndim and scale.size > 1 else 0
    if scale.size > 1 and scale.size != values.shape[axis]:
        return None
    centred = values.astype(np.int32) - middle
    return QuantizedWeights(centred, scale.astype(np.float64).reshape(-1), axis)
