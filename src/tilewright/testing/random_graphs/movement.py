"""Elements in other places and shapes, gathers and scatters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx

from tilewright.testing.random_graphs.draft import Draft, Step, need


def transpose(draft: Draft, x: str) -> None:
    perm = [int(i) for i in draft.rng.permutation(draft.values[x].ndim)]
    attributes: dict[str, Any] = {"perm": perm} if perm and draft.chance(0.9) else {}
    draft.node("Transpose", [x], **attributes)


def reshape(draft: Draft, x: str) -> None:
    """Axes merged and cut, sometimes with -1 or 0 for what follows from the others."""
    shape = list(draft.shape(x))
    for _ in range(draft.integer(1, 3)):
        if len(shape) > 1 and draft.chance():
            first = draft.integer(0, len(shape) - 2)
            shape[first : first + 2] = [shape[first] * shape[first + 1]]
        elif shape:
            place = draft.integer(0, len(shape) - 1)
            factor = draft.choice([f for f in range(1, shape[place] + 1) if shape[place] % f == 0] or [1])
            shape[place : place + 1] = [factor, shape[place] // factor]
    need(len(shape) <= 6)
    if shape and 0 not in shape and draft.chance(0.3):
        shape[draft.integer(0, len(shape) - 1)] = -1
    elif shape and draft.shape(x) and shape[0] == draft.shape(x)[0] and draft.chance():
        shape[0] = 0
    draft.node("Reshape", [x, draft.integers(*shape)])


def flatten(draft: Draft, x: str) -> None:
    rank = draft.values[x].ndim
    draft.node("Flatten", [x], axis=draft.integer(-rank, rank))


def squeeze(draft: Draft, x: str) -> None:
    ones = [axis for axis, size in enumerate(draft.shape(x)) if size == 1]
    need(ones)
    axes = sorted({draft.choice(ones) for _ in range(2)})
    if draft.chance(0.3):
        draft.node("Squeeze", [x])
    elif draft.opset >= 13:
        draft.node("Squeeze", [x, draft.integers(*axes)])
    else:
        draft.node("Squeeze", [x], axes=axes)


def unsqueeze(draft: Draft, x: str) -> None:
    rank = draft.values[x].ndim
    need(rank < 5)
    axes = [draft.integer(-rank - 1, rank)]
    if draft.opset >= 13:
        draft.node("Unsqueeze", [x, draft.integers(*axes)])
    else:
        draft.node("Unsqueeze", [x], axes=axes)


def expand(draft: Draft, x: str) -> None:
    shape = [draft.extent(7) if size == 1 and draft.chance() else size for size in draft.shape(x)]
    shape = [1 if draft.chance(0.2) else size for size in shape]
    more = [draft.extent(5)] if len(shape) < 5 and draft.chance(0.3) else []
    draft.node("Expand", [x, draft.integers(*more, *shape)])


def tile(draft: Draft, x: str) -> None:
    draft.node("Tile", [x, draft.integers(*(draft.choice([1, 1, 2, 3]) for _ in draft.shape(x)))])


def concat(draft: Draft, x: str) -> None:
    axis = draft.axis(x)
    rank = draft.values[x].ndim
    without = np.delete(draft.shape(x), axis).tolist()
    fitting = [
        name
        for name, value in draft.values.items()
        if value.dtype == draft.values[x].dtype
        and value.ndim == rank
        and np.delete(value.shape, axis).tolist() == without
    ]
    parts = [x, *(draft.choice(fitting) for _ in range(draft.integer(0, 2)))]
    if draft.chance(0.3):
        shape = list(draft.shape(x))
        shape[axis] = draft.extent(5)
        parts.append(draft.operand(shape, draft.dtype(x)))
    draft.node("Concat", parts, axis=axis)


def split(draft: Draft, x: str) -> None:
    axis = draft.axis(x)
    extent = draft.shape(x)[axis]
    need(extent > 1)
    if draft.chance() or extent % 2:
        first = draft.integer(1, extent - 1)
        if draft.opset >= 13:
            draft.node("Split", [x, draft.integers(first, extent - first)], 2, axis=axis)
        else:
            draft.node("Split", [x], 2, axis=axis, split=[first, extent - first])
    else:
        draft.node("Split", [x], 2, axis=axis, **({"num_outputs": 2} if draft.opset >= 18 else {}))


def slice_elements(draft: Draft, x: str) -> None:
    """Along some axes, with bounds from either end and beyond it."""
    rank = draft.values[x].ndim
    need(rank > 0 and 0 not in draft.shape(x))
    axes = sorted({draft.integer(0, rank - 1) for _ in range(draft.integer(1, 2))})
    starts, ends, steps = [], [], []
    for axis in axes:
        extent = draft.shape(x)[axis]
        step = draft.choice([1, 1, 1, 2, 3, -1, -2])
        low = draft.integer(0, extent - 1)
        high = draft.integer(low + 1, extent + 2)
        if step < 0:
            starts.append(high - 1)
            ends.append(low - 1 if low > 0 else -extent - 1)
        else:
            starts.append(low - extent if draft.chance(0.3) else low)
            ends.append(high if draft.chance(0.7) else np.iinfo(np.int64).max)
        steps.append(step)
    operands = [starts, ends, [axis - rank if draft.chance(0.3) else axis for axis in axes], steps]
    draft.node("Slice", [x, *(draft.integers(*numbers) for numbers in operands)])


def pad(draft: Draft, x: str) -> None:
    rank = draft.values[x].ndim
    need(rank > 0 and 0 not in draft.shape(x))
    mode = draft.choice(["constant", "constant", "edge", "reflect"])
    before, after = ([draft.integer(-1 if mode == "constant" else 0, 2) for _ in range(rank)] for _ in range(2))
    for axis, extent in enumerate(draft.shape(x)):
        most = extent - 1 if mode == "reflect" else 2
        before[axis], after[axis] = min(before[axis], most), min(after[axis], most)
        if extent + before[axis] + after[axis] < 1:
            before[axis] = after[axis] = 0
    operands = [x, draft.integers(*before, *after)]
    if mode == "constant" and draft.chance():
        operands.append(draft.constant(np.array(draft.choice([0, 1]), draft.dtype(x))))
    draft.node("Pad", operands, mode=mode)


def blocks(draft: Draft, x: str) -> None:
    need(draft.values[x].ndim == 4)
    _, channels, height, width = draft.shape(x)
    if channels % 4 == 0 and draft.chance():
        draft.node("DepthToSpace", [x], blocksize=2, mode=draft.choice(["DCR", "CRD"]))
    else:
        need(height % 2 == 0 and width % 2 == 0)
        draft.node("SpaceToDepth", [x], blocksize=2)


def triangle(draft: Draft, x: str) -> None:
    operands = [x, draft.constant(np.array(draft.integer(-2, 2), np.int64))] if draft.chance() else [x]
    need(draft.values[x].ndim >= 2)
    draft.node("Trilu", operands, upper=draft.integer(0, 1))


def reverse_sequence(draft: Draft, x: str) -> None:
    need(draft.values[x].ndim >= 2)
    time = draft.integer(0, 1)
    steps, batch = draft.shape(x)[time], draft.shape(x)[1 - time]
    need(steps > 0 and batch > 0)
    lengths = draft.rng.integers(1, steps + 1, batch)
    name = draft.constant(lengths) if draft.chance() else draft.given(lengths)
    draft.node("ReverseSequence", [x, name], time_axis=time, batch_axis=1 - time)


# --- places that are data --------------------------------------------------------------------------------------------


def _indices(draft: Draft, shape: Any, extent: int, *, counts_from_end: bool = True) -> str:
    need(extent > 0)
    low = -extent if counts_from_end and draft.chance(0.3) else 0
    value = draft.rng.integers(low, extent, shape).astype(draft.choice(["int64", "int64", "int32"]))
    return draft.constant(value) if draft.chance() else draft.given(value)


def gather(draft: Draft, x: str) -> None:
    axis = draft.axis(x)
    shape = draft.choice([(), (1,), (3,), (2, 3), (draft.extent(9),)])
    need(draft.values[x].ndim + len(shape) <= 5)
    draft.node("Gather", [x, _indices(draft, shape, draft.shape(x)[axis])], axis=axis)


def gather_elements(draft: Draft, x: str) -> None:
    axis = draft.axis(x)
    need(0 not in draft.shape(x))
    shape = [draft.integer(1, size) for size in draft.shape(x)]
    draft.node("GatherElements", [x, _indices(draft, shape, draft.shape(x)[axis])], axis=axis)


def gather_nd(draft: Draft, x: str) -> None:
    need(draft.values[x].ndim >= 1 and 0 not in draft.shape(x))
    depth = draft.integer(1, draft.values[x].ndim)
    indices = np.stack([draft.rng.integers(0, size, (2, 3)) for size in draft.shape(x)[:depth]], -1)
    draft.node("GatherND", [x, draft.constant(indices) if draft.chance() else draft.given(indices)])


def scatter_elements(draft: Draft, x: str) -> None:
    """Each place once: the order of several updates to one is not defined."""
    axis = draft.axis(x)
    need(0 not in draft.shape(x) and draft.dtype(x) != "bool")
    shape = [draft.integer(1, size) for size in draft.shape(x)]
    extent = draft.shape(x)[axis]
    order = np.argsort(draft.rng.random(draft.shape(x)), axis=axis)
    indices = order[tuple(slice(size) for size in shape)].astype(np.int64)
    updates = draft.operand(shape, draft.dtype(x))
    attributes = {}
    if draft.opset >= 18 and draft.chance(0.4):
        attributes["reduction"] = draft.choice(["add", "mul", "max", "min"])
        indices = indices % max(1, extent // 2)
    draft.node("ScatterElements", [x, draft.constant(indices), updates], axis=axis, **attributes)


def scatter_nd(draft: Draft, x: str) -> None:
    need(draft.values[x].ndim >= 1 and 0 not in draft.shape(x))
    depth = draft.integer(1, draft.values[x].ndim)
    outer = draft.shape(x)[:depth]
    places = draft.rng.permutation(math.prod(outer))[: draft.integer(1, 4)]
    indices = np.stack(np.unravel_index(places, outer), -1).astype(np.int64)
    updates = draft.operand((len(places), *draft.shape(x)[depth:]), draft.dtype(x))
    draft.node("ScatterND", [x, draft.constant(indices) if draft.chance() else draft.given(indices), updates])


def one_hot(draft: Draft, x: str) -> None:
    indices = draft.given(draft.rng.integers(-5, 5, draft.choice([(3,), (2, 3), (1,)])))
    values = draft.operand((2,), draft.choice(["float32", "int64"]))
    draft.node("OneHot", [indices, draft.constant(np.array(5, np.int64)), values], axis=draft.integer(-1, 1))


def shape_arithmetic(draft: Draft, x: str) -> None:
    """A shape that is computed, as exporters write it."""
    rank = draft.values[x].ndim
    need(rank >= 2)
    shape = draft.result("Shape", [x])
    first = draft.result("Gather", [shape, draft.integers(0)])
    wanted = draft.result("Concat", [first, draft.integers(-1)], axis=0)
    need(0 not in draft.shape(x))
    draft.node("Reshape", [x, wanted])


def constant_of_shape(draft: Draft, x: str) -> None:
    shape = draft.result("Shape", [x])
    value = onnx.numpy_helper.from_array(np.array([draft.choice([0, 2])], draft.choice(["float32", "int64"])))
    made = draft.result("ConstantOfShape", [shape], value=value)
    if draft.dtype(made) == draft.dtype(x):
        draft.node("Add", [made, x])


STEPS: tuple[Step, ...] = (
    *[transpose] * 3,
    *[reshape] * 3,
    flatten,
    squeeze,
    unsqueeze,
    expand,
    tile,
    *[concat] * 2,
    *[split] * 2,
    *[slice_elements] * 3,
    *[pad] * 2,
    blocks,
    triangle,
    reverse_sequence,
    *[gather] * 2,
    gather_elements,
    gather_nd,
    scatter_elements,
    scatter_nd,
    one_hot,
    shape_arithmetic,
    constant_of_shape,
)
