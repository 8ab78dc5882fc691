"""Checks that the nodes of a model make a graph, and brings them into an order in which they can run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import onnx
from onnx import GraphProto, NodeProto
from onnx.checker import ValidationError
from onnx.defs import OpSchema, SchemaError, get_schema

from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.onnx_protos import captured_names, defined_names, normal_domain, subgraphs


def label(node: NodeProto) -> str:
    """A node as messages call it."""
    return f"node {node.name or ', '.join(node.output) or '(unnamed)'} ({node.op_type})"


def ordered_nodes(graph: GraphProto) -> list[NodeProto]:
    """The nodes in an order in which they can run: the model's, where that is one."""
    producers = _producers(graph)
    given = {value.name for value in graph.input}
    given.update(tensor.name for tensor in graph.initializer)
    given.update(sparse.values.name for sparse in graph.sparse_initializer)
    available = given | producers.keys()
    for node in graph.node:
        for name in _reads(node):
            if name not in available:
                raise ModelError(
                    f"{label(node)} reads {name}, which no node, input or initializer of the model gives; "
                    f"the model is incomplete, export it again"
                )
    for output in graph.output:
        if output.name not in available:
            raise ModelError(
                f"the model's output {output.name} is computed by no node; the model is incomplete, export it again"
            )
    return _sorted(graph.node, producers)


def all_names(graph: GraphProto) -> set[str]:
    """Every name of a value in a graph and its subgraphs."""
    found = defined_names(graph)
    for node in graph.node:
        for inner in subgraphs(node):
            found |= all_names(inner)
    return found


def check_operators(nodes: Iterable[NodeProto], opsets: Mapping[str, int]) -> None:
    """Each operator is one that ONNX knows, with the inputs, outputs and attributes that it takes.

    What is inside of subgraphs is checked where they are inlined, or by whoever runs them.
    """
    context = onnx.checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = dict(opsets)
    for node in nodes:
        schema = _schema(node, opsets)
        if any(subgraphs(node)):
            # The checker of ONNX would want to know the values that a subgraph reads from around it.
            _check_arguments(node, schema)
            continue
        try:
            onnx.checker.check_node(node, context)
        except ValidationError as error:
            raise _invalid(node, str(error)) from error


def _schema(node: NodeProto, opsets: Mapping[str, int]) -> OpSchema:
    """What ONNX says of the operator in the version that the model asks for."""
    domain = normal_domain(node.domain)
    try:
        schema = get_schema(node.op_type, opsets.get(domain, 1), domain)
    except SchemaError as error:
        where = f"of domain {domain}" if domain else f"of ONNX's opset {opsets.get(domain, 1)}"
        raise UnsupportedOperatorError(
            f"{label(node)}: there is no operator {node.op_type} {where}; export the model with operators of ONNX "
            f"only, or with the operator as a function of the model"
        ) from error
    if schema.deprecated:
        raise UnsupportedOperatorError(
            f"{label(node)}: ONNX has withdrawn the operator {node.op_type} by opset {opsets.get(domain, 1)}; "
            f"export the model again with the operator that took its place"
        )
    return schema


def _check_arguments(node: NodeProto, schema: OpSchema) -> None:
    if not schema.min_input <= len(node.input) <= schema.max_input:
        raise _invalid(node, f"it has {len(node.input)} inputs, but takes at least {schema.min_input}")
    given = {attribute.name: attribute.type for attribute in node.attribute}
    for name, formal in schema.attributes.items():
        if formal.required and given.get(name) != formal.type.value:
            raise _invalid(node, f"its attribute {name} is missing, or not a {formal.type.name.lower()}")


def _invalid(node: NodeProto, reason: str) -> ModelError:
    return ModelError(f"{label(node)} is not a valid node: {reason}; correct it, or export the model again")


def _reads(node: NodeProto) -> list[str]:
    return [name for name in (*node.input, *captured_names(node)) if name]


def _producers(graph: GraphProto) -> dict[str, int]:
    """The position of the node that gives each value."""
    taken = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    producers: dict[str, int] = {}
    for position, node in enumerate(graph.node):
        for name in node.output:
            if not name:
                continue
            if name in producers or name in taken:
                other = label(graph.node[producers[name]]) if name in producers else "an input or initializer"
                raise ModelError(
                    f"{label(node)} computes {name}, which {other} gives already; "
                    f"every value needs a name of its own, rename one"
                )
            producers[name] = position
    return producers


def _sorted(nodes: Sequence[NodeProto], producers: dict[str, int]) -> list[NodeProto]:
    before = {
        position: [producers[name] for name in _reads(node) if name in producers] for position, node in enumerate(nodes)
    }
    if all(source < position for position, sources in before.items() for source in sources):
        return list(nodes)
    try:
        return [nodes[position] for position in TopologicalSorter(before).static_order()]
    except CycleError as error:
        cycle = " -> ".join(label(nodes[position]) for position in error.args[1])
        raise ModelError(
            f"the nodes of the model wait for each other in a cycle: {cycle}; remove one of its edges"
        ) from error
