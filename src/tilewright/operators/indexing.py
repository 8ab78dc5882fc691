"""Operators whose places are data: gathers, and one-hot vectors. An index below zero counts from the end.

An index outside its dimension is an error in ONNX, and here where it is known ahead; where it is computed, a kernel
reads the nearest element instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright import te
from tilewright.operators.movement import affine
from tilewright.operators.operands import known, own_axis, replaced, required_integer
from tilewright.operators.registry import Call, Facts, MisfitError, NotCompilableError, operator
from tilewright.te import Expr, Tensor


def from_front(index: Expr, extent: int) -> Expr:
    """An index counted from the front."""
    position = te.cast(index, "int64")
    return te.select(position < 0, position + extent, position)


def check_indices(call: Call, position: int, extents: Sequence[int]) -> None:
    """Indices that are known ahead are inside of their dimension; of tuples, each has one of its own."""
    value = known(call, position)
    if value is None or value.size == 0:
        return
    bounds = np.array(extents, np.int64)
    indices = np.atleast_1d(value).astype(np.int64)
    is_outside = (indices < -bounds) | (indices >= bounds)
    if is_outside.any():
        raise MisfitError(f"the index {indices[is_outside][0]} is outside of {' x '.join(map(str, extents))} elements")


@operator("Gather", facts=Facts(axis=0))
def gather(call: Call) -> Tensor:
    """Slices along an axis, in the order of the indices."""
    X, I = call.tensor(0), call.tensor(1)  # noqa: E741
    axis = own_axis(call, X.ndim)
    check_indices(call, 1, X.shape[axis : axis + 1])
    progression = _known_progression(call, X.shape[axis])

    def read(*i: Expr) -> Expr:
        place = i[axis : axis + I.ndim]
        if progression is None:
            index: te.ExprLike = from_front(I[place], X.shape[axis])
        else:
            index = affine(progression, place[0]) if I.ndim else progression.start
        return X[(*i[:axis], index, *i[axis + I.ndim :])]

    return te.compute((*X.shape[:axis], *I.shape, *X.shape[axis + 1 :]), read, call.name())


def _known_progression(call: Call, extent: int) -> range | None:
    """Indices that are known ahead and evenly spaced, so that they need not be read."""
    value = known(call, 1)
    if value is None or value.ndim > 1:
        return None
    indices = [int(x) % extent for x in value.reshape(-1)]
    step = indices[1] - indices[0] if len(indices) > 1 else 1
    if step == 0:
        return None
    progression = range(indices[0], indices[0] + step * len(indices), step)
    return progression if list(progression) == indices else None


@operator("GatherElements", facts=Facts(axis=0))
def gather_elements(call: Call) -> Tensor:
    """Elements along an axis, each by its own index."""
    X, I = call.tensor(0), call.tensor(1)  # noqa: E741
    axis = own_axis(call, X.ndim)
    check_indices(call, 1, X.shape[axis : axis + 1])
    return te.compute(I.shape, lambda *i: X[replaced(i, axis, from_front(I[i], X.shape[axis]))], call.name())


@operator("GatherND")
def gather_nd(call: Call) -> Tensor:
    """Slices by tuples of indices of the first dimensions that are no batch dimensions."""
    X, I = call.tensor(0), call.tensor(1)  # noqa: E741
    batch = call.attribute("batch_dims", 0)
    if I.ndim == 0 or batch + I.shape[-1] > X.ndim or batch >= I.ndim:
        raise NotCompilableError(f"GatherND cannot index {X.shape} by {I.shape} after {batch} batch dimensions")
    *outer, num_indices = I.shape
    inner = X.shape[batch + num_indices :]
    check_indices(call, 1, X.shape[batch : batch + num_indices])

    def read(*i: Expr) -> Expr:
        place = i[: len(outer)]
        found = [from_front(I[(*place, k)], X.shape[batch + k]) for k in range(num_indices)]
        return X[(*i[:batch], *found, *i[len(outer) :])]

    return te.compute((*outer, *inner), read, call.name())


@operator("OneHot", facts=Facts(axis=-1))
def one_hot(call: Call) -> Tensor:
    """`values[1]` at the index, `values[0]` elsewhere; an index outside of the depth is nowhere."""
    I, values = call.tensor(0), call.tensor(2)  # noqa: E741
    depth = required_integer(call, 1)
    axis = own_axis(call, I.ndim + 1)

    def choose(*i: Expr) -> Expr:
        hot = from_front(I[(*i[:axis], *i[axis + 1 :])], depth)
        return te.select(te.equal(hot, i[axis]), values[1], values[0])

    return te.compute((*I.shape[:axis], depth, *I.shape[axis:]), choose, call.name())


@operator("TensorScatter", facts=Facts(axis=-2))
def tensor_scatter(call: Call) -> Tensor:
    """A cache with an update written at each sequence's place, beyond the end or around it."""
    cache, update = call.tensor(0), call.tensor(1)
    starts = call.optional(2)
    axis = own_axis(call, cache.ndim)
    extent, length = cache.shape[axis], update.shape[axis]
    is_circular = call.attribute("mode", "linear") == "circular"

    def write(*i: Expr) -> Expr:
        start = te.constant(0, "int64") if starts is None else te.cast(starts[i[0]], "int64")
        place = (i[axis] - start) % extent if is_circular else i[axis] - start
        return te.select((place >= 0) & (place < length), update[replaced(i, axis, place)], cache[i])

    return te.compute(cache.shape, write, call.name())
