"""Removes nodes that give back what they read: Identity, Dropout, casts to the same type, movements of nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor
from tilewright.graph.passes.layout import identity
from tilewright.operators import ONNX, Node, axis_attribute, facts_of, transpose_order


def drop_identities(graph: Graph) -> Graph:
    """Values that are the same as others are read from those; elements that a Concat does not take are left out."""
    editor = Editor(graph)
    for old in editor:
        node = _without_empty_parts(editor, old)
        if node.inputs and _is_identity(editor, node):
            editor.replace(node.outputs[0], node.inputs[0])
        else:
            editor.keep(node)
    return editor.finish()


def _without_empty_parts(editor: Editor, node: Node) -> Node:
    if node.op != "Concat" or node.domain != ONNX:
        return node
    axis = axis_attribute(node)
    kept = [name for name in node.inputs if (known := editor.types[name]) is None or known.shape[axis:][:1] != (0,)]
    return replace(node, inputs=tuple(kept)) if kept else node


def _is_identity(editor: Editor, node: Node) -> bool:
    facts = facts_of(node)
    if facts.copies_one:
        return len(node.inputs) == 1
    if facts.reshapes or facts.copies_same_type:
        return _keeps_type(editor, node)
    is_identity = _CONDITIONS.get(node.op) if node.domain == ONNX else None
    return is_identity is not None and is_identity(editor, node)


def _keeps_type(editor: Editor, node: Node) -> bool:
    source = editor.types[node.inputs[0]]
    return source is not None and source == editor.types.get(node.outputs[0])


def _drops_nothing(editor: Editor, node: Node) -> bool:
    is_trained = len(node.inputs) > 2 and node.inputs[2] != "" and not _is_all(editor, node, 2, 0)
    return not is_trained and not any(node.outputs[1:])


def _keeps_order(editor: Editor, node: Node) -> bool:
    if not _keeps_type(editor, node):
        return False
    rank = len(editor.type(node.inputs[0]).shape)
    return transpose_order(node, rank) == identity(rank)


def _has_one_part(editor: Editor, node: Node) -> bool:
    return len(node.outputs) == 1 and _keeps_type(editor, node)


def _adds_nothing(editor: Editor, node: Node) -> bool:
    return _keeps_type(editor, node) and _is_all(editor, node, 1, 0)


def _takes_all(editor: Editor, node: Node) -> bool:
    """A whole dimension backwards is the only other slice of the same size."""
    if not _keeps_type(editor, node):
        return False
    return len(node.inputs) < 5 or not node.inputs[4] or _is_positive(editor, node.inputs[4])


def _is_all(editor: Editor, node: Node, position: int, number: int) -> bool:
    value = editor.constants.get(node.inputs[position])
    return value is not None and bool(np.all(value == number))


def _is_positive(editor: Editor, name: str) -> bool:
    value = editor.constants.get(name)
    return value is not None and bool(np.all(np.asarray(value, np.int64) > 0))


_CONDITIONS: dict[str, Callable[[Editor, Node], bool]] = {
    "Dropout": _drops_nothing,
    "Pad": _adds_nothing,
    "Slice": _takes_all,
    "Split": _has_one_part,
    "Transpose": _keeps_order,
}
