"""Nodes of the first operator sets that onnx's converter does not know, or takes for others.

They are set aside as operators of a domain of their own, which the converter leaves alone, and written for opset 11
when the rest of the model is. Of those it asks for shapes of all are set aside, with a broadcast or not: behind a node
that was, it knows none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import get_attribute_value, make_node, make_opsetid
from onnx.numpy_helper import from_array

from tilewright.errors import ModelError
from tilewright.graph.contrib import experimental
from tilewright.graph.naming import FreshNames
from tilewright.graph.onnx.structure import all_names
from tilewright.graph.protos import all_nodes, normal_domain, subgraphs
from tilewright.operators import ONNX

_ASIDE = "tilewright.set_aside"

Fresh = Callable[[str], str]
Attributes = dict[str, Any]


def set_aside(model: ModelProto, opset: int) -> ModelProto:
    """The model, with the nodes that are written anew once it is converted in a domain of their own."""
    if not any(_is_old(node, opset) for node in all_nodes(model.graph.node)):
        return model
    changed = ModelProto()
    changed.CopyFrom(model)
    for node in all_nodes(changed.graph.node):
        if _is_old(node, opset):
            node.domain = _ASIDE
    changed.opset_import.append(make_opsetid(_ASIDE, 1))
    return changed


def written_anew(model: ModelProto) -> ModelProto:
    """The converted model, with nodes of opset 11 in the place of those that were set aside."""
    names = all_names(model.graph)
    fresh = FreshNames(names)

    def named(hint: str) -> str:
        name = fresh(hint)
        names.add(name)
        return name

    if any(node.domain == _ASIDE for node in all_nodes(model.graph.node)):
        _write_anew(model.graph, named)
    return model


def _is_old(node: NodeProto, opset: int) -> bool:
    if normal_domain(node.domain) != ONNX or node.op_type not in _REWRITES:
        return False
    newest, attribute, _ = _REWRITES[node.op_type]
    return opset <= newest and (not attribute or any(a.name == attribute for a in node.attribute))


def _write_anew(graph: GraphProto, fresh: Fresh) -> None:
    nodes: list[NodeProto] = []
    for node in graph.node:
        for inner in subgraphs(node):
            _write_anew(inner, fresh)
        if node.domain == _ASIDE:
            attributes = {a.name: get_attribute_value(a) for a in node.attribute}
            *_, rewrite = _REWRITES[node.op_type]
            nodes.extend(rewrite(node, attributes, fresh))
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _broadcast(node: NodeProto, attributes: Attributes, fresh: Fresh) -> list[NodeProto]:
    """An operator whose second operand may begin at an axis of the first: axes of 1 are put behind it.

    An axis of -1 is that of Caffe2, where both end together, as they do if none is given.
    """
    left, right = node.input
    axis = attributes.get("axis", -1) if attributes.get("broadcast", 0) else -1
    if axis < 0:
        return [_same(node, [left, right])]

    def value(hint: str) -> str:
        return fresh(f"{node.output[0]}.{hint}")

    shapes, ranks = [value("shape"), value("shape")], [value("rank"), value("rank")]
    begin, outer, missing, ones, shape, wide = (
        value(hint) for hint in ("begin", "outer", "missing", "ones", "shape", "operand")
    )
    return [
        *(make_node("Shape", [name], [into]) for name, into in zip(node.input, shapes, strict=True)),
        *(make_node("Shape", [name], [into]) for name, into in zip(shapes, ranks, strict=True)),
        _constant(begin, [axis]),
        make_node("Sub", ranks, [outer]),
        make_node("Sub", [outer, begin], [missing]),
        make_node("ConstantOfShape", [missing], [ones], value=from_array(np.ones(1, np.int64))),
        make_node("Concat", [shapes[1], ones], [shape], axis=0),
        make_node("Reshape", [right, shape], [wide]),
        _same(node, [left, wide]),
    ]


def _gemm(node: NodeProto, attributes: Attributes, fresh: Fresh) -> list[NodeProto]:
    return [_same(node, list(node.input), **_without(attributes, "broadcast"))]


def _cast(node: NodeProto, attributes: Attributes, fresh: Fresh) -> list[NodeProto]:
    """The type was the name of one."""
    name = attributes["to"].decode(errors="replace").upper()
    if name not in dict(TensorProto.DataType.items()):
        raise ModelError(f"node {node.name or node.output[0]} (Cast) names a type that ONNX does not have: {name}")
    return [_same(node, list(node.input), to=TensorProto.DataType.Value(name))]


def _pad(node: NodeProto, attributes: Attributes, fresh: Fresh) -> list[NodeProto]:
    pads, value = fresh(f"{node.output[0]}.pads"), fresh(f"{node.output[0]}.value")
    return [
        _constant(pads, attributes["paddings"]),
        make_node("Constant", [], [value], value=from_array(np.float32(attributes.get("value", 0.0)))),
        _same(node, [node.input[0], pads, value], mode=attributes.get("mode", "constant")),
    ]


def _split(node: NodeProto, attributes: Attributes, fresh: Fresh) -> list[NodeProto]:
    return [_same(node, [node.input[0]], **attributes)]


def _tile(node: NodeProto, attributes: Attributes, fresh: Fresh) -> list[NodeProto]:
    """Along one axis, which is an operand as the number of tiles is."""
    source, *numbers = node.input

    def value(hint: str) -> str:
        return fresh(f"{node.output[0]}.{hint}")

    one, shape, rank, ones, repeats = (value(hint) for hint in ("one", "shape", "rank", "ones", "repeats"))
    integers, rows = [value("integer"), value("integer")], [value("tiles"), value("axis")]
    return [
        _constant(one, [1]),
        make_node("Shape", [source], [shape]),
        make_node("Shape", [shape], [rank]),
        make_node("ConstantOfShape", [rank], [ones], value=from_array(np.ones(1, np.int64))),
        *(
            make_node("Cast", [name], [into], to=TensorProto.INT64)
            for name, into in zip(numbers, integers, strict=True)
        ),
        *(make_node("Reshape", [name, one], [into]) for name, into in zip(integers, rows, strict=True)),
        make_node("ScatterElements", [ones, rows[1], rows[0]], [repeats]),
        _same(node, [source, repeats]),
    ]


def _recurrent(node: NodeProto, attributes: Attributes, fresh: Fresh) -> list[NodeProto]:
    """Whether there is a sequence of results shows in the outputs."""
    return [_same(node, list(node.input), **_without(attributes, "output_sequence"))]


def _unchanged(node: NodeProto, attributes: Attributes, _: Fresh) -> list[NodeProto]:
    """What ONNX itself has in no version that the rest is written for: the import knows it."""
    return [_same(node, list(node.input), **attributes)]


def _constant(name: str, values: Iterable[int]) -> NodeProto:
    return make_node("Constant", [], [name], value=from_array(np.array(list(values), np.int64)))


def _same(node: NodeProto, inputs: list[str], **attributes: Any) -> NodeProto:
    return make_node(node.op_type, inputs, list(node.output), node.name, **attributes)


def _without(attributes: Attributes, name: str) -> Attributes:
    return {key: value for key, value in attributes.items() if key != name}


_BINARY = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
_REWRITES: dict[str, tuple[int, str, Callable[[NodeProto, Attributes, Fresh], list[NodeProto]]]] = {
    **dict.fromkeys(_BINARY, (6, "", _broadcast)),
    "Gemm": (6, "", _gemm),
    "Cast": (5, "to", _cast),
    "Pad": (1, "paddings", _pad),
    "Split": (1, "split", _split),
    "Tile": (5, "", _tile),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), (6, "", _recurrent)),
    **dict.fromkeys(experimental.EXPANSIONS, (9, "", _unchanged)),
}
"""The last operator set of an old form, the attribute by which it shows, if any, and what writes it anew."""
