"""Pad in all its modes, and CenterCropPad."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from tilewright import te
from tilewright.operators.operands import (
    axes_of,
    check_lengths,
    check_not_empty,
    known_integers,
    known_number,
    required_integers,
)
from tilewright.operators.registry import Call, NotCompilableError, operator
from tilewright.te import Expr, Tensor


@operator("Pad")
def pad(call: Call) -> Tensor:
    """Elements put around a tensor, or taken off where a padding is negative."""
    X = call.tensor(0)
    pads = required_integers(call, 1)
    axes = axes_of(call, known_integers(call, 3) or range(X.ndim), X.ndim)
    check_lengths(call, 2 * len(axes), pads)
    before, after = [0] * X.ndim, [0] * X.ndim
    for place, axis in enumerate(axes):
        before[axis], after[axis] = pads[place], pads[len(axes) + place]
    shape = check_not_empty(call, [sum(sizes) for sizes in zip(X.shape, before, after, strict=True)])
    mode = call.attribute("mode", "constant")
    if mode == "constant":
        return padded(call, X, before, shape, _filling(call, X.dtype))
    if mode not in _SOURCES:
        raise NotCompilableError(f"Pad has no mode {mode}")
    source = _SOURCES[mode]
    # What is cropped off one end is not there for the padding of the other.
    cropped, added = [max(0, -size) for size in before], [max(0, size) for size in before]
    kept = [extent - start + min(0, size) for extent, start, size in zip(X.shape, cropped, after, strict=True)]
    if min(kept, default=0) < 1:
        raise NotCompilableError(f"Pad has no elements left to put around in mode {mode}")

    def in_whole(d: int, index: te.ExprLike) -> te.ExprLike:
        return index + cropped[d] if cropped[d] else index

    def read(*i: Expr) -> Expr:
        *outer, last = [
            in_whole(d, x if kept[d] == shape[d] else source(x - added[d], kept[d])) for d, x in enumerate(i)
        ]
        if max(before[-1], after[-1]) not in range(1, kept[-1]):
            return X[(*outer, last)]
        return _in_pieces(lambda index: X[(*outer, in_whole(-1, index))], mode, i[-1], added[-1], kept[-1])

    return te.compute(shape, read, call.name())


def _in_pieces(read: Callable[[te.ExprLike], Expr], mode: str, index: Expr, before: int, extent: int) -> Expr:
    """What stands before, in and after the tensor along its last axis; in each piece elements are neighbours."""
    place = index - before if before else index
    last = extent - 1
    low, high = {
        "edge": (te.constant(0, "int64"), te.constant(last, "int64")),
        "reflect": (before - index, 2 * last - place),
        "wrap": (place + extent, place - extent),
    }[mode]
    inside = te.select(index < before + extent, read(place), read(high))
    return te.select(index < before, read(low), inside) if before > 0 else inside


def padded(call: Call, X: Tensor, before: Sequence[int], shape: Sequence[int], filling: Expr) -> Tensor:
    """X moved by `before` in a new shape, with `filling` where X has no element."""

    def read(*i: Expr) -> Expr:
        inside: list[Expr] = []
        for index, offset, extent, total in zip(i, before, X.shape, shape, strict=True):
            inside += [index >= offset] if offset > 0 else []
            inside += [index < extent + offset] if total > extent + offset else []
        moved = X[tuple(index - offset if offset else index for index, offset in zip(i, before, strict=True))]
        return te.select(functools.reduce(te.logical_and, inside), moved, filling) if inside else moved

    return te.compute(shape, read, call.name())


def _filling(call: Call, dtype: str) -> Expr:
    if len(call.node.inputs) < 3 or not call.node.inputs[2]:
        return te.constant(0, dtype)
    number = known_number(call, 2)
    if number is not None:
        return te.constant(number, dtype)
    value = call.tensor(2)
    return te.cast(value[(0,) * value.ndim], dtype)


def _edge(position: Expr, extent: int) -> Expr:
    return te.minimum(te.maximum(position, 0), extent - 1)


def _wrap(position: Expr, extent: int) -> Expr:
    return position % extent


def _reflect(position: Expr, extent: int) -> te.ExprLike:
    if extent == 1:
        return 0
    period = 2 * (extent - 1)
    place = position % period
    return te.minimum(place, period - place)


_SOURCES = {"edge": _edge, "wrap": _wrap, "reflect": _reflect}


@operator("CenterCropPad")
def center_crop_pad(call: Call) -> Tensor:
    """The middle of a tensor, or a tensor in the middle of zeros, by axis; of an odd rest more is at the end."""
    X = call.tensor(0)
    wanted = required_integers(call, 1)
    axes = axes_of(call, call.attribute("axes", list(range(X.ndim))), X.ndim)
    check_lengths(call, len(axes), wanted)
    shape, before = list(X.shape), [0] * X.ndim
    for axis, extent in zip(axes, wanted, strict=True):
        shape[axis] = extent
        rest = extent - X.shape[axis]
        before[axis] = rest // 2 if rest >= 0 else -(-rest // 2)
    return padded(call, X, before, check_not_empty(call, shape), te.constant(0, X.dtype))
