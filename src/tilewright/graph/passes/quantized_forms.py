"""Operators of quantized values, such as QLinearConv, in the form that `integer_products` reads.

What it cannot make a product of bytes stays as it is: its own expression is exact.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor, has_any
from tilewright.graph.passes.integer_sums import SUMS, expand_sums
from tilewright.operators import ONNX, Node, TensorType

_PRODUCTS = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul"}
_OPSET = 21

Array = npt.NDArray[np.generic]


def expand_quantized_forms(graph: Graph) -> Graph:
    """QLinearConv and QLinearMatMul with constant weights become DequantizeLinear, the product and QuantizeLinear.

    ConvInteger and MatMulInteger of constant weights become sums of bytes, and what the zero points add.
    """
    if not has_any(graph, _PRODUCTS.keys() | SUMS):
        return graph
    editor = Editor(graph)
    for node in editor:
        is_of_onnx = node.domain == ONNX
        if not (is_of_onnx and (_expanded(editor, node) or expand_sums(editor, node))):
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
    is_plain = np.all(zeros.astype(np.int64) == middle)
    is_word = node.op == "QLinearMatMul" or node.attributes.get("group", 1) == 1 or weights.shape[1] == 1
    if not is_one or weights.ndim < 2 or scales.ndim > 1 or data_scale.dtype != np.float32:
        return False
    if not (is_plain and is_word):
        return _by_sums(editor, node, data_scale.item() * scales)
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
    return _rounded(editor, node, product)


def _by_sums(editor: Editor, node: Node, scales: Array) -> bool:
    """The sums of integers, then the bias, then scaled and rounded: for any zero points of weights, and groups."""
    x, _, x_zero, w, _, w_zero = node.inputs[:6]
    result = editor.type(node.outputs[0])
    type_ = TensorType("int32", result.shape)
    sums = editor.value(type_, f"{node.outputs[0]}.sums")
    op = "ConvInteger" if node.op == "QLinearConv" else "MatMulInteger"
    if not expand_sums(editor, Node(op, (x, w, x_zero, w_zero), (sums,), node.attributes, node.name, ONNX, node.opset)):
        return False
    if len(node.inputs) > 8 and node.inputs[8]:
        shape = (*editor.type(node.inputs[8]).shape, *[1] * (len(result.shape) - 2))
        bias = editor.add_reshape(node.inputs[8], shape, like=node)
        sums = editor.add("Add", [sums, bias], type_, like=node, opset=14)
    axis = 1 if node.op == "QLinearConv" else len(result.shape) - 1
    return _rounded(editor, node, _floats(editor, node, sums, scales, np.zeros(scales.shape, np.int32), axis))


def _rounded(editor: Editor, node: Node, value: str) -> bool:
    """Round a float to what the node gives."""
    scale, zero = (editor.constants[name].reshape(()) for name in node.inputs[6:8])
    parameters = _parameters(editor, scale, zero)
    result = editor.type(node.outputs[0])
    editor.add("QuantizeLinear", [value, *parameters], result, like=node, output=node.outputs[0], opset=_OPSET)
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
