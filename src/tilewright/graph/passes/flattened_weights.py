"""Permutes the rows of weights instead of the data: an image that is flattened for a product with constant weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import TracingEditor, has_any
from tilewright.graph.passes.layout import inverse
from tilewright.operators import ONNX, Node, transpose_order


def permute_weight_rows(graph: Graph) -> Graph:
    """MatMul(Reshape(Transpose(x)), W) becomes MatMul(Reshape(x), W'), where the Reshape keeps the first axis."""
    if not has_any(graph, {"Transpose"}) or not has_any(graph, {"MatMul"}):
        return graph
    editor = TracingEditor(graph)
    for node in editor:
        editor.keep(_permuted(editor, node) or node)
    return editor.finish()


def _permuted(editor: TracingEditor, node: Node) -> Node | None:
    if node.op != "MatMul" or node.domain != ONNX or node.inputs[1] not in editor.constants:
        return None
    weights = editor.constants[node.inputs[1]]
    flat = editor.sole_producer(node.inputs[0])
    moved = (
        None if flat is None or flat.op != "Reshape" or flat.domain != ONNX else editor.sole_producer(flat.inputs[0])
    )
    if weights.ndim != 2 or flat is None or moved is None or moved.op != "Transpose" or moved.domain != ONNX:
        return None
    known, rows = editor.types[moved.outputs[0]], editor.types[flat.outputs[0]]
    if known is None or rows is None:
        return None
    image = known.shape
    perm = transpose_order(moved, len(image))
    if perm[0] != 0 or rows.shape != (image[0], weights.shape[0]):
        return None
    stored = [axis - 1 for axis in inverse(perm)[1:]]
    by_axis = weights.reshape(*image[1:], -1)
    new = np.transpose(by_axis, (*stored, len(stored))).reshape(weights.shape)
    source = editor.add_reshape(moved.inputs[0], rows.shape, like=flat)
    return replace(node, inputs=(source, editor.constant(new, f"{node.inputs[1]}.permuted")))
