"""Puts the nodes of a subgraph or of a function in the place of the node that holds or calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TypeProto

from tilewright.graph.protos import defined_names, normal_domain, schema_of, subgraphs
from tilewright.operators import Node

FreshName: TypeAlias = Callable[[str], str]
"""A name that no value of the model has yet, made from the one given."""


@dataclass(frozen=True, slots=True)
class Body:
    """Nodes to import in the place of one, with the operator sets they are written for."""

    nodes: tuple[NodeProto, ...]
    opsets: Mapping[str, int]


def inline_branch(
    branch: GraphProto, outputs: Sequence[str], fresh: FreshName
) -> tuple[tuple[NodeProto, ...], dict[str, str]]:
    """The nodes of a branch that give `outputs`, and what its own values are called among them."""
    computed = {name for node in branch.node for name in node.output if name}
    renamed: dict[str, str] = {}
    copies: list[NodeProto] = []
    for wanted, value in zip(outputs, branch.output, strict=False):
        if wanted and value.name in computed and value.name not in renamed:
            renamed[value.name] = wanted
        elif wanted:
            copies.append(NodeProto(op_type="Identity", input=[value.name], output=[wanted]))
    for name in sorted(defined_names(branch) - renamed.keys()):
        renamed[name] = fresh(name)
    nodes = [_renamed(node, renamed, fresh) for node in branch.node]
    for copy in copies:
        copy.input[0] = renamed.get(copy.input[0], copy.input[0])
    return (*nodes, *copies), renamed


def function_body(node: Node, proto: NodeProto, input_types: Sequence[TypeProto | None]) -> FunctionProto | None:
    """The function by which ONNX defines the operator of a node, where it does."""
    schema = schema_of(node)
    if schema is None:
        return None
    version = max((v for v in schema.function_opset_versions if v <= node.opset), default=None)
    if version is not None:
        return FunctionProto.FromString(schema.get_function_with_opset_version(version))
    version = max((v for v in schema.context_dependent_function_opset_versions if v <= node.opset), default=None)
    if version is None:
        return None
    types = [b"" if known is None else known.SerializeToString() for known in input_types]
    try:
        found = schema.get_context_dependent_function_with_opset_version(version, proto.SerializeToString(), types)
    except (ValueError, RuntimeError):  # the attributes or types do not say what the function is
        return None
    return FunctionProto.FromString(found) if found else None


def default_attributes(node: Node) -> dict[str, AttributeProto]:
    """The attributes that ONNX gives the operator of a node where they are left out."""
    schema = schema_of(node)
    if schema is None:
        return {}
    given = {name: attribute.default_value for name, attribute in schema.attributes.items()}
    return {name: value for name, value in given.items() if value.type != AttributeProto.UNDEFINED}


def inline_function(
    function: FunctionProto, call: NodeProto, defaults: Mapping[str, AttributeProto], fresh: FreshName
) -> Body:
    """The nodes of a function with the operands, the outputs and the attributes of its call."""
    renamed = dict.fromkeys(function.input, "")
    renamed.update(zip(function.input, call.input, strict=False))
    copies: list[NodeProto] = []
    for formal, actual in zip(function.output, call.output, strict=False):
        if actual and formal in renamed:
            copies.append(NodeProto(op_type="Identity", input=[renamed[formal]], output=[actual]))
        elif actual:
            renamed[formal] = actual
    for name in dict.fromkeys(name for node in function.node for name in node.output if name):
        if name not in renamed:
            renamed[name] = fresh(f"{call.output[0]}.{name}")
    attributes = {**defaults, **{a.name: a for a in call.attribute}}
    nodes = []
    for node in function.node:
        copy = _renamed(node, renamed, fresh)
        _bind_attributes(copy, attributes)
        nodes.append(copy)
    opsets = {normal_domain(entry.domain): entry.version for entry in function.opset_import}
    return Body((*nodes, *copies), opsets)


def _renamed(node: NodeProto, renamed: Mapping[str, str], fresh: FreshName) -> NodeProto:
    """The node with its values called otherwise, in its subgraphs too."""
    copy = NodeProto()
    copy.CopyFrom(node)
    _rename_in_place(copy, renamed, fresh)
    return copy


def _rename_in_place(node: NodeProto, renamed: Mapping[str, str], fresh: FreshName) -> None:
    node.input[:] = [renamed.get(name, name) for name in node.input]
    node.output[:] = [renamed.get(name, name) for name in node.output]
    for graph in subgraphs(node):
        # Its own values get new names too, so that none hides a value around it that has been renamed to the same.
        inner = {**renamed, **{name: fresh(name) for name in sorted(defined_names(graph))}}
        for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            value.name = inner.get(value.name, value.name)
        for sparse in graph.sparse_initializer:
            sparse.values.name = inner.get(sparse.values.name, sparse.values.name)
        for child in graph.node:
            _rename_in_place(child, inner, fresh)


def _bind_attributes(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> None:
    """Attributes that stand for one of the function's take its value, or go where the call leaves it out."""
    bound = []
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            bound.append(attribute)
        elif attribute.ref_attr_name in attributes:
            value = AttributeProto()
            value.CopyFrom(attributes[attribute.ref_attr_name])
            value.name = attribute.name
            bound.append(value)
    del node.attribute[:]
    node.attribute.extend(bound)
    for graph in subgraphs(node):
        for child in graph.node:
            _bind_attributes(child, attributes)
