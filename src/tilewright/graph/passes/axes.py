"""The axes that a node works along, where they are known ahead: as an attribute or as a constant operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tilewright.graph.passes.editor import Editor
from tilewright.operators import Node


def reduction_axes(editor: Editor, node: Node) -> tuple[int, ...] | None:
    """The axes of a reduction, counted from the front and sorted; all where none are given."""
    known = editor.types[node.inputs[0]]
    if known is None:
        return None
    rank = len(known.shape)
    given = cast("Sequence[int] | None", node.attributes.get("axes"))
    if len(node.inputs) > 1 and node.inputs[1]:
        if node.inputs[1] not in editor.constants:
            return None
        given = [int(axis) for axis in editor.constants[node.inputs[1]]]
    if not given:
        return () if node.attributes.get("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(sorted({axis % rank for axis in given}))
