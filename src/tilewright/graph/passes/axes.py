"""The axes that a node works along, where they are known ahead: as an attribute or as a constant operand."""

from __future__ import annotations

from tilewright.graph.passes.editor import Editor
from tilewright.operators import Node, reduced_axes


def reduction_axes(editor: Editor, node: Node) -> tuple[int, ...] | None:
    """The axes of a reduction, counted from the front and sorted; all where none are given."""
    known = editor.types[node.inputs[0]]
    if known is None:
        return None
    operand = None
    if len(node.inputs) > 1 and node.inputs[1]:
        if node.inputs[1] not in editor.constants:
            return None
        operand = [int(axis) for axis in editor.constants[node.inputs[1]]]
    rank = len(known.shape)
    return tuple(sorted({axis % rank for axis in reduced_axes(node, rank, operand)}))
