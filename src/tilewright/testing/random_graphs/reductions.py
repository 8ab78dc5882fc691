"""Reductions, sums along an axis, and normalizations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.testing.random_graphs.draft import Draft, Step, need

_REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"),
    *("ReduceLogSum", "ReduceLogSumExp"),
)


def reduction(draft: Draft, x: str) -> None:
    rank = draft.values[x].ndim
    op = draft.choice(_REDUCTIONS)
    need(op != "ReduceMean" or draft.is_float(x) or draft.values[x].size)  # no whole number is the mean of none
    if op == "ReduceLogSum":
        x = draft.result("Add", [draft.result("Abs", [x]), draft.constant(np.array(1, draft.dtype(x)))])
    axes = sorted({draft.integer(0, rank - 1) for _ in range(draft.integer(1, 3))}) if rank else []
    if 0 not in draft.shape(x):  # onnxruntime gives other shapes to axes that count from the end of nothing
        axes = [axis - rank if draft.chance(0.3) else axis for axis in axes]
    attributes: dict[str, Any] = {"keepdims": draft.integer(0, 1)} if draft.chance(0.8) else {}
    if not axes or draft.chance(0.15):
        draft.node(op, [x], **attributes)
    elif draft.opset >= (13 if op == "ReduceSum" else 18):
        draft.node(op, [x, draft.integers(*axes)], **attributes)
    else:
        draft.node(op, [x], axes=axes, **attributes)


def arg(draft: Draft, x: str) -> None:
    attributes = {"select_last_index": 1} if draft.opset >= 12 and draft.chance(0.3) else {}
    op = draft.choice(["ArgMax", "ArgMin"])
    need(0 not in draft.shape(x))
    draft.node(op, [x], axis=draft.axis(x), keepdims=draft.integer(0, 1), **attributes)


def softmax(draft: Draft, x: str) -> None:
    attributes = {"axis": draft.axis(x)} if draft.chance(0.8) else {}
    need(attributes or draft.values[x].ndim > 1)
    draft.node(draft.choice(["Softmax", "Softmax", "LogSoftmax", "Hardmax"]), [x], **attributes)


def cumulative(draft: Draft, x: str) -> None:
    axis = draft.constant(np.array(draft.axis(x), np.int64))
    draft.node("CumSum", [x, axis], exclusive=draft.integer(0, 1), reverse=draft.integer(0, 1))


def lp_normalization(draft: Draft, x: str) -> None:
    draft.node("LpNormalization", [x], axis=draft.axis(x), p=draft.integer(1, 2))


def layer_normalization(draft: Draft, x: str) -> None:
    need(draft.is_float(x))
    axis = draft.axis(x)
    normal = draft.shape(x)[axis:]
    scale, bias = (draft.operand(normal, draft.dtype(x)) for _ in range(2))
    draft.node("LayerNormalization", [x, scale, bias] if draft.chance(0.7) else [x, scale], axis=axis, epsilon=1e-2)


def written_layer_normalization(draft: Draft, x: str) -> None:
    """The nodes that exporters write for it, of any one axis."""
    need(draft.is_float(x) and 0 not in draft.shape(x))
    axis = draft.axis(x)
    operands = [draft.integers(axis)] if draft.opset >= 18 else []
    axes: dict[str, Any] = {} if operands else {"axes": [axis]}
    mean = draft.result("ReduceMean", [x, *operands], **axes)
    centred = draft.result("Sub", [x, mean])
    square = draft.result("Mul", [centred, centred])
    variance = draft.result("ReduceMean", [square, *operands], **axes)
    shifted = draft.result("Add", [variance, draft.constant(np.array(0.1, draft.dtype(x)))])
    normal = draft.result("Div", [centred, draft.result("Sqrt", [shifted])])
    if draft.chance():
        draft.node("Mul", [normal, draft.operand(draft.shape(x)[-1:], draft.dtype(x))])


def _channels(draft: Draft, x: str, least_rank: int) -> int:
    need(draft.is_float(x) and least_rank <= draft.values[x].ndim <= 5)
    return draft.shape(x)[1]


def batch_normalization(draft: Draft, x: str) -> None:
    channels = _channels(draft, x, 2)
    dtype = draft.dtype(x)
    variance = draft.constant(draft.rng.uniform(0.5, 2, (channels,)).astype(dtype))
    others = [draft.weights(channels, dtype=dtype) for _ in range(3)]
    draft.node("BatchNormalization", [x, *others, variance], epsilon=1e-3)


def instance_normalization(draft: Draft, x: str) -> None:
    channels = _channels(draft, x, 3)
    need(draft.values[x].size)  # onnxruntime 1.31 crashes
    others = [draft.weights(channels, dtype=draft.dtype(x)) for _ in range(2)]
    draft.node("InstanceNormalization", [x, *others], epsilon=1e-2)


def group_normalization(draft: Draft, x: str) -> None:
    need(draft.opset >= 21)
    channels = _channels(draft, x, 3)
    groups = draft.choice([g for g in range(1, channels + 1) if channels % g == 0])
    others = [draft.weights(channels, dtype=draft.dtype(x)) for _ in range(2)]
    draft.node("GroupNormalization", [x, *others], num_groups=groups, epsilon=1e-2)


def local_response(draft: Draft, x: str) -> None:
    _channels(draft, x, 4)
    need(draft.values[x].ndim == 4)
    draft.node("LRN", [x], size=draft.choice([1, 3, 5]), alpha=0.1)


STEPS: tuple[Step, ...] = (
    *[reduction] * 5,
    *[arg] * 2,
    *[softmax] * 2,
    cumulative,
    lp_normalization,
    layer_normalization,
    written_layer_normalization,
    batch_normalization,
    instance_normalization,
    group_normalization,
    local_response,
)
