"""Checks that the nodes of a model make a graph, and brings them into an order in which they can run."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from onnx import GraphProto, NodeProto

from tilewright.errors import ModelError
from tilewright.graph.onnx.arguments import label
from tilewright.graph.protos import captured_names, defined_names, subgraphs


def ordered_nodes(graph: GraphProto) -> list[NodeProto]:
    """The nodes in an order in which they can run: the model's, where that is one."""
    _check_inputs(graph)
    producers = _producers(graph)
    given = {value.name for value in graph.input}
    given.update(tensor.name for tensor in graph.initializer)
    given.update(sparse.values.name for sparse in graph.sparse_initializer)
    available = given | producers.keys()
    reads = [_reads(node) for node in graph.node]
    for node, names in zip(graph.node, reads, strict=True):
        for name in names:
            if name not in available:
                raise ModelError(
                    f"{label(node)} reads {name}, which no node, input or initializer of the model gives; "
                    f"the model is incomplete, export it again"
                )
    if not graph.output:
        raise ModelError("the model has no outputs, so it computes nothing; name the values wanted as its outputs")
    for output in graph.output:
        if output.name not in available:
            raise ModelError(
                f"the model's output {output.name} is computed by no node; the model is incomplete, export it again"
            )
    return _sorted(graph.node, [[producers[name] for name in names if name in producers] for names in reads])


def all_names(graph: GraphProto) -> set[str]:
    """Every name of a value in a graph and its subgraphs."""
    found = defined_names(graph)
    for node in graph.node:
        for inner in subgraphs(node):
            found |= all_names(inner)
    return found


def _reads(node: NodeProto) -> list[str]:
    return [name for name in (*node.input, *captured_names(node)) if name]


def _check_inputs(graph: GraphProto) -> None:
    names = [value.name for value in graph.input]
    if "" in names:
        raise ModelError("an input of the model has no name, so none can be given for it; name it")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"the model has several inputs {twice}; every value needs a name of its own, rename one")


def _producers(graph: GraphProto) -> dict[str, int]:
    """The position of the node that gives each value."""
    taken = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    taken.update(sparse.values.name for sparse in graph.sparse_initializer)
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


def _sorted(nodes: Sequence[NodeProto], before: Sequence[Sequence[int]]) -> list[NodeProto]:
    """The nodes, each after those at the positions that `before` has for it."""
    if all(source < position for position, sources in enumerate(before) for source in sources):
        return list(nodes)
    try:
        return [nodes[position] for position in TopologicalSorter(dict(enumerate(before))).static_order()]
    except CycleError as error:
        cycle = " -> ".join(label(nodes[position]) for position in error.args[1])
        raise ModelError(
            f"the nodes of the model wait for each other in a cycle: {cycle}; remove one of its edges"
        ) from error
