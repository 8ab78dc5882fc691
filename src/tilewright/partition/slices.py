"""Parts of tensors as slices, which the kernels that read them can take in passing.

A Split becomes slices. A Reshape that only cuts the sliced axis further goes before the slice, where it is a view:

    qkv [s, 3 * h * d] -> Slice -> Reshape [s, h, d]      becomes      qkv -> Reshape [s, 3 * h, d] -> Slice
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilewright.graph.graph import Graph
from tilewright.operators import ONNX, Node, axis_attribute
from tilewright.partition.editing import OPSET, Editor


def split_into_slices(graph: Graph) -> Graph:
    """The graph with a slice for each output of a Split."""
    if not any(_is_split(node) for node in graph.nodes):
        return graph
    editor = Editor(graph)
    for node in graph.nodes:
        editor.nodes += _slices(editor, node) if _is_split(node) else [node]
    return editor.graph()


def _is_split(node: Node) -> bool:
    return node.op == "Split" and node.domain == ONNX


def _slices(editor: Editor, node: Node) -> list[Node]:
    types = [editor.types.get(name) for name in (node.inputs[0], *filter(None, node.outputs))]
    if any(known is None or not known.is_compilable for known in types) or not all(node.outputs):
        return [node]
    axis = axis_attribute(node) % len(editor.shape(node.inputs[0]))
    slices: list[Node] = []
    start = 0
    for output in node.outputs:
        slices.append(_slice(editor, node.inputs[0], output, axis, start))
        start += editor.shape(output)[axis]
    return slices


def reshape_before_slices(graph: Graph) -> Graph:
    """The graph with slices after the reshapes that followed them, where those cut the sliced axis at its borders."""
    if not any(node.op == "Slice" for node in graph.nodes):
        return graph
    editor = Editor(graph)
    parts: dict[str, _Part] = {}
    for node in graph.nodes:
        part = _part(editor, node)
        if part is not None:
            parts[node.outputs[0]] = part
        source = parts.get(node.inputs[0]) if node.op == "Reshape" and node.domain == ONNX else None
        editor.nodes += [node] if source is None else _cut_further(editor, node, source)
    return editor.graph()


@dataclass(frozen=True, slots=True)
class _Part:
    """Elements from `start` on along one axis of `source`."""

    source: str
    axis: int
    start: int


def _part(editor: Editor, node: Node) -> _Part | None:
    """What a Slice along one axis takes, one element after the other."""
    bounds = [editor.constants.get(name) for name in node.inputs[1:]]
    if node.op != "Slice" or node.domain != ONNX or len(bounds) < 3 or not _is_static(editor, node):
        return None
    if any(bound is None or bound.size != 1 for bound in bounds):
        return None
    start, _, axis, *step = (int(bound.item()) for bound in bounds if bound is not None)
    source = editor.shape(node.inputs[0])
    if step not in ([], [1]):
        return None
    axis %= len(source)
    return _Part(node.inputs[0], axis, min(start if start >= 0 else start + source[axis], source[axis]))


def _is_static(editor: Editor, node: Node) -> bool:
    known = [editor.types.get(name) for name in (node.inputs[0], node.outputs[0])]
    return all(type_ is not None and type_.is_compilable for type_ in known)


def _cut_further(editor: Editor, reshape: Node, part: _Part) -> list[Node]:
    """The Reshape before the Slice and the Slice after it, or the Reshape as it was."""
    if not _is_static(editor, reshape):
        return [reshape]
    (output,) = reshape.outputs
    source, old, new = editor.shape(part.source), editor.shape(reshape.inputs[0]), editor.shape(output)
    num_after = len(old) - part.axis - 1
    inner = new[part.axis + 1 : len(new) - num_after]
    size = math.prod(inner)
    kept = (*old[: part.axis], *old[part.axis + 1 :])
    if (*new[: part.axis], *new[len(new) - num_after :]) != kept or len(new) < len(old):
        return [reshape]
    if part.start % size or source[part.axis] % size:
        return [reshape]
    shape = (*source[: part.axis], source[part.axis] // size, *inner, *source[part.axis + 1 :])
    known = editor.types[output]
    assert known is not None
    view = editor.value(f"{output}.whole", known.dtype, shape)
    start = part.start // size
    return [editor.reshape(part.source, view), _slice(editor, view, output, part.axis, start)]


def _slice(editor: Editor, source: str, output: str, axis: int, start: int) -> Node:
    end = start + editor.shape(output)[axis]
    bounds = [editor.constant(f"{output}.slice", np.asarray([at], np.int64)) for at in (start, end, axis)]
    return Node("Slice", (source, *bounds), (output,), opset=OPSET)
