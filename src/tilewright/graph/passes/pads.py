"""Lets a convolution or an average pool pad with zeros by itself what a Pad before it pads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor, TracingEditor, has_any
from tilewright.operators import ONNX, Node


def merge_pads(graph: Graph) -> Graph:
    """Pad with zeros, then Conv or AveragePool: one node with larger pads."""
    if not has_any(graph, {"Pad"}):
        return graph
    editor = TracingEditor(graph)
    for node in editor:
        editor.keep(_merged(editor, node) or node)
    return editor.finish()


def _merged(editor: TracingEditor, node: Node) -> Node | None:
    if node.domain != ONNX or node.op not in ("Conv", "AveragePool"):
        return None
    pad = editor.producer(node.inputs[0])
    if pad is None or pad.op != "Pad" or pad.domain != ONNX:
        return None
    added = _spatial_pads(editor, pad)
    if added is None or node.attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return None
    own = cast("Sequence[int]", node.attributes.get("pads", (0,) * len(added)))
    attributes = {name: value for name, value in node.attributes.items() if name != "auto_pad"}
    if node.op == "AveragePool":
        if (any(own) and not node.attributes.get("count_include_pad", 0)) or node.attributes.get("ceil_mode", 0):
            return None
        attributes["count_include_pad"] = 1
    attributes["pads"] = tuple(a + b for a, b in zip(own, added, strict=True))
    return replace(node, inputs=(pad.inputs[0], *node.inputs[1:]), attributes=attributes)


def _spatial_pads(editor: TracingEditor, pad: Node) -> tuple[int, ...] | None:
    """All pads before, then all after, of a Pad of the spatial dimensions with zeros."""
    known = editor.types.get(pad.inputs[0])
    if known is None or pad.attributes.get("mode", "constant") != "constant":
        return None
    before_and_after = pads_of(editor, pad, len(known.shape))
    if before_and_after is None:
        return None
    before, after = before_and_after
    value = pad.inputs[2] if len(pad.inputs) > 2 else ""
    if value and (value not in editor.constants or np.any(editor.constants[value] != 0)):
        return None
    if any(before[:2]) or any(after[:2]) or min((*before, *after)) < 0:
        return None
    return (*before[2:], *after[2:])


def pads_of(editor: Editor, pad: Node, rank: int) -> tuple[list[int], list[int]] | None:
    """How much a Pad adds before and after each axis, where that is known ahead."""
    amounts = editor.constants.get(pad.inputs[1])
    if amounts is None:
        return None
    axes = list(range(rank))
    if len(pad.inputs) > 3 and pad.inputs[3]:
        if pad.inputs[3] not in editor.constants:
            return None
        axes = [int(axis) % rank for axis in editor.constants[pad.inputs[3]]]
    before, after = [0] * rank, [0] * rank
    numbers = [int(amount) for amount in amounts]
    for i, axis in enumerate(axes):
        before[axis], after[axis] = numbers[i], numbers[len(axes) + i]
    return before, after
