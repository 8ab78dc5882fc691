"""Finds layer normalisations that were written out as means, differences, squares and roots.

    m = ReduceMean(x)    d = x - m    v = ReduceMean(d * d)    y = d / Sqrt(v + epsilon)

becomes y = LayerNormalization(x, 1); `fold_affine` then puts the scale and the shift that follow into its operands.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from tilewright.graph.graph import Graph
from tilewright.graph.passes.axes import reduction_axes
from tilewright.graph.passes.editor import TracingEditor, has_any
from tilewright.operators import ONNX, Node

_FIRST_OPSET = 17


def recognize_layer_norm(graph: Graph) -> Graph:
    if not has_any(graph, {"Sqrt"}):
        return graph
    editor = TracingEditor(graph)
    for node in editor:
        if not _rewritten(editor, node):
            editor.keep(node)
    return editor.finish()


def _rewritten(editor: TracingEditor, node: Node) -> bool:
    difference, root = _quotient(editor, node)
    centred = _node(editor, difference, "Sub")
    if centred is None:
        return False
    source, mean = centred.inputs
    axes = _mean_of(editor, mean, source)
    epsilon = _epsilon(editor, root, difference, axes)
    known = editor.types[source]
    if epsilon is None or known is None or known.dtype not in ("float32", "float16", "bfloat16"):
        return False
    if editor.types[node.outputs[0]] != known:  # an epsilon or exponent of more axes
        return False
    rank = len(known.shape)
    if axes != tuple(range(rank - len(axes), rank)):
        return False
    ones = editor.constant(np.ones(known.shape[rank - len(axes) :], known.dtype), f"{node.outputs[0]}.scale")
    editor.add(
        "LayerNormalization",
        [source, ones],
        known,
        {"axis": -len(axes), "epsilon": epsilon},
        like=node,
        output=node.outputs[0],
        opset=max(node.opset, _FIRST_OPSET),
    )
    return True


def _quotient(editor: TracingEditor, node: Node) -> tuple[str, str]:
    """The numerator and the denominator of a Div, or of a Mul with a Reciprocal; "" for any other node."""
    if node.domain != ONNX:
        return "", ""
    if node.op == "Div":
        return node.inputs[0], node.inputs[1]
    if node.op == "Mul":
        for i, name in enumerate(node.inputs):
            inverted = _node(editor, name, "Reciprocal")
            if inverted is not None:
                return node.inputs[1 - i], inverted.inputs[0]
    return "", ""


def _epsilon(editor: TracingEditor, root: str, difference: str, axes: tuple[int, ...]) -> float | None:
    """The epsilon in Sqrt(ReduceMean(difference squared) + epsilon)."""
    square_root = _node(editor, root, "Sqrt")
    added = None if square_root is None else _node(editor, square_root.inputs[0], "Add")
    if added is None:
        return None
    variance, epsilon = added.inputs
    if variance in editor.constants:
        variance, epsilon = epsilon, variance
    mean = _node(editor, variance, "ReduceMean")
    if mean is None or _number(editor, epsilon) is None or not axes:
        return None
    if not _is_square(editor, mean.inputs[0], difference) or _mean_of(editor, variance, mean.inputs[0]) != axes:
        return None
    return _number(editor, epsilon)


def _is_square(editor: TracingEditor, name: str, base: str) -> bool:
    node = editor.producer(name)
    if node is None or node.domain != ONNX:
        return False
    if node.op == "Mul":
        return node.inputs == (base, base)
    return node.op == "Pow" and node.inputs[0] == base and _number(editor, node.inputs[1]) == 2


def _mean_of(editor: TracingEditor, name: str, source: str) -> tuple[int, ...]:
    """The axes of a mean of `source` that keeps its dimensions; none for any other value."""
    node = _node(editor, name, "ReduceMean")
    if node is None or node.inputs[0] != source or not node.attributes.get("keepdims", 1):
        return ()
    return reduction_axes(editor, node) or ()


def _node(editor: TracingEditor, name: str, op: str) -> Node | None:
    node = editor.producer(name)
    return node if node is not None and node.op == op and node.domain == ONNX else None


def _number(editor: TracingEditor, name: str) -> float | None:
    value = editor.constants.get(name)
    return cast(float, value.item()) if value is not None and value.size == 1 else None
