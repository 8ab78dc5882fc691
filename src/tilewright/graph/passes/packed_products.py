"""Products with what DequantizeLinear makes of 4-bit constants, or of 8-bit ones in blocks: on the bits themselves."""

from __future__ import annotations

from typing import cast

import numpy as np

from tilewright.graph.graph import Graph
from tilewright.graph.packed_weights import Array, PackedWeights, packed_product
from tilewright.graph.passes.editor import TracingEditor, has_any
from tilewright.operators import ONNX, Node, axis_attribute, transpose_order

# The number of bits of a type, and what makes its values unsigned.
_TYPES = {"int4": (4, 8), "uint4": (4, 0), "int8": (8, 128), "uint8": (8, 0)}


def use_packed_products(graph: Graph) -> Graph:
    """A MatMul or Gemm of such weights reads them as they are, instead of floats that are eight times as large."""
    if not has_any(graph, {"DequantizeLinear"}):
        return graph
    editor = TracingEditor(graph)
    for node in editor:
        if not (node.domain == ONNX and node.op in ("MatMul", "Gemm") and _packed(editor, node)):
            editor.keep(node)
    return editor.finish()


def _packed(editor: TracingEditor, node: Node) -> bool:
    data, result = editor.types.get(node.inputs[0]), editor.types.get(node.outputs[0])
    if data is None or result is None or not (data.is_compilable and result.is_compilable):
        return False
    is_plain = all(node.attributes.get(name, 1.0) == 1.0 for name in ("alpha", "beta"))
    weights = _weights(editor, node.inputs[1], is_transposed=bool(node.attributes.get("transB", 0)))
    if weights is None or not is_plain or node.attributes.get("transA", 0) or node.inputs[0] in editor.constants:
        return False
    operands = [editor.constant(value, node.inputs[1]) for value in weights.operands]
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    total = editor.value(result, node.outputs[0]) if bias else node.outputs[0]
    editor.keep(packed_product(node.inputs[0], operands, weights, total, like=node))
    if bias:
        editor.add("Add", [total, bias], result, like=node, output=node.outputs[0], opset=14)
    return True


def _weights(editor: TracingEditor, name: str, *, is_transposed: bool) -> PackedWeights | None:
    """The weights that a matrix, which may be transposed on its way, was dequantized from."""
    source = editor.producer(name)
    while source is not None and source.op == "Transpose" and source.domain == ONNX:
        is_transposed ^= transpose_order(source, 2) == (1, 0)
        source = editor.producer(source.inputs[0])
    if source is None or source.op != "DequantizeLinear" or source.domain != ONNX:
        return None
    values, scales = editor.constants.get(source.inputs[0]), editor.constants.get(source.inputs[1])
    has_zeros = len(source.inputs) > 2 and bool(source.inputs[2])
    zeros = editor.constants.get(source.inputs[2]) if has_zeros else None
    if values is None or scales is None or (has_zeros and zeros is None) or values.ndim != 2 or 0 in values.shape:
        return None
    return _of_blocks(source, values, scales, zeros, depth_axis=1 if is_transposed else 0)


def _of_blocks(node: Node, values: Array, scales: Array, zeros: Array | None, depth_axis: int) -> PackedWeights | None:
    """Integers with their scales in blocks along the depth; None where those are laid out in any other way."""
    bits, middle = _TYPES.get(values.dtype.name, (0, 0))
    block = cast(int, node.attributes.get("block_size", 0))
    if bits != 4 and not (bits == 8 and block):
        return None
    depth, columns = values.shape[depth_axis], values.shape[1 - depth_axis]
    axis = axis_attribute(node) % 2
    if scales.size == 1 and not block:
        shape: tuple[int, ...] = (1, 1)
    elif scales.ndim == 1 and not block and axis != depth_axis:
        shape = (1, columns)
    elif block and block % 2 == 0 and scales.ndim == 2 and axis == depth_axis:
        shape = (-(-depth // block), columns)
    else:
        return None
    size = block or depth + depth % 2
    number = np.full((1, 1), middle, np.uint8)
    if zeros is not None:
        number = _laid_out(zeros.astype(np.int16) + middle, shape, depth_axis).astype(np.uint8)
    wide = (-(-depth // size), columns)
    unsigned = (values.astype(np.int16) + middle).astype(np.uint8)
    return PackedWeights(
        np.ascontiguousarray(unsigned.T if depth_axis else unsigned),
        np.ascontiguousarray(np.broadcast_to(_laid_out(scales, shape, depth_axis), wide)),
        np.ascontiguousarray(np.broadcast_to(number, wide)),
        bits,
        size,
    )


def _laid_out(parameters: Array, shape: tuple[int, ...], depth_axis: int) -> Array:
    """Scales or zero points as [blocks, columns]."""
    return (parameters.T if parameters.ndim == 2 and depth_axis else parameters).reshape(shape)
