"""One spelling of an operator where versions of ONNX, or ways to leave an operand out, give several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto
from onnx.helper import make_attribute

from tilewright.graph.onnx.inlining import FreshName
from tilewright.graph.protos import elem_type, subgraphs
from tilewright.graph.tensor_protos import tensor_array
from tilewright.graph.types import Constants, Types
from tilewright.operators import ONNX, Node


def normal_form(node: Node, types: Types, constants: Constants) -> Node:
    """The same node in the spelling that the rest of the package knows best."""
    if node.domain != ONNX:
        return node
    match node.op:
        case "BatchNormalization":
            return _batch_normalization(node)
        case "CastLike":
            return _cast_like(node, types)
        case "QuantizeLinear" | "DequantizeLinear":
            # Later ones take more types, and mean the same by those of before; the reference evaluator begins here.
            return replace(node, opset=max(node.opset, 19))
        case "Resize":
            return _resize(node, constants)
        case "STFT":
            # ONNX's inference takes the attribute for 0 where it is left out.
            return replace(node, attributes={"onesided": 1, **node.attributes})
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
    """An operand without elements counts as left out, which all of them may be since opset 13, the same otherwise."""
    inputs = tuple("" if name in constants and constants[name].size == 0 else name for name in node.inputs)
    return replace(node, inputs=inputs, opset=max(node.opset, 13))


def _batch_normalization(node: Node) -> Node:
    """Before opset 14, whether statistics are updated shows in the number of outputs, whether they are read or not."""
    if node.opset >= 14:
        return node
    if not any(node.outputs[1:]):
        attributes = {name: value for name, value in node.attributes.items() if name == "epsilon"}
        return replace(node, outputs=node.outputs[:1], attributes=attributes, opset=14)
    return replace(node, outputs=node.outputs[:3], attributes={**node.attributes, "training_mode": 1}, opset=14)


def saved_statistics(node: Node, fresh: FreshName) -> Node | None:
    """What a BatchNormalization before opset 14 gives for a gradient: running statistics that remember nothing."""
    if node.domain != ONNX or node.op != "BatchNormalization" or node.opset >= 14 or len(node.outputs) < 5:
        return None
    attributes = {**node.attributes, "momentum": 0.0, "training_mode": 1}
    outputs = (fresh(node.outputs[0]), *(name or fresh(node.outputs[0]) for name in node.outputs[3:]))
    return replace(node, outputs=outputs, attributes=attributes, opset=14)


def with_old_resizes(model: ModelProto) -> ModelProto:
    """The model, converted from before opset 11, with what places of images meant then.

    They are divided by the scale, and the nearest is the one before, or after in a smaller image. The converter of onnx
    leaves out the attributes that say so, and their defaults are other ones.
    """
    _keep_old_resizes(model.graph, {})
    return model


def _keep_old_resizes(graph: GraphProto, outer: Mapping[str, TensorProto]) -> None:
    constants = {**outer, **{tensor.name: tensor for tensor in graph.initializer}}
    for node in graph.node:
        if node.op_type == "Constant":
            constants.update((name, a.t) for a in node.attribute if a.name == "value" for name in node.output)
        elif node.op_type == "Resize":
            scales = [tensor_array(constants[name]) for name in node.input[2:3] if name in constants]
            is_smaller = bool(scales) and bool(np.all(np.asarray(scales[0], np.float32) <= 1))
            node.attribute.append(make_attribute("coordinate_transformation_mode", "asymmetric"))
            node.attribute.append(make_attribute("nearest_mode", "ceil" if is_smaller else "floor"))
        for inner in subgraphs(node):
            _keep_old_resizes(inner, constants)
