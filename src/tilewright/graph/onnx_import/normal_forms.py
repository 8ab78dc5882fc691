"""One spelling of an operator where versions of ONNX, or ways to leave an operand out, give several."""

from __future__ import annotations

from dataclasses import replace

from tilewright.graph.graph import ONNX, Node
from tilewright.graph.onnx_protos import elem_type
from tilewright.graph.types import Constants, Types


def normal_form(node: Node, types: Types, constants: Constants) -> Node:
    """The same node in the spelling that the rest of the package knows best."""
    if node.domain != ONNX:
        return node
    match node.op:
        case "BatchNormalization":
            return _batch_normalization(node)
        case "CastLike":
            return _cast_like(node, types)
        case "Resize":
            return _resize(node, constants)
        case _:
            return node


def _cast_like(node: Node, types: Types) -> Node:
    """A cast to a type that is known by now."""
    like = types.get(node.inputs[1])
    if like is None:
        return node
    attributes = {**node.attributes, "to": elem_type(like.dtype)}
    return replace(node, op="Cast", inputs=node.inputs[:1], attributes=attributes)


def _resize(node: Node, constants: Constants) -> Node:
    """An operand without elements counts as left out."""
    inputs = tuple("" if name in constants and constants[name].size == 0 else name for name in node.inputs)
    return replace(node, inputs=inputs)


def _batch_normalization(node: Node) -> Node:
    """Before opset 14, whether statistics are updated shows in the number of outputs."""
    if node.opset >= 14 or any(node.outputs[1:]):
        return node
    attributes = {name: value for name, value in node.attributes.items() if name == "epsilon"}
    return replace(node, outputs=node.outputs[:1], attributes=attributes, opset=14)
