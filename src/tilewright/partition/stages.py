"""The stages of a kernel as the space's rules take them best: as few as possible, results at their own place.

What nodes express one by one is brought into one form here. An elementwise stage goes into the stage that reads it, so
that a reduction is followed by one stage that the rules tile along with it. A transposition of a reduction's results
becomes the order of its loops. Names depend on the structure alone, so that the records of a task serve every task
with its hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from tilewright.partition.stage_analysis import is_affine_move, is_padding, keeps_lanes, permutation, reads_each_once
from tilewright.te import (
    Axis,
    Binary,
    Const,
    Expr,
    Read,
    Reduce,
    Tensor,
    children,
    collect_reads,
    renamed,
    replace_reads,
    rewrite,
    substitute,
    topological_order,
)

# Where the operands of a sum come from, in their order.
_COMPUTED, _INPUT, _NUMBER = 0, 1, 3


def merge(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The same tensors from fewer stages: see above."""
    return with_fewest_stages(inlined(outputs))


def with_fewest_stages(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """What `merge` does after `inlined`."""
    return _without_copies(_with_permuted_reductions(_with_operands_in_order(outputs)))


# --- elementwise stages and movements --------------------------------------------------------------------------------


def inlined(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The same tensors, with elementwise stages and movements written into the stages that read them.

    Readers come first, so that a stage meets its readers as they will be.
    """
    stages = [t for t in topological_order(outputs) if t.body is not None]
    bodies: dict[Tensor, Expr] = {t: _at_own_axes(t.body, t.axes) for t in stages if t.body is not None}
    for stage in reversed(stages):
        if stage in outputs:
            continue
        readers = {t: reads for t, body in bodies.items() if (reads := _reads_of(body, stage))}
        if _goes_into(stage, bodies[stage], readers, bodies):
            for reader in readers:
                bodies[reader] = _at_own_axes(_expand(bodies[reader], stage, bodies[stage]), reader.axes)
            del bodies[stage]
    return _rebuilt(outputs, bodies)


def _at_own_axes(body: Expr, axes: Sequence[Axis]) -> Expr:
    """Dimensions of one element read at the axis of their place if that has one element too, and not at 0."""

    def moved(read: Read) -> Expr | None:
        if len(read.indices) != len(axes):
            return None
        indices = tuple(
            axis if extent == axis.extent == 1 else index
            for index, axis, extent in zip(read.indices, axes, read.tensor.shape, strict=True)
        )
        return None if indices == read.indices else Read(read.dtype, read.tensor, indices)

    return replace_reads(body, moved)


def _goes_into(stage: Tensor, body: Expr, readers: dict[Tensor, list[Read]], bodies: dict[Tensor, Expr]) -> bool:
    """Whether the stage is written into its readers: it costs nothing there, or no more than by itself."""
    if isinstance(body, Reduce):
        return False
    if isinstance(body, Const) or is_affine_move(body):
        return True
    if len(readers) != 1:
        return False
    ((reader, reads),) = readers.items()
    if isinstance(bodies[reader], Reduce) or is_padding(bodies[reader]):
        return False
    return reads_each_once(reads, reader)


def _reads_of(body: Expr, tensor: Tensor) -> list[Read]:
    return [read for read in collect_reads(body) if read.tensor is tensor]


def _expand(body: Expr, stage: Tensor, value: Expr) -> Expr:
    """`body` with `value` in the place of reads of `stage`; reads at one place share one node."""
    made: dict[tuple[int, ...], Expr] = {}

    def expand(read: Read) -> Expr | None:
        if read.tensor is not stage:
            return None
        place = tuple(map(id, read.indices))
        if place not in made:
            made[place] = substitute(value, dict(zip(stage.axes, read.indices, strict=True)))
        return made[place]

    return replace_reads(body, expand)


def _rebuilt(outputs: Sequence[Tensor], bodies: dict[Tensor, Expr]) -> tuple[Tensor, ...]:
    """The outputs with these bodies, producers rebuilt before their readers."""
    made: dict[Tensor, Tensor] = {}

    def build(tensor: Tensor) -> Tensor:
        if tensor not in made:
            body = bodies.get(tensor)
            if body is None:
                made[tensor] = tensor
            else:
                new = _with_tensors(body, {read.tensor: build(read.tensor) for read in collect_reads(body)})
                made[tensor] = Tensor(tensor.name, tensor.shape, tensor.dtype, tensor.axes, new)
        return made[tensor]

    return tuple(build(tensor) for tensor in outputs)


def _with_tensors(body: Expr, tensors: dict[Tensor, Tensor]) -> Expr:
    return replace_reads(body, lambda read: Read(read.dtype, tensors[read.tensor], read.indices))


# --- one order of operands --------------------------------------------------------------------------------------------


def _with_operands_in_order(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Sums and products with what is computed first and what is constant last, since networks write both orders."""
    stages = [t for t in topological_order(outputs) if t.body is not None]
    return _rebuilt(outputs, {t: _in_order(t.body) for t in stages if t.body is not None})


def _in_order(body: Expr) -> Expr:
    ranks: dict[Expr, int] = {}

    def order(e: Expr) -> Expr | None:
        ranks[e] = min((ranks[x] for x in children(e)), default=_NUMBER)
        if isinstance(e, Read):
            ranks[e] = _INPUT + e.tensor.is_constant if e.tensor.is_placeholder else _COMPUTED
        is_free = isinstance(e, Binary) and e.op in ("add", "mul")
        if isinstance(e, Binary) and is_free and ranks[e.b] < ranks[e.a]:
            swapped = Binary(e.dtype, e.op, e.b, e.a)
            ranks[swapped] = ranks[e]
            return swapped
        return None

    return rewrite(body, order)


# --- transposed results ----------------------------------------------------------------------------------------------


def _with_permuted_reductions(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Reductions with their axes in the order in which their one reader takes them, if the last stays the last."""
    stages = [t for t in topological_order(outputs) if t.body is not None]
    made: dict[Tensor, Tensor] = {}
    orders: dict[Tensor, tuple[int, ...]] = {}

    def redirect(read: Read) -> Expr | None:
        new = made.get(read.tensor)
        if new is None:
            return None
        order = orders.get(read.tensor)
        indices = read.indices if order is None else tuple(read.indices[axis] for axis in order)
        return Read(new.dtype, new, indices)

    for stage in stages:
        assert stage.body is not None
        order = None if stage in outputs else _read_order(stage, stages)
        axes, body = stage.axes, replace_reads(stage.body, redirect)
        if order is not None:
            orders[stage] = order
            axes = tuple(stage.axes[axis] for axis in order)
        made[stage] = Tensor(stage.name, tuple(axis.extent for axis in axes), stage.dtype, axes, body)
    return tuple(made.get(tensor, tensor) for tensor in outputs)


def _read_order(stage: Tensor, stages: Sequence[Tensor]) -> tuple[int, ...] | None:
    """The order of the stage's axes in which its one reader runs; None where it is not another one, or no order."""
    if not isinstance(stage.body, Reduce):
        return None
    readers = [t for t in stages if t.body is not None and _reads_of(t.body, stage)]
    if len(readers) != 1 or isinstance(readers[0].body, Reduce):
        return None
    (reader,) = readers
    assert reader.body is not None
    orders = {permutation(read, reader.axes) for read in _reads_of(reader.body, stage)}
    if len(orders) != 1:
        return None
    (order,) = orders
    if order is None or order == tuple(sorted(order)):
        return None
    return order if keeps_lanes(order, stage.shape) else None


def _without_copies(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """An output that only copies a stage of this kernel is that stage."""
    found: list[Tensor] = []
    for tensor in outputs:
        body = tensor.body
        is_copy = isinstance(body, Read) and body.indices == tensor.axes and body.tensor.shape == tensor.shape
        source = body.tensor if is_copy and isinstance(body, Read) else tensor
        found.append(tensor if source.is_placeholder or source in (*outputs, *found) else source)
    return tuple(found)


# --- names -----------------------------------------------------------------------------------------------------------


def with_structural_names(outputs: Sequence[Tensor]) -> tuple[dict[Tensor, Tensor], tuple[Tensor, ...]]:
    """The placeholders and the outputs under names that follow from the computation alone.

    The first result gives the new placeholder of each old one, in the order in which they are first read.
    """
    made: dict[Tensor, Tensor] = {}
    counters = {name: count() for name in ("x", "w", "pad", "move", "map", "sum", "prod", "max", "min", "arg")}
    for tensor in topological_order(outputs):
        role = _role(tensor)
        made[tensor] = renamed(tensor, [f"{role}{next(counters[role])}", *_axis_names(tensor)], made)
    placeholders = {old: new for old, new in made.items() if old.is_placeholder}
    return placeholders, tuple(made[tensor] for tensor in outputs)


def _role(tensor: Tensor) -> str:
    body = tensor.body
    if body is None:
        return "w" if tensor.is_constant else "x"
    if isinstance(body, Reduce):
        return body.op[:3] if body.op.startswith("arg") else body.op
    if is_padding(body):
        return "pad"
    return "move" if isinstance(body, Read) else "map"


def _axis_names(tensor: Tensor) -> list[str]:
    over = tensor.body.axes if isinstance(tensor.body, Reduce) else ()
    return [*(f"i{d}" for d in range(len(tensor.axes))), *(f"r{d}" for d in range(len(over)))]
