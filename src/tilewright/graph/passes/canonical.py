"""One form for what ONNX can say in several ways.

- Reshape, Flatten, Squeeze and Unsqueeze are a Reshape to a fixed shape.
- Gemm is MatMul and Add; constant weights are transposed and scaled ahead of time.
- DepthToSpace and SpaceToDepth are Reshape, Transpose, Reshape.
- Softmax, LogSoftmax and Hardmax of opsets before 13, which take an axis and all after it as one, have one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import Editor, has_any
from tilewright.operators import ONNX, Node, TensorType, axis_attribute
from tilewright.te import DTYPES

_ROWS_AT_A_TIME = 64


def canonicalize(graph: Graph) -> Graph:
    if not has_any(graph, _REWRITES.keys()):
        return graph
    editor = Editor(graph)
    for node in editor:
        rewrite = _REWRITES.get(node.op) if node.domain == ONNX else None
        if rewrite is None or not _is_known(editor, node) or not rewrite(editor, node):
            editor.keep(node)
    return editor.finish()


def _is_known(editor: Editor, node: Node) -> bool:
    """All types are known, and no dimension is zero, which a shape may take for "as before"."""
    types = [editor.types.get(name) for name in (node.inputs[0], node.outputs[0])]
    return all(type_ is not None and 0 not in type_.shape for type_ in types)


def _reshape(editor: Editor, node: Node) -> bool:
    old, new = editor.type(node.inputs[0]).shape, editor.type(node.outputs[0]).shape
    if np.prod(old) != np.prod(new):
        return False
    editor.add_reshape(node.inputs[0], new, like=node, output=node.outputs[0])
    return True


def _gemm(editor: Editor, node: Node) -> bool:
    result = editor.type(node.outputs[0])
    if DTYPES.get(result.dtype) is None or DTYPES[result.dtype].kind != "float":
        return False
    alpha, beta = cast(float, node.attributes.get("alpha", 1.0)), cast(float, node.attributes.get("beta", 1.0))
    a = _transposed(editor, node, node.inputs[0]) if node.attributes.get("transA", 0) else node.inputs[0]
    b = _transposed(editor, node, node.inputs[1]) if node.attributes.get("transB", 0) else node.inputs[1]
    b = _scaled(editor, node, b, alpha)
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    if not bias or beta == 0:
        editor.add("MatMul", [a, b], result, like=node, output=node.outputs[0])
        return True
    product = editor.add("MatMul", [a, b], result, like=node)
    editor.add("Add", [product, _scaled(editor, node, bias, beta)], result, like=node, output=node.outputs[0])
    return True


def _transposed(editor: Editor, node: Node, name: str) -> str:
    if name in editor.constants:
        return editor.constant(_transposed_matrix(editor.constants[name]), f"{name}.transposed")
    return editor.add_transpose(name, (1, 0), like=node)


def _transposed_matrix(matrix: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Some rows at a time: all at once would touch a new line of cache for each element of a large matrix."""
    result = np.empty(matrix.shape[::-1], matrix.dtype)
    for start in range(0, matrix.shape[0], _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        result[:, rows] = matrix[rows].T
    return result


def _scaled(editor: Editor, node: Node, name: str, factor: float) -> str:
    if factor == 1:
        return name
    known = editor.type(name)
    if name in editor.constants:
        value = (editor.constants[name].astype(np.float64) * factor).astype(known.dtype)
        return editor.constant(value, f"{name}.scaled")
    number = editor.constant(np.array(factor).astype(known.dtype), f"{name}.factor")
    return editor.add("Mul", [name, number], known, like=node)


def _depth_to_space(editor: Editor, node: Node) -> bool:
    n, c, h, w = editor.type(node.inputs[0]).shape
    b = cast(int, node.attributes["blocksize"])
    if node.attributes.get("mode", "DCR") == "DCR":
        split, perm = (n, b, b, c // (b * b), h, w), (0, 3, 4, 1, 5, 2)
    else:
        split, perm = (n, c // (b * b), b, b, h, w), (0, 1, 4, 2, 5, 3)
    return _regroup(editor, node, split, perm)


def _space_to_depth(editor: Editor, node: Node) -> bool:
    n, c, h, w = editor.type(node.inputs[0]).shape
    b = cast(int, node.attributes["blocksize"])
    perm = (0, 3, 5, 1, 2, 4) if node.attributes.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return _regroup(editor, node, (n, c, h // b, b, w // b, b), perm)


def _regroup(editor: Editor, node: Node, split: Sequence[int], perm: Sequence[int]) -> bool:
    if np.prod(split) != np.prod(editor.type(node.inputs[0]).shape):
        return False
    moved = editor.add_transpose(editor.add_reshape(node.inputs[0], split, like=node), perm, like=node)
    editor.add_reshape(moved, editor.type(node.outputs[0]).shape, like=node, output=node.outputs[0])
    return True


def _softmax(editor: Editor, node: Node) -> bool:
    if node.opset >= 13:
        return False
    known = editor.type(node.inputs[0])
    rank = len(known.shape)
    axis = axis_attribute(node)
    axis = axis + rank if axis < 0 else axis
    last = replace(node, attributes={"axis": -1}, opset=13)
    if axis == rank - 1:
        editor.keep(last)
        return True
    flat = (int(np.prod(known.shape[:axis])), int(np.prod(known.shape[axis:])))
    source = editor.add_reshape(node.inputs[0], flat, like=node)
    result = editor.add(node.op, [source], TensorType(known.dtype, flat), last.attributes, like=last)
    editor.add_reshape(result, known.shape, like=node, output=node.outputs[0])
    return True


_REWRITES: dict[str, Callable[[Editor, Node], bool]] = {
    "Reshape": _reshape,
    "Flatten": _reshape,
    "Squeeze": _reshape,
    "Unsqueeze": _reshape,
    "Gemm": _gemm,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Hardmax": _softmax,
}
