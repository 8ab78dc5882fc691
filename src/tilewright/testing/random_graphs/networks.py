"""Small networks of images and sequences: blocks of nodes as networks have them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.testing.random_graphs.draft import Array, Draft, NotDrawn, Step, need


def random_network(seed: int, num_nodes: int = 14) -> Draft:
    """A network of images or of sequences with about that many nodes."""
    draft = Draft(seed)
    shapes: list[tuple[int, ...]] = [(1, 4, 6, 6), (2, 4, 5, 6), (2, 6, 8), (1, 1, 6, 4), (2, 4, 3, 4, 4), (3, 8)]
    draft.input(draft.choice(shapes))
    if draft.integer(0, 2) == 0:
        draft.input(draft.choice(shapes))
    while len(draft.nodes) < num_nodes:
        floats = [
            name
            for name, value in draft.values.items()
            if name not in draft.constants and value.dtype == np.float32 and value.ndim > 0
        ]
        recent = floats[-4:] if draft.integer(0, 3) else floats
        with contextlib.suppress(NotDrawn):
            draft.choice(STEPS)(draft, draft.choice(recent))
    return draft


def _unary(draft: Draft, x: str) -> None:
    draft.node(draft.choice(["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Identity", "Dropout", "Softplus"]), [x])


def _clip(draft: Draft, x: str) -> None:
    draft.node("Clip", [x, draft.constant(np.float32(-1)), draft.constant(np.float32(1))])


def _with_constant(draft: Draft, x: str) -> None:
    shape = draft.values[x].shape
    kept = [size if draft.integer(0, 1) else 1 for size in shape]
    other = draft.weights(*kept[draft.integer(0, len(kept)) :])
    operands = [x, other] if draft.integer(0, 3) else [other, x]
    draft.node(draft.choice(["Add", "Mul", "Sub", "Max"]), operands)


def _with_number(draft: Draft, x: str) -> None:
    draft.node(draft.choice(["Mul", "Div", "Add"]), [x, draft.constant(np.float32(draft.choice([2.0, 0.5, 3.0])))])


def _with_other(draft: Draft, x: str) -> None:
    shape = draft.values[x].shape
    fitting = [
        name
        for name, value in draft.values.items()
        if value.dtype == np.float32 and _broadcasts(shape, value.shape) and name not in draft.constants
    ]
    draft.node(draft.choice(["Add", "Mul", "Sub"]), [x, draft.choice(fitting)])


def _broadcasts(a: Sequence[int], b: Sequence[int]) -> bool:
    return len(b) <= len(a) and all(y in (1, x) for x, y in zip(reversed(a), reversed(b), strict=False))


def _transpose(draft: Draft, x: str) -> None:
    draft.node("Transpose", [x], perm=[int(i) for i in draft.rng.permutation(draft.values[x].ndim)])


def _to_last_and_back(draft: Draft, x: str) -> None:
    rank = draft.values[x].ndim
    if rank < 3:
        return
    (last,) = draft.node("Transpose", [x], perm=[0, *range(2, rank), 1])
    (changed,) = draft.node("Tanh", [last])
    draft.node("Transpose", [changed], perm=[0, rank - 1, *range(1, rank - 1)])


def _reshape(draft: Draft, x: str) -> None:
    shape = list(draft.values[x].shape)
    if len(shape) > 2 and draft.integer(0, 1):
        first = draft.integer(0, len(shape) - 2)
        shape[first : first + 2] = [shape[first] * shape[first + 1]]
    else:
        position = draft.integer(0, len(shape) - 1)
        factor = draft.choice([f for f in range(1, shape[position] + 1) if shape[position] % f == 0])
        shape[position : position + 1] = [factor, shape[position] // factor]
    if len(shape) <= 6:
        draft.node("Reshape", [x, draft.constant(np.array(shape))])


def _flatten(draft: Draft, x: str) -> None:
    draft.node("Flatten", [x], axis=draft.integer(0, draft.values[x].ndim))


def _squeeze(draft: Draft, x: str) -> None:
    draft.node("Squeeze" if 1 in draft.values[x].shape else "Identity", [x])


def _unsqueeze(draft: Draft, x: str) -> None:
    if draft.values[x].ndim < 5:
        draft.node("Unsqueeze", [x, draft.constant(np.array([draft.integer(0, draft.values[x].ndim)]))])


def _is_image(value: Array) -> bool:
    return 3 <= value.ndim <= 5 and min(value.shape[2:]) > 0


def _conv(draft: Draft, x: str) -> None:
    value = draft.values[x]
    if not _is_image(value):
        return
    rank, channels = value.ndim - 2, value.shape[1]
    group = draft.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
    outputs = group * draft.integer(1, 3)
    kernel = [min(draft.integer(1, 3), size) for size in value.shape[2:]]
    inputs = [x, draft.weights(outputs, channels // group, *kernel)]
    if draft.integer(0, 1):
        inputs.append(draft.weights(outputs))
    attributes: dict[str, Any] = {"pads": [draft.integer(0, 1) for _ in range(2 * rank)]}
    if draft.integer(0, 2) == 0:
        attributes = {"auto_pad": draft.choice(["SAME_UPPER", "VALID"])}
    draft.node("Conv", inputs, group=group, strides=[draft.integer(1, 2)] * rank, **attributes)


def _conv_transpose(draft: Draft, x: str) -> None:
    value = draft.values[x]
    if value.ndim != 4:
        return
    channels = value.shape[1]
    group = draft.choice([g for g in (1, 1, 2) if channels % g == 0])
    draft.node("ConvTranspose", [x, draft.weights(channels, draft.integer(1, 2), 2, 2)], group=group, strides=[2, 2])


def _batch_norm(draft: Draft, x: str) -> None:
    value = draft.values[x]
    if value.ndim < 2:
        return
    channels = value.shape[1]
    scale, bias, mean = (draft.weights(channels) for _ in range(3))
    variance = draft.constant(draft.rng.uniform(0.5, 2, (channels,)).astype(np.float32))
    draft.node("BatchNormalization", [x, scale, bias, mean, variance], epsilon=1e-3)


def _conv_block(draft: Draft, x: str) -> None:
    if not _is_image(draft.values[x]):
        return
    _conv(draft, x)
    _batch_norm(draft, draft.nodes[-1].output[0])
    _unary(draft, draft.nodes[-1].output[0])


def _pool(draft: Draft, x: str) -> None:
    value = draft.values[x]
    if value.ndim != 4 or min(value.shape[2:]) < 2:
        return
    op = draft.choice(["MaxPool", "AveragePool"])
    draft.node(op, [x], kernel_shape=[2, 2], strides=[draft.integer(1, 2)] * 2, pads=[draft.integer(0, 1)] * 4)


def _global_pool(draft: Draft, x: str) -> None:
    if _is_image(draft.values[x]):
        draft.node(draft.choice(["GlobalAveragePool", "GlobalMaxPool"]), [x])


def _instance_norm(draft: Draft, x: str) -> None:
    value = draft.values[x]
    if value.ndim == 4 and math.prod(value.shape[2:]) > 1:
        draft.node(
            "InstanceNormalization", [x, draft.weights(value.shape[1]), draft.weights(value.shape[1])], epsilon=0.1
        )


def _pad(draft: Draft, x: str) -> None:
    rank = draft.values[x].ndim
    pads = [draft.integer(0, 1) if axis >= 2 or draft.integer(0, 4) == 0 else 0 for axis in range(rank)] * 2
    value = [draft.constant(np.float32(draft.choice([0, 0, 1.5])))] if draft.integer(0, 1) else []
    (padded,) = draft.node("Pad", [x, draft.constant(np.array(pads)), *value])
    if draft.integer(0, 1):
        _conv(draft, padded)


def _slice(draft: Draft, x: str) -> None:
    shape = draft.values[x].shape
    axis = draft.integer(0, len(shape) - 1)
    step = draft.choice([1, 1, 2, -1])
    start, end = (0, shape[axis]) if step > 0 else (shape[axis], -shape[axis] - 1)
    if step == 1 and shape[axis] > 1:
        start = draft.integer(0, 1)
    arrays = [draft.constant(np.array([number])) for number in (start, end, axis - len(shape), step)]
    draft.node("Slice", [x, *arrays])


def _concat(draft: Draft, x: str) -> None:
    axis = draft.integer(0, draft.values[x].ndim - 1)
    without = np.delete(draft.values[x].shape, axis).tolist()
    fitting = [
        name
        for name, value in draft.values.items()
        if value.dtype == np.float32
        and value.ndim == draft.values[x].ndim
        and np.delete(value.shape, axis).tolist() == without
    ]
    draft.node("Concat", [x, *[draft.choice(fitting) for _ in range(draft.integer(0, 2))]], axis=axis)


def _split(draft: Draft, x: str) -> None:
    shape = draft.values[x].shape
    even = [axis for axis, size in enumerate(shape) if size % 2 == 0]
    if even:
        draft.node("Split", [x], 2, axis=draft.choice(even), num_outputs=2)


def _gather(draft: Draft, x: str) -> None:
    rank = draft.values[x].ndim
    if rank >= 2:
        indices = draft.constant(draft.choice([np.array(0), np.array([0, 0]), np.array([[0]])]))
        draft.node("Gather", [x, indices], axis=draft.integer(-rank, rank - 1))


def _tile(draft: Draft, x: str) -> None:
    if draft.values[x].size < 200:
        draft.node("Tile", [x, draft.constant(draft.rng.integers(1, 3, draft.values[x].ndim))])


def _reduce(draft: Draft, x: str) -> None:
    rank = draft.values[x].ndim
    axes = sorted({draft.integer(-rank, -1) for _ in range(draft.integer(1, 2))})
    keepdims = draft.integer(0, 1) if rank > len(axes) else 1
    draft.node(
        draft.choice(["ReduceMean", "ReduceSum", "ReduceMax"]), [x, draft.constant(np.array(axes))], keepdims=keepdims
    )


def _arg_max(draft: Draft, x: str) -> None:
    rank = draft.values[x].ndim
    if rank >= 2:
        draft.node("ArgMax", [x], axis=draft.integer(0, rank - 1), keepdims=draft.integer(0, 1))


def _softmax(draft: Draft, x: str) -> None:
    rank = draft.values[x].ndim
    draft.node("Softmax", [x], axis=draft.integer(-rank, rank - 1))


def _layer_norm(draft: Draft, x: str) -> None:
    rank = draft.values[x].ndim
    axis = draft.choice([-1, -1, 1 - rank])
    axes = draft.constant(np.array([axis]))
    (mean,) = draft.node("ReduceMean", [x, axes])
    (centred,) = draft.node("Sub", [x, mean])
    two = draft.constant(np.float32(2))
    (square,) = draft.node("Pow", [centred, two]) if draft.integer(0, 1) else draft.node("Mul", [centred, centred])
    (variance,) = draft.node("ReduceMean", [square, axes])
    (added,) = draft.node("Add", [variance, draft.constant(np.float32(0.1))])
    (root,) = draft.node("Sqrt", [added])
    (normal,) = draft.node("Div", [centred, root])
    (scaled,) = draft.node("Mul", [normal, draft.weights(draft.values[x].shape[-1])])
    draft.node("Add", [scaled, draft.weights(draft.values[x].shape[-1])])


def _matmul(draft: Draft, x: str) -> None:
    value = draft.values[x]
    (product,) = draft.node("MatMul", [x, draft.weights(value.shape[-1], draft.integer(1, 5))])
    if draft.integer(0, 1):
        draft.node("Add", [product, draft.weights(draft.values[product].shape[-1])])


def _flatten_and_multiply(draft: Draft, x: str) -> None:
    if draft.values[x].ndim > 2:
        (flat,) = draft.node("Flatten", [x])
        _gemm(draft, flat)


def _gemm(draft: Draft, x: str) -> None:
    value = draft.values[x]
    if value.ndim != 2:
        return
    transposes_a, transposes_b = draft.integer(0, 1), draft.integer(0, 1)
    rows = value.shape[0] if transposes_a else value.shape[1]
    columns = draft.integer(1, 4)
    weights = draft.weights(columns, rows) if transposes_b else draft.weights(rows, columns)
    bias = [draft.weights(columns)] if draft.integer(0, 1) else []
    alpha, beta = draft.choice([1.0, 0.5]), draft.choice([1.0, 2.0])
    draft.node("Gemm", [x, weights, *bias], transA=transposes_a, transB=transposes_b, alpha=alpha, beta=beta)


def _attention(draft: Draft, x: str) -> None:
    value = draft.values[x]
    if value.ndim != 3 or value.shape[-1] % 2:
        return
    batch, length, width = value.shape
    heads = []
    for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        (projected,) = draft.node("MatMul", [x, draft.weights(width, width)])
        (biased,) = draft.node("Add", [projected, draft.weights(width)])
        (split,) = draft.node("Reshape", [biased, draft.constant(np.array([batch, length, 2, width // 2]))])
        heads.append(draft.node("Transpose", [split], perm=perm)[0])
    (scores,) = draft.node("MatMul", heads[:2])
    (scaled,) = draft.node("Div", [scores, draft.constant(np.float32(math.sqrt(width / 2)))])
    (weights,) = draft.node("Softmax", [scaled], axis=-1)
    (mixed,) = draft.node("MatMul", [weights, heads[2]])
    (back,) = draft.node("Transpose", [mixed], perm=[0, 2, 1, 3])
    draft.node("Reshape", [back, draft.constant(np.array([batch, length, width]))])


def _shuffle_channels(draft: Draft, x: str) -> None:
    value = draft.values[x]
    if value.ndim != 4 or value.shape[1] % 2:
        return
    batch, channels, height, width = value.shape
    split = draft.constant(np.array([batch, 2, channels // 2, height, width]))
    (grouped,) = draft.node("Reshape", [x, split])
    (moved,) = draft.node("Transpose", [grouped], perm=[0, 2, 1, 3, 4])
    draft.node("Reshape", [moved, draft.constant(np.array(value.shape))])


def _resize(draft: Draft, x: str) -> None:
    value = draft.values[x]
    if value.ndim == 4 and value.size < 300 and draft.opset >= 13:
        scales = draft.constant(np.array([1, 1, 2, 2], np.float32))
        draft.node("Resize", [x, "", scales], mode=draft.choice(["nearest", "linear"]))


def _depth_to_space(draft: Draft, x: str) -> None:
    value = draft.values[x]
    if value.ndim == 4 and value.shape[1] % 4 == 0:
        draft.node("DepthToSpace", [x], blocksize=2, mode=draft.choice(["DCR", "CRD"]))


STEPS: list[Step] = [
    _unary,
    _clip,
    _with_constant,
    _with_constant,
    _with_number,
    _with_other,
    _with_other,
    _transpose,
    _to_last_and_back,
    _reshape,
    _flatten,
    _squeeze,
    _unsqueeze,
    _conv,
    _conv,
    _conv_block,
    _conv_block,
    _conv_transpose,
    _batch_norm,
    _pool,
    _global_pool,
    _instance_norm,
    _pad,
    _slice,
    _concat,
    _split,
    _gather,
    _tile,
    _reduce,
    _arg_max,
    _softmax,
    _layer_norm,
    _matmul,
    _flatten_and_multiply,
    _gemm,
    _attention,
    _shuffle_channels,
    _resize,
    _depth_to_space,
]


def block(draft: Draft, x: str) -> None:
    """Any of these steps, after a value of a kind that networks have."""
    value = draft.values[x]
    need(value.dtype == np.float32 and value.ndim > 0 and value.size > 0)
    draft.choice(STEPS)(draft, x)
