"""Computes what passes have made constant."""

from __future__ import annotations

from tilewright.graph.folding import fold
from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor
from tilewright.graph.protos import array_type


def fold_constants(graph: Graph) -> Graph:
    """Nodes that read only constants become constants."""
    editor = Editor(graph)
    for node in graph.nodes:
        folded = fold(node, editor.types, editor.constants, tuple(editor.types.get(name) for name in node.outputs))
        if folded is None:
            editor.keep(node)
            continue
        for name, value in zip(node.outputs, folded, strict=True):
            if name and value is not None:
                editor.constants[name] = value
                editor.types[name] = array_type(value)
    return editor.finish()
