"""What the partition asks of stages: how one reads another, and what its elements cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tilewright.te import (
    COSTLY_FUNCTIONS,
    Axis,
    Binary,
    Const,
    Expr,
    Read,
    Reduce,
    Select,
    Tensor,
    Unary,
    Var,
    collect_reads,
    memory_step,
    visit,
)


def is_at_own_place(read: Read, reader: Tensor) -> bool:
    """Whether the reader takes the element of its own place, from a tensor of its own shape."""
    return read.indices == reader.axes and read.tensor.shape == reader.shape


def reads_each_once(reads: Sequence[Read], reader: Tensor) -> bool:
    """Whether no element is read by two points of the reader, nor at two places by one.

    So it is where all reads are at one place, and every axis is an index there, moved at most.
    """
    if any(read.indices != reads[0].indices for read in reads):
        return False
    used = {_moved_variable(index) for read in reads[:1] for index in read.indices}
    return all(axis in used for axis in reader.axes if axis.extent > 1)


def _moved_variable(index: Expr) -> Expr | None:
    """The variable of `v`, `v + c` or `v - c`."""
    if isinstance(index, Binary) and index.op in ("add", "sub") and isinstance(index.b, Const):
        index = index.a
    return index if isinstance(index, Var) else None


def permutation(read: Read, axes: Sequence[Axis]) -> tuple[int, ...] | None:
    """For each of `axes` the dimension of the tensor that it is the index of; None where it is not one for one."""
    if len(read.indices) != len(axes):
        return None
    order = tuple(_position(axis, read.indices) for axis in axes)
    return order if sorted(order) == list(range(len(axes))) else None


def _position(axis: Axis, indices: Sequence[Expr]) -> int:
    return next((d for d, index in enumerate(indices) if index is axis), -1)


def keeps_lanes(order: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether the last dimension longer than one stays the last in this order."""
    longer = [d for d, extent in enumerate(shape) if extent > 1]
    return not longer or [d for d in order if d in longer][-1] == longer[-1]


def common_prefix(read: Read, axes: Sequence[Axis]) -> int:
    """How many leading indices are the leading axes themselves."""
    length = 0
    for index, axis in zip(read.indices, axes, strict=False):
        if index is not axis:
            break
        length += 1
    return length


def is_affine_move(body: Expr) -> bool:
    """Whether the body only reads an element from somewhere else, at a place that loops can step through."""
    return isinstance(body, Read) and all(map(_is_affine, body.indices))


def _is_affine(index: Expr) -> bool:
    if isinstance(index, Var | Const):
        return True
    if not isinstance(index, Binary) or index.op not in ("add", "sub", "mul"):
        return False
    if index.op == "mul" and not isinstance(index.a, Const) and not isinstance(index.b, Const):
        return False
    return _is_affine(index.a) and _is_affine(index.b)


def is_same_bytes(tensor: Tensor) -> bool:
    """Whether a tensor is an input, or one under another shape that leaves its elements in their order."""
    body = tensor.body
    if body is None:
        return True
    if (
        not isinstance(body, Read)
        or not body.tensor.is_placeholder
        or math.prod(body.tensor.shape) != math.prod(tensor.shape)
    ):
        return False
    indices = [index for index, extent in zip(body.indices, body.tensor.shape, strict=True) if extent > 1]
    return indices == [axis for axis in tensor.axes if axis.extent > 1]


def is_padding(body: Expr) -> bool:
    """Whether the body moves elements and fills the rest with a number."""
    return isinstance(body, Select) and is_affine_move(body.a) and isinstance(body.b, Const)


def is_costly(body: Expr) -> bool:
    """Whether computing it twice would cost: it has a function, or a place that depends on data."""
    found = False

    def check(e: Expr) -> None:
        nonlocal found
        found = found or (isinstance(e, Unary | Binary) and e.op in COSTLY_FUNCTIONS) or isinstance(e, Select)

    visit(body, check)
    return found or any(not _is_affine(index) for read in collect_reads(body) for index in read.indices)


def num_cases(stages: Iterable[Tensor]) -> int:
    """How often the stages choose by the place of an element, as padding and joined tensors do."""
    found: set[Expr] = set()

    def check(e: Expr) -> None:
        if isinstance(e, Select) and not collect_reads(e.cond):
            found.add(e)

    for stage in stages:
        if stage.body is not None:
            visit(stage.body, check)
    return len(found)


def has_data_reuse(stage: Tensor) -> bool:
    """A reduction that reads some tensor again for every value of one of its axes, as products do."""
    body = stage.body
    if not isinstance(body, Reduce) or not any(axis.extent > 1 for axis in body.axes):
        return False
    return any(_reused(stage, read) for read in collect_reads(body))


def _reused(stage: Tensor, read: Read) -> bool:
    used: set[Expr] = set()
    for index in read.indices:
        visit(index, used.add)
    return any(axis not in used for axis in stage.axes if axis.extent > 1)


def has_packable_lanes(stage: Tensor) -> bool:
    """Whether vectors along the last axis of a reduction read what lies together in memory, or can be made to.

    An input that is read again for other axes can be copied in the order of the vectors; another cannot.
    """
    lanes = [axis for axis in stage.axes if axis.extent > 1]
    if not lanes or stage.body is None:
        return True
    for read in collect_reads(stage.body):
        step = memory_step(read, lanes[-1])
        if step not in (0, 1) and not (read.tensor.is_placeholder and _reused(stage, read)):
            return False
    return True
