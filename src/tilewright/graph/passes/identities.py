"""Removes nodes that give back what they read: Identity, Dropout, casts to the same type, movements of nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor
from tilewright.operators import ONNX, Node

_SAME_WHEN_THE_TYPE_IS = frozenset(
    ("Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile", "Identity", "CastLike")
)
_SAME_OF_ONE = frozenset(("Concat", "Sum", "Max", "Min", "Mean"))
_CANDIDATES = _SAME_WHEN_THE_TYPE_IS | _SAME_OF_ONE | {"Dropout", "Transpose", "Split", "Pad", "Slice"}


def drop_identities(graph: Graph) -> Graph:
    """Values that are the same as others are read from those; elements that a Concat does not take are left out."""
    editor = Editor(graph)
    for old in editor:
        node = _without_empty_parts(editor, old)
        if _is_identity(editor, node):
            editor.replace(node.outputs[0], node.inputs[0])
        else:
            editor.keep(node)
    return editor.finish()


def _without_empty_parts(editor: Editor, node: Node) -> Node:
    if node.op != "Concat" or node.domain != ONNX:
        return node
    axis = cast(int, node.attributes["axis"])
    kept = [name for name in node.inputs if (known := editor.types[name]) is None or known.shape[axis:][:1] != (0,)]
    return replace(node, inputs=tuple(kept)) if kept else node


def _is_identity(editor: Editor, node: Node) -> bool:
    if node.op not in _CANDIDATES or node.domain != ONNX or not node.inputs:
        return False
    source, result = editor.types[node.inputs[0]], editor.types.get(node.outputs[0])
    if node.op == "Identity":
        return True
    if node.op == "Dropout":
        return _is_inference(editor, node)
    if node.op in _SAME_OF_ONE:
        return len(node.inputs) == 1
    if source is None or source != result:
        return False
    if node.op in _SAME_WHEN_THE_TYPE_IS:
        return True
    match node.op:
        case "Transpose":
            perm = node.attributes.get("perm", tuple(reversed(range(len(source.shape)))))
            assert isinstance(perm, Sequence)
            return list(perm) == sorted(perm)
        case "Split":
            return len(node.outputs) == 1
        case "Pad":
            return _is_all(editor, node, 1, 0)
        case "Slice":
            # A whole dimension backwards is the only other slice of the same size.
            return len(node.inputs) < 5 or not node.inputs[4] or _is_positive(editor, node.inputs[4])
        case _:
            return False


def _is_inference(editor: Editor, node: Node) -> bool:
    is_trained = len(node.inputs) > 2 and node.inputs[2] != "" and not _is_all(editor, node, 2, 0)
    return not is_trained and not any(node.outputs[1:])


def _is_all(editor: Editor, node: Node, position: int, number: int) -> bool:
    value = editor.constants.get(node.inputs[position])
    return value is not None and bool(np.all(value == number))


def _is_positive(editor: Editor, name: str) -> bool:
    value = editor.constants.get(name)
    return value is not None and bool(np.all(np.asarray(value, np.int64) > 0))
