"""Values of 16 bits that only floats are made of again, in floats: kernels hold no integers of 16 bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor, has_any
from tilewright.operators import ONNX, Node, TensorType, axis_attribute

_TYPES = ("int16", "uint16")
_OPSET = 14

Floats = npt.NDArray[np.float32]


def round_in_floats(graph: Graph) -> Graph:
    """QuantizeLinear to int16 or uint16, all of whose readers are DequantizeLinear, becomes Div, Max, Min and Round.

    Its results are counted from the zero point; a DequantizeLinear becomes Mul. Floats hold all 16 bits, and more;
    NaN, of which ONNX says nothing, stays NaN.
    """
    if not has_any(graph, {"QuantizeLinear"}):
        return graph
    rounded = _rounded_values(graph)
    if not rounded:
        return graph
    editor = Editor(graph)
    zeros: dict[str, Floats] = {}
    for node in editor:
        if node.op == "QuantizeLinear" and node.outputs[0] in rounded:
            zeros[_round(editor, node)] = _zero_points(graph, node)
        elif node.op == "DequantizeLinear" and node.inputs[0] in zeros:
            _scale(editor, node, zeros[node.inputs[0]])
        else:
            editor.keep(node)
    return editor.finish()


def _rounded_values(graph: Graph) -> set[str]:
    """The values of 16 bits that nothing sees as integers."""
    found = set()
    consumers = graph.consumers()
    for node in graph.nodes:
        if node.op != "QuantizeLinear" or not _is_known(graph, node, node.outputs[0], node.inputs[0]):
            continue
        readers = consumers.get(node.outputs[0], [])
        is_seen = node.outputs[0] in graph.outputs
        if not is_seen and all(_is_floats_again(graph, reader) for reader in readers):
            found.add(node.outputs[0])
    return found


def _is_floats_again(graph: Graph, reader: Node) -> bool:
    return reader.op == "DequantizeLinear" and _is_known(graph, reader, reader.inputs[0], reader.outputs[0])


def _is_known(graph: Graph, node: Node, integers: str, floats: str) -> bool:
    """Whether scales and zero points are constants, for a tensor or along an axis, between these two types."""
    of_integers, of_floats = graph.types[integers], graph.types[floats]
    if node.domain != ONNX or of_integers is None or of_floats is None or node.attributes.get("block_size"):
        return False
    if of_integers.dtype not in _TYPES or of_floats.dtype != "float32":
        return False
    if node.attributes.get("precision", 1) not in (0, 1):  # 1 is float32
        return False
    if len(node.inputs) > 2 and node.inputs[2] and node.inputs[2] not in graph.constants:
        return False
    scale = graph.constants.get(node.inputs[1])
    if scale is None or scale.dtype != np.float32 or scale.ndim > 1:
        return False
    # Other scales lead to integers in no way that floats follow.
    return bool(np.all(np.isfinite(scale) & (scale.astype(np.float32) > 0)))


def _round(editor: Editor, node: Node) -> str:
    """Add what a QuantizeLinear computes, less its zero point; the name of the result, which has that of its own."""
    (output,) = node.outputs
    source = editor.type(node.inputs[0])
    bounds = np.iinfo(editor.type(output).dtype)
    zero = _zero_points(editor.graph, node)
    type_ = TensorType("float32", source.shape)

    def step(op: str, x: str, operand: Floats) -> str:
        return editor.add(op, [x, editor.constant(operand, f"{output}.{op}")], type_, like=node, opset=_OPSET)

    # Bounded first, it is rounded as if it were after: the bounds are whole numbers.
    x = step("Div", node.inputs[0], _along(editor.graph, node, editor.constants[node.inputs[1]]))
    x = step("Max", x, np.float32(bounds.min) - zero)
    x = step("Min", x, np.float32(bounds.max) - zero)
    editor.add("Round", [x], type_, like=node, output=output, opset=_OPSET)
    return output


def _scale(editor: Editor, node: Node, zero: Floats) -> None:
    """Add what a DequantizeLinear computes of integers that are counted from a zero point."""
    (output,) = node.outputs
    type_ = editor.type(output)
    x = node.inputs[0]
    shift = zero - _zero_points(editor.graph, node)
    if np.any(shift):
        x = editor.add("Add", [x, editor.constant(shift, f"{output}.shift")], type_, like=node, opset=_OPSET)
    scale = editor.constant(_along(editor.graph, node, editor.constants[node.inputs[1]]), f"{output}.scale")
    editor.add("Mul", [x, scale], type_, like=node, output=output, opset=_OPSET)


def _zero_points(graph: Graph, node: Node) -> Floats:
    if len(node.inputs) < 3 or not node.inputs[2]:
        return np.zeros((), np.float32)
    return _along(graph, node, graph.constants[node.inputs[2]])


def _along(graph: Graph, node: Node, parameter: npt.NDArray[np.generic]) -> Floats:
    """A parameter of the whole tensor as a number, or one for each place of an axis so that it meets that axis."""
    floats = parameter.astype(np.float32)
    if floats.size == 1:
        return floats.reshape(())
    known = graph.types[node.inputs[0]]
    assert known is not None
    shape = [1] * len(known.shape)
    shape[axis_attribute(node)] = floats.size
    return floats.reshape(shape)
