"""How a node works on a view: the same node on the value behind it, with its axes renamed.

A rule returns whether it has put the node into the new graph. Where it has not, the views that the node reads are made
into values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

import numpy as np

from tilewright.graph.passes.axes import reduction_axes
from tilewright.graph.passes.channels_last import can_express
from tilewright.graph.passes.layout import Perm, identity, inverse, permuted, reshaped, to_channels_first
from tilewright.graph.passes.pads import pads_of
from tilewright.graph.passes.transposes import Mover, View
from tilewright.operators import ONNX, OWN, Attribute, Node, axis_attribute, facts_of

Rule: TypeAlias = Callable[[Mover, Node], bool]


def rule_of(node: Node) -> Rule | None:
    facts = facts_of(node)
    if facts.elementwise:
        return _elementwise
    if facts.reduces:
        return _reduction
    if facts.follows_channels_last:
        return _channel_norm
    return _RULES.get(node.op) if node.domain == ONNX else None


def _elementwise(mover: Mover, node: Node) -> bool:
    rank = mover.rank(node.outputs[0])
    perm = mover.best_perm([name for name in node.inputs if name], rank)
    if perm == identity(rank):
        return False
    inputs = [mover.arranged(name, perm, node) if name else "" for name in node.inputs]
    mover.add(node, inputs, perm, dict(node.attributes))
    return True


def _concat(mover: Mover, node: Node) -> bool:
    rank = mover.rank(node.outputs[0])
    perm = mover.best_perm(node.inputs, rank)
    if perm == identity(rank):
        return False
    inputs = [mover.arranged(name, perm, node) for name in node.inputs]
    mover.add(node, inputs, perm, _with_axis(node, perm))
    return True


def _along_axis(mover: Mover, node: Node) -> bool:
    """One operand that is moved, and others that have nothing to do with its axes."""
    view = _first_view(mover, node)
    if view is None:
        return False
    mover.add(node, [view.source, *_others(mover, node)], view.perm, _with_axis(node, view.perm))
    return True


def _softmax(mover: Mover, node: Node) -> bool:
    view = _first_view(mover, node)
    if view is None or node.opset < 13:
        return False
    rank = len(view.perm)
    axis = axis_attribute(node) % rank
    # Rows that lie together are worth more than a Transpose saved.
    if axis == rank - 1 and view.perm[axis] != rank - 1:
        return False
    return _along_axis(mover, node)


def _quantization(mover: Mover, node: Node) -> bool:
    """With one scale for all elements, or one for each index of an axis; not with blocks."""
    if mover.rank(node.inputs[1]) > 1:
        return False
    return _along_axis(mover, node)


def _layer_norm(mover: Mover, node: Node) -> bool:
    view = _first_view(mover, node)
    if view is None or any(node.outputs[1:]):
        return False
    rank = len(view.perm)
    axis = axis_attribute(node) % rank
    if view.perm[axis:] != tuple(range(axis, rank)):
        return False
    mover.add(node, [view.source, *_others(mover, node)], view.perm, dict(node.attributes))
    return True


def _channel_norm(mover: Mover, node: Node) -> bool:
    """Normalisations of channels follow their input into the channels-last order."""
    view = _first_view(mover, node)
    if view is None or view.perm != to_channels_first(len(view.perm)) or any(node.outputs[1:]):
        return False
    inputs = [view.source, *_others(mover, node)]
    own = replace(node, inputs=tuple(inputs), outputs=node.outputs[:1], domain=OWN)
    editor = mover.editor
    if not editor.compilable.get(
        own, editor.types, editor.constants, lambda constants: can_express(own, editor.types, constants)
    ):
        return False
    mover.add(own, inputs, view.perm, dict(node.attributes), OWN)
    return True


def _reduction(mover: Mover, node: Node) -> bool:
    view, axes = _first_view(mover, node), reduction_axes(mover.editor, node)
    if view is None or not axes:
        return False
    moved = tuple(sorted(view.perm[axis] for axis in axes))
    attributes = dict(node.attributes)
    inputs = [view.source]
    if len(node.inputs) > 1 and node.inputs[1]:
        inputs.append(mover.editor.constant(np.array(moved, np.int64), node.inputs[1]))
    elif "axes" in attributes:
        attributes["axes"] = moved
    mover.add(node, inputs, _reduced(view.perm, axes, node), attributes)
    return True


def _arg_extreme(mover: Mover, node: Node) -> bool:
    view = _first_view(mover, node)
    if view is None:
        return False
    axis = axis_attribute(node) % len(view.perm)
    mover.add(node, [view.source], _reduced(view.perm, (axis,), node), _with_axis(node, view.perm))
    return True


def _gather(mover: Mover, node: Node) -> bool:
    """By one index, which takes its axis away, or by a list of them."""
    view = _first_view(mover, node)
    if view is None or mover.rank(node.inputs[1]) > 1:
        return False
    axis = axis_attribute(node) % len(view.perm)
    perm = view.perm if mover.rank(node.inputs[1]) == 1 else _without(view.perm, (axis,))
    mover.add(node, [view.source, *_others(mover, node)], perm, _with_axis(node, view.perm))
    return True


def _pad(mover: Mover, node: Node) -> bool:
    view = _first_view(mover, node)
    known = None if view is None else pads_of(mover.editor, node, len(view.perm))
    if view is None or known is None:
        return False
    back = inverse(view.perm)
    amounts = mover.editor.constant(np.array([permuted(part, back) for part in known]).reshape(-1), node.inputs[1])
    value = [mover.editor.resolve(name) for name in node.inputs[2:3]]
    mover.add(node, [view.source, amounts, *value], view.perm, dict(node.attributes))
    return True


def _slice(mover: Mover, node: Node) -> bool:
    view = _first_view(mover, node)
    starts = mover.editor.constants.get(node.inputs[1])
    if view is None or starts is None:
        return False
    axes = list(range(len(starts)))
    if len(node.inputs) > 3 and node.inputs[3]:
        if node.inputs[3] not in mover.editor.constants:
            return False
        axes = [int(axis) % len(view.perm) for axis in mover.editor.constants[node.inputs[3]]]
    moved = mover.editor.constant(np.array([view.perm[axis] for axis in axes], np.int64), f"{node.outputs[0]}.axes")
    bounds = [mover.editor.resolve(name) for name in node.inputs[1:3]]
    steps = [mover.editor.resolve(name) for name in node.inputs[4:5]]
    mover.add(node, [view.source, *bounds, moved, *steps], view.perm, dict(node.attributes))
    return True


def _tile(mover: Mover, node: Node) -> bool:
    view, repeats = _first_view(mover, node), mover.editor.constants.get(node.inputs[1])
    if view is None or repeats is None:
        return False
    moved = mover.editor.constant(repeats[list(inverse(view.perm))], node.inputs[1])
    mover.add(node, [view.source, moved], view.perm, dict(node.attributes))
    return True


def _resize(mover: Mover, node: Node) -> bool:
    view = _first_view(mover, node)
    others = node.inputs[1:]
    if view is None or any(name and name not in mover.editor.constants for name in others):
        return False
    rank = len(view.perm)
    attributes = dict(node.attributes)
    if "axes" in attributes:
        axes = cast("Sequence[int]", attributes["axes"])
        attributes["axes"] = tuple(view.perm[axis % rank] for axis in axes)
        mover.add(node, [view.source, *others], view.perm, attributes)
        return True
    back = inverse(view.perm)
    inputs = [view.source]
    for name in others:
        # The region of interest has all starts and then all ends; the others have one number for each axis.
        inputs.append(_permuted_parts(mover, name, back) if name else "")
    mover.add(node, inputs, view.perm, attributes)
    return True


def _permuted_parts(mover: Mover, name: str, back: Perm) -> str:
    value = mover.editor.constants[name].reshape(-1, len(back))
    return mover.editor.constant(value[:, list(back)].reshape(-1), name)


def _reshape(mover: Mover, node: Node) -> bool:
    view = _first_view(mover, node)
    if view is None:
        return False
    source, target = mover.type(view.source), mover.type(node.outputs[0]).shape
    found = reshaped(source.shape, view.perm, target)
    if found is None:
        return False
    shape, perm = found
    mover.set_view(node.outputs[0], View(mover.editor.add_reshape(view.source, shape, like=node), perm))
    return True


# --- axes ----------------------------------------------------------------------------------------------------------


def _first_view(mover: Mover, node: Node) -> View | None:
    """What the first operand is a view of."""
    return mover.views.get(node.inputs[0])


def _others(mover: Mover, node: Node) -> list[str]:
    """The operands after the first, as values."""
    for name in node.inputs[1:]:
        mover.make(name, node)
    return [mover.editor.resolve(name) for name in node.inputs[1:]]


def _with_axis(node: Node, perm: Perm) -> dict[str, Attribute]:
    return {**node.attributes, "axis": perm[axis_attribute(node) % len(perm)]}


def _reduced(perm: Perm, axes: Sequence[int], node: Node) -> Perm:
    """The order of the axes of what a reduction over `axes` leaves."""
    return perm if node.attributes.get("keepdims", 1) else _without(perm, axes)


def _without(perm: Perm, axes: Sequence[int]) -> Perm:
    left = [source for axis, source in enumerate(perm) if axis not in axes]
    return tuple(sorted(left).index(source) for source in left)


_RULES: dict[str, Rule] = {
    "ArgMax": _arg_extreme,
    "ArgMin": _arg_extreme,
    "Concat": _concat,
    "DequantizeLinear": _quantization,
    "DynamicQuantizeLinear": _elementwise,
    "Gather": _gather,
    "Hardmax": _softmax,
    "LayerNormalization": _layer_norm,
    "LogSoftmax": _softmax,
    "Pad": _pad,
    "QuantizeLinear": _quantization,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "Softmax": _softmax,
    "Split": _along_axis,
    "Tile": _tile,
}
