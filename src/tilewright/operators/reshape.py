"""Operators that keep the elements in their row-major order and give them another shape.

An index of the new shape is cut into digits, and an index of the old one is put together from them. The digits are
those of the coarsest shape that refines both, so that dimensions that are split need no division, and those that are
merged only one by their own size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tilewright import te
from tilewright.operators.operands import axes_of, axis_of, check_not_empty, known_integers, required_integers
from tilewright.operators.registry import Call, Facts, MisfitError, NotCompilableError, axis_attribute, operator
from tilewright.te import Expr, Tensor


def reshaped(call: Call, X: Tensor, shape: Sequence[int]) -> Tensor:
    """The elements of X in the same order under another shape."""
    target = tuple(shape)
    if math.prod(target) != math.prod(X.shape):
        raise MisfitError(
            f"the shape {target} has {math.prod(target)} elements, but the input's {X.shape} has {math.prod(X.shape)}"
        )
    check_not_empty(call, target)
    return te.compute(target, lambda *i: X[source_indices(X.shape, target, i)], call.name())


def source_indices(source: Sequence[int], target: Sequence[int], indices: Sequence[Expr]) -> tuple[te.ExprLike, ...]:
    """Where the element at `indices` of the shape `target` stands in the shape `source` of as many elements.

    >>> i, j = te.reduce_axis(8, "i"), te.reduce_axis(3, "j")
    >>> [str(index) for index in source_indices((4, 6), (8, 3), (i, j))]
    ['i // 2', 'i % 2 * 3 + j']
    """
    found: list[te.ExprLike] = [0] * len(source)
    for source_axes, target_axes in _blocks(source, target):
        old, new = [source[d] for d in source_axes], [target[d] for d in target_axes]
        for axis, index in zip(source_axes, _block_indices(old, new, [indices[d] for d in target_axes]), strict=True):
            found[axis] = index
    return tuple(found)


def _blocks(source: Sequence[int], target: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The axes of both shapes, without those of extent 1, cut into runs of equal numbers of elements."""
    old, new = ([d for d, extent in enumerate(shape) if extent > 1] for shape in (source, target))
    blocks = []
    while old:
        olds, news = [old.pop(0)], [new.pop(0)]
        while (difference := math.prod(source[d] for d in olds) - math.prod(target[d] for d in news)) != 0:
            if difference < 0:
                olds.append(old.pop(0))
            else:
                news.append(new.pop(0))
        blocks.append((olds, news))
    return blocks


def _block_indices(source: Sequence[int], target: Sequence[int], indices: Sequence[Expr]) -> list[Expr]:
    old, new = _strides(source), _strides(target)
    cuts = sorted({math.prod(source), *old, *new})
    if any(larger % smaller for smaller, larger in pairwise(cuts)):
        return _by_division(source, old, _weighted(indices, new))
    digits = _digits(cuts, target, new, indices)
    found = []
    for extent, stride in zip(source, old, strict=True):
        own = [cut for cut in reversed(cuts) if stride <= cut < stride * extent]
        found.append(_weighted([digits[cut] for cut in own], [cut // stride for cut in own]))
    return found


def _digits(
    cuts: Sequence[int], extents: Sequence[int], strides: Sequence[int], indices: Sequence[Expr]
) -> dict[int, Expr]:
    """The digit of the element's number between each cut and the next, from the index whose dimension holds it."""
    digits: dict[int, Expr] = {}
    for cut, following in pairwise(cuts):
        holder = next(d for d, stride in enumerate(strides) if stride <= cut < stride * extents[d])
        digit = indices[holder]
        if cut > strides[holder]:
            digit = digit // (cut // strides[holder])
        if following < strides[holder] * extents[holder]:
            digit = digit % (following // cut)
        digits[cut] = digit
    return digits


def _by_division(extents: Sequence[int], strides: Sequence[int], number: Expr) -> list[Expr]:
    """The indices of the element of that number, where the shapes have nothing in common."""
    found = []
    for d, (extent, stride) in enumerate(zip(extents, strides, strict=True)):
        index = number // stride if stride > 1 else number
        found.append(index % extent if d > 0 else index)
    return found


def _weighted(digits: Sequence[Expr], weights: Sequence[int]) -> Expr:
    terms = [digit if weight == 1 else digit * weight for digit, weight in zip(digits, weights, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[d + 1 :]) for d in range(len(shape))]


@operator("Reshape", facts=Facts(reshapes=True))
def reshape(call: Call) -> Tensor:
    """The shape is an operand: 0 keeps a dimension unless `allowzero` is set, -1 takes what is left."""
    X = call.tensor(0)
    wanted = list(required_integers(call, 1))
    if not call.attribute("allowzero", 0):
        wanted = [X.shape[d] if extent == 0 and d < X.ndim else extent for d, extent in enumerate(wanted)]
    if -1 in wanted:
        others = math.prod(extent for extent in wanted if extent != -1)
        wanted[wanted.index(-1)] = math.prod(X.shape) // others if others > 0 else 0
    return reshaped(call, X, wanted)


@operator("Flatten", facts=Facts(reshapes=True, axis=1))
def flatten(call: Call) -> Tensor:
    """A matrix: the dimensions before `axis` as its rows, the others as its columns."""
    X = call.tensor(0)
    axis = axis_attribute(call.node)
    axis = axis if axis == X.ndim else axis_of(call, axis, X.ndim)
    return reshaped(call, X, (math.prod(X.shape[:axis]), math.prod(X.shape[axis:])))


def _axes_operand(call: Call) -> tuple[int, ...] | None:
    """The axes, an attribute before opset 13 and an operand since."""
    if call.node.opset < 13:
        axes: Sequence[int] | None = call.attribute("axes", None)
        return None if axes is None else tuple(axes)
    return known_integers(call, 1)


@operator("Squeeze", facts=Facts(reshapes=True))
def squeeze(call: Call) -> Tensor:
    """Without the named dimensions, or without all of extent 1."""
    X = call.tensor(0)
    axes = _axes_operand(call)
    if axes is None:
        return reshaped(call, X, [extent for extent in X.shape if extent != 1])
    dropped = {axis_of(call, axis, X.ndim) for axis in axes}
    return reshaped(call, X, [extent for d, extent in enumerate(X.shape) if d not in dropped])


@operator("Unsqueeze", facts=Facts(reshapes=True))
def unsqueeze(call: Call) -> Tensor:
    """With dimensions of extent 1 at the named places of the result."""
    X = call.tensor(0)
    axes = _axes_operand(call)
    if axes is None:
        raise NotCompilableError("Unsqueeze has no axes")
    ndim = X.ndim + len(axes)
    added = axes_of(call, axes, ndim)
    extents = iter(X.shape)
    return reshaped(call, X, [1 if d in added else next(extents) for d in range(ndim)])
