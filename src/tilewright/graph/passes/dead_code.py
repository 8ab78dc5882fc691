"""Removes nodes that no output needs, and forgets constants and types that no node reads."""

from __future__ import annotations

from dataclasses import replace

from tilewright.graph.graph import Graph


def remove_dead_code(graph: Graph) -> Graph:
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue
        kept.append(node)
        needed.update(name for name in node.inputs if name)
    kept.reverse()
    known = needed.union(graph.inputs, (name for node in kept for name in node.outputs))
    return replace(
        graph,
        nodes=kept,
        constants={name: value for name, value in graph.constants.items() if name in needed},
        types={name: type_ for name, type_ in graph.types.items() if name in known},
    )
