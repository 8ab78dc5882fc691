"""Removes nodes that no output needs, and forgets outputs, constants and types that no node reads."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from onnx.defs import OpSchema

from tilewright.graph.graph import Graph
from tilewright.graph.protos import schema_of
from tilewright.operators import Node


def remove_dead_code(graph: Graph) -> Graph:
    """Nodes stay if an output of the network needs them; of those, optional outputs that nobody reads are left out."""
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue
        kept.append(_without_unread_options(node, needed))
        needed.update(node.inputs)
        needed.discard("")
    kept.reverse()
    known = needed.union(graph.inputs, chain.from_iterable(node.outputs for node in kept))
    return replace(
        graph,
        nodes=kept,
        constants={name: value for name, value in graph.constants.items() if name in needed},
        types={name: type_ for name, type_ in graph.types.items() if name in known},
    )


def _without_unread_options(node: Node, needed: set[str]) -> Node:
    schema = schema_of(node) if len(node.outputs) > 1 else None
    if schema is None:
        return node
    outputs = list(node.outputs)
    for i, formal in enumerate(schema.outputs[: len(outputs)]):
        if formal.option == OpSchema.FormalParameterOption.Optional and outputs[i] not in needed:
            outputs[i] = ""
    while outputs[-1] == "":
        outputs.pop()
    return replace(node, outputs=tuple(outputs))
