"""Parts of tensors as slices, which the kernels that read them can take in passing.

A Split becomes slices. A Reshape that only cuts the sliced axis further goes before the slice, where it is a view:

    qkv [s, 3 * h * d] -> Slice -> Reshape [s, h, d]      becomes      qkv -> Reshape [s, 3 * h, d] -> Slice
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor, has_any
from tilewright.operators import ONNX, Node, axis_attribute

# Axes and steps are operands, and steps may be left out.
_OPSET = 13


def split_into_slices(graph: Graph) -> Graph:
    """A slice for each output of a Split."""
    if not has_any(graph, {"Split"}):
        return graph
    editor = Editor(graph)
    for node in editor:
        if _can_be_slices(editor, node):
            _add_slices(editor, node)
        else:
            editor.keep(node)
    return editor.finish()


def _can_be_slices(editor: Editor, node: Node) -> bool:
    return node.op == "Split" and node.domain == ONNX and all(node.outputs) and _is_static(editor, node)


def _is_static(editor: Editor, node: Node) -> bool:
    known = [editor.types.get(name) for name in (node.inputs[0], *node.outputs)]
    return all(type_ is not None and type_.is_compilable for type_ in known)


def _add_slices(editor: Editor, split: Node) -> None:
    source = split.inputs[0]
    axis = axis_attribute(split) % len(editor.type(source).shape)
    start = 0
    for output in split.outputs:
        _add_slice(editor, _Part(source, axis, start), output, like=split)
        start += editor.type(output).shape[axis]


@dataclass(frozen=True, slots=True)
class _Part:
    """Elements from `start` on along one axis of `source`."""

    source: str
    axis: int
    start: int


def _add_slice(editor: Editor, part: _Part, output: str, *, like: Node) -> None:
    known = editor.type(output)
    end = part.start + known.shape[part.axis]
    bounds = [editor.constant(np.array([at], np.int64), f"{output}.slice") for at in (part.start, end, part.axis)]
    editor.add("Slice", [part.source, *bounds], known, like=like, output=output, opset=max(like.opset, _OPSET))


def reshape_before_slices(graph: Graph) -> Graph:
    """Slices after the reshapes that followed them, where those cut the sliced axis at its borders."""
    if not has_any(graph, {"Slice"}):
        return graph
    editor = Editor(graph)
    parts: dict[str, _Part] = {}
    for node in editor:
        part = _part(editor, node)
        if part is not None:
            parts[node.outputs[0]] = part
        sliced = parts.get(node.inputs[0]) if node.op == "Reshape" and node.domain == ONNX else None
        if sliced is None or not _cut_further(editor, node, sliced):
            editor.keep(node)
    return editor.finish()


def _part(editor: Editor, node: Node) -> _Part | None:
    """What a Slice along one axis takes, one element after the other."""
    if node.op != "Slice" or node.domain != ONNX or not _is_static(editor, node):
        return None
    bounds = [editor.constants.get(name) for name in node.inputs[1:]]
    if len(bounds) < 3 or any(bound is None or bound.size != 1 for bound in bounds):
        return None
    start, _, axis, *step = (int(bound.item()) for bound in bounds if bound is not None)
    source = editor.type(node.inputs[0]).shape
    if step not in ([], [1]):
        return None
    axis %= len(source)
    first, _, _ = slice(start, None).indices(source[axis])  # within the axis, however far a start reaches
    return _Part(node.inputs[0], axis, first)


def _cut_further(editor: Editor, reshape: Node, part: _Part) -> bool:
    """Add the Reshape before the Slice and the Slice after it, if that is possible."""
    if not _is_static(editor, reshape):
        return False
    (output,) = reshape.outputs
    source, old, new = (editor.type(name).shape for name in (part.source, reshape.inputs[0], output))
    num_after = len(old) - part.axis - 1
    inner = new[part.axis + 1 : len(new) - num_after]
    size = math.prod(inner)
    kept = (*old[: part.axis], *old[part.axis + 1 :])
    if (*new[: part.axis], *new[len(new) - num_after :]) != kept or len(new) < len(old):
        return False
    if part.start % size or source[part.axis] % size:
        return False
    shape = (*source[: part.axis], source[part.axis] // size, *inner, *source[part.axis + 1 :])
    whole = editor.add_reshape(part.source, shape, like=reshape)
    _add_slice(editor, _Part(whole, part.axis, part.start // size), output, like=reshape)
    return True
