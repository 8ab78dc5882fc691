"""Operators that put elements in other places: transposes, slices, parts and blocks. Reshapes are in `reshape`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import cast

from tilewright import te
from tilewright.operators.node import Node
from tilewright.operators.operands import (
    axes_of,
    axis_of,
    broadcast_shape,
    check_lengths,
    check_ndim,
    check_not_empty,
    element,
    known,
    known_integers,
    known_number,
    own_axis,
    replaced,
    required_integers,
)
from tilewright.operators.registry import Call, Facts, MisfitError, NotCompilableError, operator
from tilewright.te import Expr, Tensor

_MAX_WRITTEN_REPEATS = 8


def copied(call: Call, X: Tensor) -> Tensor:
    """The elements of X as a stage of its own, since an output is always computed."""
    return te.compute(X.shape, lambda *i: X[i], call.name())


@operator("Identity", facts=Facts(reshapes=True, copies_one=True))
def identity(call: Call) -> Tensor:
    """The operand itself."""
    return copied(call, call.tensor(0))


def _may_train(node: Node) -> bool:
    return len(node.inputs) > 2


@operator("Dropout", facts=Facts(random=_may_train))
def dropout(call: Call) -> Tensor | tuple[Tensor, ...]:
    """The operand itself, unless training: what is dropped then is random. The mask keeps every element."""
    X = call.tensor(0)
    is_training = call.value(2) is not None and bool(known_number(call, 2))
    if is_training and known_number(call, 1) != 0:
        raise NotCompilableError("Dropout in training drops at random")
    output = copied(call, X)
    if len(call.node.outputs) < 2 or not call.node.outputs[1]:
        return output
    return output, te.compute(X.shape, lambda *i: te.constant(True, "bool"), call.name("mask"))


def transpose_order(node: Node, ndim: int) -> tuple[int, ...]:
    """For each dimension of what a Transpose gives, that of its operand: the attribute `perm`, by default reversed."""
    given = cast("Sequence[int] | None", node.attributes.get("perm"))
    return tuple(reversed(range(ndim))) if given is None else tuple(given)


@operator("Transpose")
def transpose(call: Call) -> Tensor:
    """Dimension d of the result is dimension perm[d] of the operand."""
    X = call.tensor(0)
    order = axes_of(call, transpose_order(call.node, X.ndim), X.ndim)
    check_lengths(call, X.ndim, order)
    places = [order.index(d) for d in range(X.ndim)]
    return te.compute([X.shape[d] for d in order], lambda *i: X[tuple(i[p] for p in places)], call.name())


@operator("Expand", facts=Facts(copies_same_type=True))
def expand(call: Call) -> Tensor:
    """The operand broadcast to a shape, which itself may be smaller than the operand."""
    X = call.tensor(0)
    shape = check_not_empty(call, broadcast_shape(call, X.shape, required_integers(call, 1)))
    return te.compute(shape, lambda *i: element(X, i), call.name())


@operator("Tile", facts=Facts(copies_same_type=True))
def tile(call: Call) -> Tensor:
    """The operand repeated along each dimension."""
    X = call.tensor(0)
    repeats = required_integers(call, 1)
    check_lengths(call, X.ndim, repeats)
    shape = check_not_empty(call, [extent * n for extent, n in zip(X.shape, repeats, strict=True)])

    def index(d: int, i: Expr) -> te.ExprLike:
        if X.shape[d] == 1:
            return 0
        return i if repeats[d] == 1 else i % X.shape[d]

    def read(*i: Expr) -> Expr:
        outer = [index(d, x) for d, x in enumerate(i[:-1])]
        if X.ndim == 0 or X.shape[-1] == 1 or repeats[-1] > _MAX_WRITTEN_REPEATS:
            return X[tuple(index(d, x) for d, x in enumerate(i))]
        # Along the last axis each repeat is written out, so that neighbours stay neighbours.
        extent = X.shape[-1]
        result = X[(*outer, i[-1] - extent * (repeats[-1] - 1))]
        for n in reversed(range(repeats[-1] - 1)):
            result = te.select(i[-1] < extent * (n + 1), X[(*outer, i[-1] - extent * n)], result)
        return result

    return te.compute(shape, read, call.name())


@operator("Concat", facts=Facts(copies_one=True))
def concat(call: Call) -> Tensor:
    """The operands one after the other along an axis; those without elements are left out."""
    parts = [call.tensor(p) for p in range(len(call.node.inputs)) if not _is_empty(call, p)]
    if not parts:
        raise NotCompilableError("Concat joins operands that all have no elements")
    axis = own_axis(call, parts[0].ndim)
    return concatenated(call, parts, axis)


def _is_empty(call: Call, position: int) -> bool:
    """An operand without elements has no tensor: see `types`."""
    if call.optional(position) is not None:
        return False
    value = known(call, position)
    return value is not None and value.size == 0


def concatenated(call: Call, parts: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors one after the other along an axis."""
    first = parts[0].shape
    for part in parts:
        if (*part.shape[:axis], *part.shape[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]):
            raise MisfitError(f"{call.node.op} cannot join the shapes {first} and {part.shape} on axis {axis}")
    starts = list(accumulate((part.shape[axis] for part in parts), initial=0))

    def read(part: Tensor, start: int, indices: Sequence[Expr]) -> Expr:
        return part[replaced(indices, axis, indices[axis] - start if start else indices[axis])]

    def joined(begin: int, end: int, i: Sequence[Expr]) -> Expr:
        """The parts from `begin` to `end`; of many the halves, so that no expression is deep."""
        if end - begin == 1:
            return read(parts[begin], starts[begin], i)
        middle = begin + max(1, (end - begin - 1) // 2)
        return te.select(i[axis] < starts[middle], joined(begin, middle, i), joined(middle, end, i))

    shape = (*first[:axis], starts[-1], *first[axis + 1 :])
    return te.compute(shape, lambda *i: joined(0, len(parts), i), call.name())


@operator("Split", facts=Facts(axis=0))
def split(call: Call) -> tuple[Tensor, ...]:
    """Parts along an axis: of given sizes, or all of the same size, the last one smaller if need be."""
    X = call.tensor(0)
    axis = own_axis(call, X.ndim)
    sizes = _split_sizes(call, X.shape[axis])
    if sum(sizes) != X.shape[axis]:
        raise MisfitError(f"Split cuts {X.shape[axis]} elements into parts of {sizes}")
    starts = list(accumulate(sizes, initial=0))
    return tuple(_part(call, X, axis, *bounds) for bounds in pairwise(starts))


def _split_sizes(call: Call, extent: int) -> tuple[int, ...]:
    given = call.attribute("split", None) if call.node.opset < 13 else known_integers(call, 1)
    if given is not None:
        return tuple(given)
    number = call.attribute("num_outputs", len(call.node.outputs))
    size = -(-extent // number)
    return (*[size] * (number - 1), extent - size * (number - 1))


def _part(call: Call, X: Tensor, axis: int, start: int, end: int) -> Tensor:
    shape = check_not_empty(call, (*X.shape[:axis], end - start, *X.shape[axis + 1 :]))
    return te.compute(shape, lambda *i: X[replaced(i, axis, i[axis] + start if start else i[axis])], call.name())


@operator("Slice")
def slice_elements(call: Call) -> Tensor:
    """Elements from starts to ends in steps, each bounded as Python bounds them."""
    X = call.tensor(0)
    starts, ends = required_integers(call, 1), required_integers(call, 2)
    axes = axes_of(call, known_integers(call, 3) or range(len(starts)), X.ndim)
    steps = known_integers(call, 4) or (1,) * len(starts)
    check_lengths(call, len(starts), ends, axes, steps)
    if 0 in steps:
        raise NotCompilableError("Slice has a step of 0")
    ranges = [range(extent) for extent in X.shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        ranges[axis] = range(*slice(start, end, step).indices(X.shape[axis]))
    shape = check_not_empty(call, [len(r) for r in ranges])
    return te.compute(shape, lambda *i: X[tuple(affine(r, x) for r, x in zip(ranges, i, strict=True))], call.name())


def affine(values: range, index: Expr) -> te.ExprLike:
    """The value at a place of a range; factors of 1 and offsets of 0 are not written."""
    if len(values) == 1:
        return values.start
    moved = index if values.step == 1 else index * values.step
    return moved if values.start == 0 else moved + values.start


@operator("DepthToSpace")
def depth_to_space(call: Call) -> Tensor:
    """Channels moved into blocks of the image; in the mode DCR the blocks are the outer part of the channels."""
    X = call.tensor(0)
    check_ndim(call, X, 4)
    batch, channels, height, width = X.shape
    block = call.attribute("blocksize", 1)
    depth = channels // (block * block)
    if depth * block * block != channels:
        raise MisfitError(f"{channels} channels are not blocks of {block} x {block}")
    is_block_first = call.attribute("mode", "DCR") == "DCR"

    def moved(n: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
        place = y % block * block + x % block
        channel = place * depth + c if is_block_first else c * (block * block) + place
        return X[n, channel, y // block, x // block]

    shape = check_not_empty(call, (batch, depth, height * block, width * block))
    return te.compute(shape, moved, call.name())


@operator("SpaceToDepth")
def space_to_depth(call: Call) -> Tensor:
    """Blocks of the image moved into channels; in the mode DCR the blocks are the outer part of the channels."""
    X = call.tensor(0)
    check_ndim(call, X, 4)
    batch, depth, height, width = X.shape
    block = call.attribute("blocksize", 1)
    is_block_first = call.attribute("mode", "DCR") == "DCR"
    if height % block or width % block:
        raise MisfitError(f"an image of {height} x {width} is not cut into blocks of {block} x {block}")
    area = block * block
    shape = check_not_empty(call, (batch, depth * area, height // block, width // block))

    def moved(n: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
        place, channel = (c // depth, c % depth) if is_block_first else (c % area, c // area)
        return X[n, channel, y * block + place // block, x * block + place % block]

    return te.compute(shape, moved, call.name())


@operator("ReverseSequence")
def reverse_sequence(call: Call) -> Tensor:
    """The first elements of each sequence in reverse order, as many as its length says."""
    X, lengths = call.tensor(0), call.tensor(1)
    time = axis_of(call, call.attribute("time_axis", 0), X.ndim)
    batch = axis_of(call, call.attribute("batch_axis", 1), X.ndim)
    if lengths.shape != (X.shape[batch],):
        raise MisfitError(f"there are lengths of shape {lengths.shape} for {X.shape[batch]} sequences")

    def moved(*i: Expr) -> Expr:
        length = te.cast(lengths[i[batch]], "int64")
        return X[replaced(i, time, te.select(i[time] < length, length - 1 - i[time], i[time]))]

    return te.compute(X.shape, moved, call.name())


@operator("Trilu")
def triangle(call: Call) -> Tensor:
    """The elements above or below a diagonal, the diagonal included; zeros elsewhere."""
    X = call.tensor(0)
    if X.ndim < 2:
        raise NotCompilableError(f"Trilu is for matrices, but its input has the shape {X.shape}")
    is_upper = bool(call.attribute("upper", 1))
    diagonal = _diagonal(call)
    zero = te.constant(0, X.dtype)

    def kept(*i: Expr) -> Expr:
        offset = i[-1] - i[-2]
        return te.select(offset >= diagonal if is_upper else offset <= diagonal, X[i], zero)

    return te.compute(X.shape, kept, call.name())


def _diagonal(call: Call) -> te.ExprLike:
    if len(call.node.inputs) < 2 or not call.node.inputs[1]:
        return 0
    number = known_number(call, 1)
    if number is not None:
        return int(number)
    k = call.tensor(1)
    return te.cast(k[(0,) * k.ndim], "int64")
