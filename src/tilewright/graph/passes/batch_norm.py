"""Writes a BatchNormalization with known statistics as what it is: a scale and a shift of each channel."""

from __future__ import annotations

from typing import cast

import numpy as np

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor, has_any
from tilewright.operators import ONNX, Node


def expand_batch_norm(graph: Graph) -> Graph:
    """BatchNormalization becomes Mul and Add, which `fold_affine` puts into the weights before it where it can."""
    if not has_any(graph, {"BatchNormalization"}):
        return graph
    editor = Editor(graph)
    for node in editor:
        if not _is_known(editor, node):
            editor.keep(node)
            continue
        result = editor.type(node.outputs[0])
        scale, bias, mean, variance = (editor.constants[name].astype(np.float64) for name in node.inputs[1:5])
        factor = scale / np.sqrt(variance + cast(float, node.attributes.get("epsilon", 1e-5)))
        shift = bias - mean * factor
        per_channel = (-1, *[1] * (len(result.shape) - 2))
        factors = editor.constant(factor.astype(result.dtype).reshape(per_channel), f"{node.outputs[0]}.scale")
        shifts = editor.constant(shift.astype(result.dtype).reshape(per_channel), f"{node.outputs[0]}.shift")
        scaled = editor.add("Mul", [node.inputs[0], factors], result, like=node)
        editor.add("Add", [scaled, shifts], result, like=node, output=node.outputs[0])
    return editor.finish()


def _is_known(editor: Editor, node: Node) -> bool:
    if node.op != "BatchNormalization" or node.domain != ONNX:
        return False
    if any(node.outputs[1:]) or node.attributes.get("training_mode", 0):
        return False
    return editor.types[node.outputs[0]] is not None and all(name in editor.constants for name in node.inputs[1:5])
