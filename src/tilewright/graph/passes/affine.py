"""Folds scales and shifts by constants into the constants of the nodes before them.

A scale goes up through linear nodes to the nearest weights: through the sum with a bias, and, if it is one number,
through products, transposes and reshapes too. So do batch norms behind convolutions, and the scale of attention's
scores, which ends in the weights of the query. A shift ends in a bias.

Nothing is folded that is too large or too small for its type, nor a shift so large that it rounds what it is added to:
`(x + c) - c` is how some exporters write Round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tilewright.graph.graph import Graph
from tilewright.graph.passes.editor import TracingEditor, has_any
from tilewright.operators import ONNX, Node, axis_attribute
from tilewright.te import DTYPES

# No network has its weights farther up; in a hostile one, every scale would go all the way.
_FARTHEST = 32
_SCALES_AND_SHIFTS = frozenset(("Mul", "Div", "Add", "Sub"))
# A sum with more than this loses half of the digits of a number near 1.
_LARGEST_SHIFT = {"float64": 2.0**26, "float32": 2.0**12, "float16": 2.0**5, "bfloat16": 2.0**4}

Factor: TypeAlias = npt.NDArray[np.float64]
Combine: TypeAlias = Callable[[Factor, Factor], Factor]


def fold_affine(graph: Graph) -> Graph:
    """Mul, Div, Add and Sub with a constant disappear where constants before them can take it."""
    if not has_any(graph, _SCALES_AND_SHIFTS):
        return graph
    editor = TracingEditor(graph)
    for node in editor:
        folded = _folded(editor, node)
        if folded is None:
            editor.keep(node)
        else:
            editor.replace(node.outputs[0], folded)
    return editor.finish()


def _folded(editor: TracingEditor, node: Node) -> str | None:
    """The value that takes the place of a scale or a shift."""
    if node.domain != ONNX or node.op not in _SCALES_AND_SHIFTS:
        return None
    result = editor.types[node.outputs[0]]
    if result is None or result.dtype not in DTYPES or DTYPES[result.dtype].kind != "float":
        return None
    source, other = node.inputs
    if node.op in ("Mul", "Add") and source in editor.constants:
        source, other = other, source
    if other not in editor.constants or source in editor.constants or editor.types[source] != result:
        return None
    before = editor.sole_producer(source)
    if before is None or before.op not in (_SCALED if node.op in ("Mul", "Div") else _SHIFTED):
        return None
    number = _operand(node, editor.constants[other].astype(np.float64))
    if not np.all(np.isfinite(number)) or (node.op in ("Add", "Sub") and _rounds(number, result.dtype)):
        return None
    return _scaled(editor, source, number) if node.op in ("Mul", "Div") else _shifted(editor, source, number)


def _operand(node: Node, number: Factor) -> Factor:
    """The number that is multiplied or added."""
    if node.op == "Div":
        with np.errstate(divide="ignore"):
            return 1 / number
    return -number if node.op == "Sub" else number


def _rounds(shift: Factor, dtype: str) -> bool:
    return bool(np.any(np.abs(shift) > _LARGEST_SHIFT[dtype]))


def _fitting(value: Factor, dtype: npt.DTypeLike) -> npt.NDArray[np.generic] | None:
    """Numbers in a type, if none is too large for it."""
    with np.errstate(over="ignore"):
        new = value.astype(dtype)
    return new if bool(np.all(np.isfinite(new))) else None


def _scaled(editor: TracingEditor, name: str, factor: Factor, distance: int = 0) -> str | None:
    """A value times `factor`, made by changing the constants that went into it, `distance` nodes up."""
    node = editor.sole_producer(name)
    if node is None or node.domain != ONNX or node.op not in _SCALED or distance > _FARTHEST:
        return None
    if not _keeps_shape(editor, name, factor):
        return None
    return _SCALED[node.op](editor, node, factor, distance)


def _keeps_shape(editor: TracingEditor, name: str, factor: Factor) -> bool:
    """Whether a value has the same shape after the scale: before a sum it may be smaller than after it."""
    known = editor.types[name]
    if known is None or factor.ndim > len(known.shape):
        return False
    own = known.shape[len(known.shape) - factor.ndim :]
    return all(size in (1, extent) for size, extent in zip(factor.shape, own, strict=True))


def _shifted(editor: TracingEditor, name: str, shift: Factor) -> str | None:
    """A value plus `shift`, made by changing the constants that went into it."""
    node = editor.sole_producer(name)
    if node is None or node.domain != ONNX or node.op not in _SHIFTED:
        return None
    return _SHIFTED[node.op](editor, node, shift)


# --- convolutions --------------------------------------------------------------------------------------------------


def _per_channel(editor: TracingEditor, node: Node, number: Factor) -> Factor | None:
    """A number for each channel of an image; None where a number differs within one."""
    shape = editor.type(node.outputs[0]).shape
    full = number.reshape((1,) * (len(shape) - number.ndim) + number.shape)
    if any(size != 1 for axis, size in enumerate(full.shape) if axis != 1):
        return None
    return np.broadcast_to(full.reshape(-1), (shape[1],))


def _has_known_bias(editor: TracingEditor, node: Node) -> bool:
    return len(node.inputs) < 3 or not node.inputs[2] or node.inputs[2] in editor.constants


def _old_bias(editor: TracingEditor, node: Node) -> Factor:
    if len(node.inputs) < 3 or not node.inputs[2]:
        return np.zeros(editor.type(node.outputs[0]).shape[1])
    return editor.constants[node.inputs[2]].astype(np.float64)


def _bias(editor: TracingEditor, node: Node, value: Factor) -> str | None:
    new = _fitting(value, editor.type(node.outputs[0]).dtype)
    return None if new is None else editor.constant(new, f"{node.outputs[0]}.bias")


def _scaled_convolution(editor: TracingEditor, node: Node, factor: Factor, _: int) -> str | None:
    factors = _per_channel(editor, node, factor)
    if factors is None or node.inputs[1] not in editor.constants or not _has_known_bias(editor, node):
        return None
    weights = editor.constants[node.inputs[1]]
    wide = weights.astype(np.float64)
    if node.op == "Conv":
        scaled = wide * factors.reshape(-1, *[1] * (weights.ndim - 1))
    else:
        # [C, M / group, *kernel]: the channels of a group are rows, its outputs are columns.
        group = cast(int, node.attributes.get("group", 1))
        rows = wide.reshape(group, -1, *weights.shape[1:])
        scaled = rows * factors.reshape(group, 1, -1, *[1] * (weights.ndim - 2))
    new = _fitting(scaled.reshape(weights.shape), weights.dtype)
    has_bias = len(node.inputs) > 2 and bool(node.inputs[2])
    bias = _bias(editor, node, _old_bias(editor, node) * factors) if has_bias else ""
    if new is None or bias is None:
        return None
    return _copy(editor, node, [node.inputs[0], editor.constant(new, node.inputs[1]), *([bias] if bias else [])])


def _shifted_convolution(editor: TracingEditor, node: Node, shift: Factor) -> str | None:
    added = _per_channel(editor, node, shift)
    if added is None or not _has_known_bias(editor, node):
        return None
    bias = _bias(editor, node, _old_bias(editor, node) + added)
    return None if bias is None else _copy(editor, node, (*node.inputs[:2], bias))


# --- other nodes ---------------------------------------------------------------------------------------------------


def _scaled_product(editor: TracingEditor, node: Node, factor: Factor, distance: int) -> str | None:
    left, right = node.inputs
    is_number = factor.size == 1
    if right in editor.constants:
        weights = editor.constants[right]
        columns = factor.reshape(()) if is_number else factor.reshape(-1)
        if not is_number and (weights.ndim < 2 or factor.shape[-1:] != (factor.size,)):
            return None
        new = _fitting(weights.astype(np.float64) * columns, weights.dtype)
        return None if new is None else _copy(editor, node, (left, editor.constant(new, right)))
    if not is_number:
        return None
    for position, name in enumerate(node.inputs):
        source = _scaled(editor, name, factor.reshape(()), distance + 1)
        if source is not None:
            return _copy(editor, node, (source, right) if position == 0 else (left, source))
    return None


def _scaled_movement(editor: TracingEditor, node: Node, factor: Factor, distance: int) -> str | None:
    """One number scales all elements alike, wherever they go."""
    if factor.size != 1:
        return None
    source = _scaled(editor, node.inputs[0], factor.reshape(()), distance + 1)
    return None if source is None else _copy(editor, node, (source, *node.inputs[1:]))


def _scaled_multiple(editor: TracingEditor, node: Node, factor: Factor, _: int) -> str | None:
    return _with_operand(editor, node, np.multiply, factor)


def _scaled_sum(editor: TracingEditor, node: Node, factor: Factor, distance: int) -> str | None:
    source, constant = _constant_operand(editor, node)
    new = _combined(editor, constant, np.multiply, factor)
    if new is None or _rounds(editor.constants[constant].astype(np.float64), editor.type(node.outputs[0]).dtype):
        return None
    scaled = _scaled(editor, source, factor, distance + 1)
    return None if scaled is None else _copy(editor, node, (scaled, editor.constant(new, constant)))


def _shifted_sum(editor: TracingEditor, node: Node, shift: Factor) -> str | None:
    return _with_operand(editor, node, np.add, shift)


def _with_operand(editor: TracingEditor, node: Node, combine: Combine, number: Factor) -> str | None:
    """The same node with its constant operand changed."""
    source, constant = _constant_operand(editor, node)
    new = _combined(editor, constant, combine, number)
    return None if new is None else _copy(editor, node, (source, editor.constant(new, constant)))


def _combined(editor: TracingEditor, constant: str, combine: Combine, number: Factor) -> npt.NDArray[np.generic] | None:
    """A new constant from an old one, if it has no more elements than both that go into it, and they fit."""
    if not constant:
        return None
    value = editor.constants[constant]
    new = combine(value.astype(np.float64), number)
    fitting = _fitting(new, value.dtype) if new.size <= max(value.size, number.size) else None
    return None if fitting is None or np.any((fitting == 0) & (new != 0)) else fitting


def _constant_operand(editor: TracingEditor, node: Node) -> tuple[str, str]:
    """The two operands of a Mul or Add, the constant one last; "" where neither is."""
    left, right = node.inputs
    if left in editor.constants:
        left, right = right, left
    return (left, right) if right in editor.constants else (left, "")


def _norm_shape(editor: TracingEditor, node: Node) -> tuple[int, ...]:
    shape = editor.type(node.inputs[0]).shape
    return shape[axis_attribute(node) % len(shape) :]


def _within_norm(editor: TracingEditor, node: Node, number: Factor) -> Factor | None:
    """A number for each element that is normalised together; None where it differs between rows."""
    shape = _norm_shape(editor, node)
    rows = number.shape[: max(0, number.ndim - len(shape))]
    if any(size != 1 for size in rows) or any(name and name not in editor.constants for name in node.inputs[1:]):
        return None
    return np.broadcast_to(number.reshape(number.shape[len(rows) :]), shape)


def _scaled_norm(editor: TracingEditor, node: Node, factor: Factor, _: int) -> str | None:
    factors = _within_norm(editor, node, factor)
    if factors is None:
        return None
    inputs = [node.inputs[0]]
    for name in filter(None, node.inputs[1:]):
        new = _fitting(editor.constants[name].astype(np.float64) * factors, editor.constants[name].dtype)
        if new is None:
            return None
        inputs.append(editor.constant(new, name))
    return _copy(editor, node, inputs)


def _shifted_norm(editor: TracingEditor, node: Node, shift: Factor) -> str | None:
    shifts = _within_norm(editor, node, shift)
    if shifts is None:
        return None
    scale = editor.constants[node.inputs[1]]
    old = editor.constants[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else np.zeros_like(scale)
    bias = _fitting(old.astype(np.float64) + shifts, scale.dtype)
    if bias is None:
        return None
    return _copy(editor, node, (*node.inputs[:2], editor.constant(bias, f"{node.outputs[0]}.bias")))


def _copy(editor: TracingEditor, node: Node, inputs: Sequence[str]) -> str:
    return editor.add(node.op, inputs, editor.type(node.outputs[0]), node.attributes, like=node)


# How each operator takes a factor: given with how many nodes it has come up.
_SCALED: dict[str, Callable[[TracingEditor, Node, Factor, int], str | None]] = {
    "Add": _scaled_sum,
    "Conv": _scaled_convolution,
    "ConvTranspose": _scaled_convolution,
    "LayerNormalization": _scaled_norm,
    "MatMul": _scaled_product,
    "Mul": _scaled_multiple,
    "Reshape": _scaled_movement,
    "Transpose": _scaled_movement,
}
# How each operator takes a shift.
_SHIFTED: dict[str, Callable[[TracingEditor, Node, Factor], str | None]] = {
    "Add": _shifted_sum,
    "Conv": _shifted_convolution,
    "ConvTranspose": _shifted_convolution,
    "LayerNormalization": _shifted_norm,
}
