"""Operators of quantized values, such as QLinearConv, in the form that `integer_products` reads.

What it cannot make a product of bytes stays as it is: its own expression is exact.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor, has_any
from tilewright.graph.passes.quantization import QuantizedWeights
from tilewright.graph.passes.word_products import add_convolution, add_product
from tilewright.operators import ONNX, Node, TensorType

_PRODUCTS = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul"}
_SUMS = frozenset(("ConvInteger", "MatMulInteger"))
_OPSET = 21

Array = npt.NDArray[np.generic]


def expand_quantized_forms(graph: Graph) -> Graph:
    """QLinearConv and QLinearMatMul with constant weights become DequantizeLinear, the product and QuantizeLinear.

    ConvInteger and MatMulInteger of such weights and uint8 become the sums of bytes, and what the zero point adds.
    """
    if not has_any(graph, _PRODUCTS.keys() | _SUMS):
        return graph
    editor = Editor(graph)
    for node in editor:
        is_of_onnx = node.domain == ONNX
        if not (is_of_onnx and (_expanded(editor, node) or _summed(editor, node))):
            editor.keep(node)
    return editor.finish()


def _expanded(editor: Editor, node: Node) -> bool:
    if node.op not in _PRODUCTS:
        return False
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = node.inputs[:8]
    known = [editor.constants.get(name) for name in (x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero)]
    source, result = editor.types[x], editor.types[node.outputs[0]]
    if any(value is None for value in known) or source is None or result is None or x in editor.constants:
        return False
    data_scale, data_zero, weights, scales, zeros, out_scale, out_zero = (v for v in known if v is not None)
    middle = 128 if weights.dtype == np.uint8 else 0
    is_one = all(value.size == 1 for value in (data_scale, data_zero, out_scale, out_zero))
    axis = 0 if node.op == "QLinearConv" else weights.ndim - 1
    is_plain = scales.ndim <= 1 and np.all(zeros.astype(np.int64) == middle)
    is_word = node.op == "QLinearMatMul" or node.attributes.get("group", 1) == 1
    if not (is_one and is_plain and is_word and weights.ndim >= 2 and data_scale.dtype == np.float32):
        return False
    inputs = [_floats(editor, node, x, data_scale, data_zero, 1)]
    inputs.append(_floats(editor, node, w, scales, zeros, axis))
    if len(node.inputs) > 8 and node.inputs[8]:
        bias_scales = np.broadcast_to(
            data_scale.item() * scales.astype(np.float64).reshape(-1), editor.type(node.inputs[8]).shape
        )
        inputs.append(_floats(editor, node, node.inputs[8], bias_scales, np.zeros(bias_scales.shape, np.int32), 0))
    type_ = TensorType("float32", result.shape)
    attributes = node.attributes if node.op == "QLinearConv" else {}
    product = editor.add(_PRODUCTS[node.op], inputs, type_, attributes, like=node, opset=_OPSET)
    parameters = _parameters(editor, out_scale.reshape(()), out_zero.reshape(()))
    editor.add("QuantizeLinear", [product, *parameters], result, like=node, output=node.outputs[0], opset=_OPSET)
    return True


def _summed(editor: Editor, node: Node) -> bool:
    if node.op not in _SUMS:
        return False
    x, w, x_zero, w_zero = (*node.inputs, "", "")[:4]
    source, result, weights = editor.types[x], editor.types[node.outputs[0]], editor.constants.get(w)
    if source is None or result is None or weights is None or source.dtype != "uint8" or x in editor.constants:
        return False
    middle = 128 if weights.dtype == np.uint8 else 0
    zeros = editor.constants.get(w_zero) if w_zero else np.zeros((), np.int8)
    zero = editor.constants.get(x_zero) if x_zero else np.zeros((), np.uint8)
    has_one_zero = not x_zero or ((known := editor.types[x_zero]) is not None and math.prod(known.shape) == 1)
    if zeros is None or np.any(zeros.astype(np.int64) != middle) or not has_one_zero:
        return False
    values = QuantizedWeights(weights.astype(np.int32) - middle, np.ones(1), 0)
    if node.op == "ConvInteger":
        found = None if zero is None else add_convolution(editor, node, x, int(zero.item()), values)
        if found is not None and editor.type(found.sums).dtype != "int32":
            return False
    else:
        found = add_product(editor, node, x, values)
    if found is None:
        return False
    shape = (-1, *[1] * (weights.ndim - 2)) if node.op == "ConvInteger" else (-1,)
    corrections = editor.constant(found.corrections.astype(np.int32).reshape(shape), "corrections")
    if zero is not None:
        factor = editor.constant(zero.astype(np.int32).reshape(()), "zero")
    else:
        one = editor.add_reshape(x_zero, (), like=node)
        factor = editor.add("Cast", [one], TensorType("int32", ()), {"to": 6}, like=node, opset=13)
    type_ = editor.type(corrections)
    added = editor.add("Mul", [corrections, factor], type_, like=node, opset=14)
    editor.add("Sub", [found.sums, added], result, like=node, output=node.outputs[0], opset=14)
    return True


def _floats(editor: Editor, node: Node, name: str, scale: Array, zero: Array, axis: int) -> str:
    """What a quantized value stands for."""
    if scale.size == 1:
        scale, zero, attributes = scale.reshape(()), zero.reshape(-1)[0], {}
    else:
        zero, attributes = np.broadcast_to(zero.reshape(-1), scale.shape), {"axis": axis}
    type_ = TensorType("float32", editor.type(name).shape)
    parameters = _parameters(editor, scale, zero)
    return editor.add("DequantizeLinear", [name, *parameters], type_, attributes, like=node, opset=_OPSET)


def _parameters(editor: Editor, scale: Array, zero: Array) -> tuple[str, str]:
    return editor.constant(np.asarray(scale, np.float32), "scale"), editor.constant(np.asarray(zero), "zero")
