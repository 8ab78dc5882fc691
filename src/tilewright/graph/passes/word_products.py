"""Products of bytes, as nodes of our own: data four bytes a word along the channels, weights packed to match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tilewright.graph.passes.editor import Editor
from tilewright.graph.passes.layout import to_channels_first, to_channels_last, transposed
from tilewright.graph.passes.quantization import Floats, QuantizedWeights
from tilewright.graph.types import expressed_types
from tilewright.operators import OWN, Node, NotCompilableError, TensorType
from tilewright.te import WORD_BYTES

# Up to here a sum of floats that are whole numbers is exact.
_MOST_EXACT = 1 << 24


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of a product of bytes as they are, and for each channel what a zero point of 1 would add to them."""

    sums: str
    corrections: Floats


def add_convolution(editor: Editor, node: Node, data: str, zero: int | str, weights: QuantizedWeights) -> Sums | None:
    """The sums of a Conv of bytes, with `zero` around them; None where there is no kernel for it.

    They are floats, and exact, where the convolution is depthwise. A zero that is not known ahead is given by name. The
    weights may be for other numbers of channels than the Conv gives.
    """
    values = weights.values
    if values.ndim < 3 or (weights.scales.size > 1 and weights.axis != 0) or not values.size:
        return None
    group = cast(int, node.attributes.get("group", 1))
    num_inputs, rank = values.shape[1], values.ndim
    source = editor.add_transpose(data, to_channels_last(rank), like=node)
    filters = np.transpose(values, (*range(2, rank), 1, 0))
    attributes = dict(node.attributes) | ({"zero": zero} if isinstance(zero, int) else {})
    packed: npt.NDArray[np.generic]
    if group > 1 and num_inputs == 1 and _is_exact(values):
        op, dtype, packed = "ConvBytes", "float32", filters.astype(np.float32)
    elif _are_bytes(values) and (group == 1 or num_inputs % WORD_BYTES == 0):
        op, dtype = "ConvWords", "int32"
        source = _words(editor, source, node)
        packed = _packed(filters, rank - 2)
    else:
        return None
    result = transposed(editor.type(node.outputs[0]), to_channels_last(rank))
    type_ = TensorType(dtype, (*result.shape[:-1], len(values)))
    inputs = [source, editor.constant(packed, node.inputs[1]), *([zero] if isinstance(zero, str) else [])]
    sums = _add(editor, op, inputs, type_, attributes, node)
    if sums is None:
        return None
    moved = editor.add_transpose(sums, to_channels_first(rank), like=node)
    return Sums(moved, values.reshape(values.shape[0], -1).sum(axis=1).astype(np.float64))


def add_product(editor: Editor, node: Node, data: str, weights: QuantizedWeights) -> Sums | None:
    """The sums of a MatMul, or of a Gemm that is one with a bias; there may be other numbers of columns than it has."""
    values, attributes = weights.values, node.attributes
    is_plain = all(attributes.get(name, 1.0) == 1.0 for name in ("alpha", "beta")) and not attributes.get("transA", 0)
    if values.ndim != 2 or not is_plain or not _are_bytes(values):
        return None
    columns = 0 if attributes.get("transB", 0) else 1
    if (weights.scales.size > 1 and weights.axis != columns) or len(editor.type(data).shape) < 2:
        return None
    matrix = values.T if columns == 0 else values
    packed = editor.constant(_packed(matrix, 0), node.inputs[1])
    type_ = TensorType("int32", (*editor.type(node.outputs[0]).shape[:-1], matrix.shape[1]))
    sums = _add(editor, "MatMulWords", [_words(editor, data, node), packed], type_, {}, node)
    return None if sums is None else Sums(sums, matrix.sum(axis=0).astype(np.float64))


def _add(
    editor: Editor, op: str, inputs: list[str], type_: TensorType, attributes: dict[str, Any], like: Node
) -> str | None:
    """Add a node of our own, if it gives what it should."""
    node = Node(op, tuple(inputs), ("result",), attributes, domain=OWN)
    try:
        if expressed_types(node, editor.types, editor.constants) != (type_,):
            return None
    except NotCompilableError:
        return None
    return editor.add(op, inputs, type_, attributes, like=like, domain=OWN)


def _words(editor: Editor, name: str, like: Node) -> str:
    """Bytes as words along their last axis, with bytes added that make it whole; weights are zero there."""
    known = editor.type(name)
    missing = -known.shape[-1] % WORD_BYTES
    if missing:
        amounts = np.array([0] * (2 * len(known.shape) - 1) + [missing], np.int64)
        known = TensorType(known.dtype, (*known.shape[:-1], known.shape[-1] + missing))
        name = editor.add("Pad", [name, editor.constant(amounts, "pads")], known, like=like, opset=13)
    type_ = TensorType("int32", (*known.shape[:-1], known.shape[-1] // WORD_BYTES))
    return editor.add("Words", [name], type_, like=like, domain=OWN)


def _packed(values: npt.NDArray[np.integer], axis: int) -> npt.NDArray[np.int32]:
    """Signed bytes as words along an axis, filled up with zeros.

    >>> _packed(np.array([[1, 2], [0, 0], [0, 0]]), 0)
    array([[1, 2]], dtype=int32)
    """
    missing = -values.shape[axis] % WORD_BYTES
    filled = np.pad(values, [(0, missing if n == axis else 0) for n in range(values.ndim)])
    last = np.moveaxis(filled.astype(np.int8), axis, -1)
    words = np.ascontiguousarray(last).view("<i4").astype(np.int32)
    return np.ascontiguousarray(np.moveaxis(words, -1, axis))


def _is_exact(values: npt.NDArray[np.integer]) -> bool:
    """Whether sums of unsigned bytes with the weights of one channel are exact as floats."""
    return 255 * int(np.abs(values).reshape(len(values), -1).sum(axis=1).max()) <= _MOST_EXACT


def _are_bytes(values: npt.NDArray[np.integer]) -> bool:
    return bool(values.size) and int(values.min()) >= -128 and int(values.max()) <= 127
