"""The primitives that change what stages compute: algorithm, inline, cache_read, cache_write, pack and rfactor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.errors import ExpressionError, ScheduleError
from tilewright.schedule.bounds import enclosing_loops
from tilewright.schedule.loop import Fuse, Loop, Split
from tilewright.schedule.stage import Layout, Stage
from tilewright.schedule.values import divides, global_values, loop_value, loop_var, number, plus, times
from tilewright.te import (
    DTYPES,
    MAX_DEPTH,
    Axis,
    Binary,
    Const,
    Expr,
    Read,
    Reduce,
    Select,
    Tensor,
    Var,
    collect_reads,
    format_expr,
    merged,
    replace_reads,
    substitute,
    visit,
)
from tilewright.te.algorithms import rewritten
from tilewright.te.index import Intervals, is_anywhere

if TYPE_CHECKING:
    from tilewright.schedule.schedule import Schedule

# Of an expression with more reads, parts that are the same are made one: each would be copied wherever it is inlined.
_MANY_READS = 64


def identity(op: str, dtype: str) -> Const:
    """The value that changes nothing when `op` combines it with another."""
    if op in ("sum", "prod"):
        one = op == "prod"
        return Const(dtype, float(one) if DTYPES[dtype].kind == "float" else int(one))
    low, high = _limits(dtype)
    return Const(dtype, low if op in ("max", "argmax") else high)


def _limits(dtype: str) -> tuple[float, float]:
    kind = DTYPES[dtype]
    if kind.kind == "float":
        return float("-inf"), float("inf")
    if kind.kind == "int":
        return -(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1
    return 0, 2**kind.bits - 1


def accumulator_dtype(dtype: str) -> str:
    """Half types are stored, and computed in float32."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def _copies(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    return tuple(Axis("int64", axis.name, axis.extent, axis.is_reduce) for axis in axes)


def inline(schedule: Schedule, stage: Stage) -> None:
    if stage.is_output:
        raise ScheduleError(f"{stage.name} is an output: it must be stored, it cannot be inlined")
    if stage.reduction is not None:
        raise ScheduleError(f"{stage.name} is a reduction: it cannot be inlined; use compute_at")
    if stage.packs is not None:
        raise ScheduleError(f"{stage.name} is a packed copy: inlining it would undo the packing")
    if stage.packed_by:
        raise ScheduleError(f"{', '.join(stage.packed_by)} follows the loops of {stage.name}; inline before packing")
    attached = [s.name for loop in stage.leaves for s in schedule.attached_at(loop)]
    if attached:
        raise ScheduleError(f"stage {attached[0]} is attached to {stage.name}; move it with compute_root first")

    expanded: dict[tuple[Expr, ...], Expr] = {}

    def expand(read: Read) -> Expr | None:
        if read.tensor is not stage.tensor:
            return None
        # Reads of one element share one node, so that a chain of stages that read twice does not double each time.
        if read.indices not in expanded:
            indices = map(_clamped_if_read, read.indices, stage.tensor.shape)
            expanded[read.indices] = substitute(stage.body, dict(zip(stage.axes, indices, strict=True)))
        return expanded[read.indices]

    for consumer in schedule.consumers(stage):
        if consumer.packs is stage.tensor:
            raise ScheduleError(f"{consumer.name} is packed from {stage.name}; inline before packing")
        if (depth := inlined_depth(consumer, stage)) > MAX_DEPTH:
            raise ScheduleError(
                f"the expression of {consumer.name} would be {depth} deep with that of {stage.name} in it,"
                f" and {MAX_DEPTH} at most are allowed; store {stage.name}"
            )
        _replace_body(consumer, replace_reads(consumer.body, expand))
        if len(consumer.reads) > _MANY_READS:
            _replace_body(consumer, merged(consumer.body))
    stage.is_inlined = True
    stage.attach_loop = None


def inlined_depth(consumer: Stage, stage: Stage) -> int:
    """How deep the expression of a consumer is, at most, with that of the stage in the place of a read."""
    return consumer.depth + stage.depth - 2


def _clamped_if_read(index: Expr, extent: int) -> Expr:
    """The index of an element that is there: data may say any other, which a read moves to the nearest.

    What stands in the place of the read has other bounds, or none.
    """
    if not collect_reads(index):
        return index
    last = Binary("int64", "min", index, Const("int64", extent - 1))
    return Binary("int64", "max", last, Const("int64", 0))


def _replace_body(stage: Stage, body: Expr) -> None:
    stage.set_body(body, stage.axes)


def use_algorithm(schedule: Schedule, stage: Stage, name: str) -> None:
    if schedule.steps:
        raise ScheduleError("an algorithm is chosen before anything else; make it the first step")
    try:
        made = rewritten(stage.tensor, name)
    except ExpressionError as error:
        raise ScheduleError(str(error)) from None
    for tensor in made.stages:
        if tensor.name in schedule.stages:
            raise ScheduleError(f"there is a stage {tensor.name} already; give the tensors of the task other names")
        schedule.add_stage(tensor)
    stage.set_body(made.body, stage.axes)
    stage.leaves = stage.root_loops
    for tensor in made.ahead:
        new, source = schedule[tensor], schedule[tensor].reads[0].tensor
        readers = [reader for reader in schedule if any(read.tensor is source for read in reader.reads)]
        if readers == [new]:  # a constant that others read, too, stays as it is
            new.packs = source


def cache_read(schedule: Schedule, source: Stage, readers: Sequence[Stage]) -> Stage:
    chosen = list(readers) or schedule.consumers(source)
    for reader in chosen:
        if not any(read.tensor is source.tensor for read in reader.reads):
            raise _not_a_reader(schedule, source, reader)
    tensor = source.tensor
    axes = _axes_of(tensor)
    body = Read(tensor.dtype, tensor, axes)
    copy = Tensor(schedule.unique_name(f"{tensor.name}.cache"), tensor.shape, tensor.dtype, axes, body)
    for reader in chosen:
        _replace_body(reader, replace_reads(reader.body, lambda read: _redirect(read, tensor, copy)))
    return schedule.add_stage(copy)


def _not_a_reader(schedule: Schedule, source: Stage, reader: Stage) -> ScheduleError:
    names = ", ".join(stage.name for stage in schedule.consumers(source)) or "none"
    return ScheduleError(f"{reader.name} does not read {source.name}; its readers are: {names}")


def _axes_of(tensor: Tensor) -> tuple[Axis, ...]:
    if tensor.axes:
        return _copies(tensor.axes)
    return tuple(Axis("int64", f"i{d}", extent, False) for d, extent in enumerate(tensor.shape))


def _redirect(read: Read, old: Tensor, new: Tensor) -> Expr | None:
    return Read(new.dtype, new, read.indices) if read.tensor is old else None


def cache_write(schedule: Schedule, stage: Stage) -> Stage:
    if stage.packed_by:
        raise ScheduleError(f"{', '.join(stage.packed_by)} follows the loops of {stage.name}; cache before packing")
    for loop in stage.leaves:
        if loop.is_reduce and schedule.attached_at(loop):
            raise ScheduleError(
                f"stages are attached at loop {loop.name}, which moves into the cache; attach them later"
            )
    axes = _copies(stage.axes)
    body = substitute(stage.body, dict(zip(stage.axes, axes, strict=True)))
    dtype = stage.tensor.dtype if isinstance(body, Reduce) and body.op.startswith("arg") else body.dtype
    cache = Tensor(
        schedule.unique_name(f"{stage.name}.cache"), stage.tensor.shape, accumulator_dtype(dtype), axes, body
    )
    made = schedule.add_stage(cache)
    made.computes_packed = stage.computes_packed or stage.packs is not None
    _drop_reduction_loops(stage)
    stage.set_body(Read(cache.dtype, cache, stage.axes), stage.axes)
    return made


def _drop_reduction_loops(stage: Stage) -> None:
    """Forget the loops of a reduction that has moved to another stage."""
    stage.relations = tuple(r for r in stage.relations if not (r.parent if isinstance(r, Split) else r.first).is_reduce)
    stage.leaves = tuple(leaf for leaf in stage.leaves if not leaf.is_reduce)
    stage.annotations = {leaf: a for leaf, a in stage.annotations.items() if not leaf.is_reduce}
    stage.pragmas = {leaf: p for leaf, p in stage.pragmas.items() if not leaf.is_reduce}


def places(reader: Stage, tensor: Tensor) -> list[list[Read]]:
    """The places where a stage reads a tensor, each with the reads of it."""
    found: dict[tuple[str, ...], list[Read]] = {}
    for read in reader.reads:
        if read.tensor is tensor:
            found.setdefault(tuple(map(format_expr, read.indices)), []).append(read)
    return list(found.values())


def _reads_of_place(schedule: Schedule, source: Stage, reader: Stage, place: int | None) -> list[Read]:
    """The reads that `pack` replaces."""
    found = places(reader, source.tensor)
    if not found:
        raise _not_a_reader(schedule, source, reader)
    if place is None and len(found) > 1:
        raise ScheduleError(
            f"{reader.name} reads {source.name} in several places; pack needs a single one: "
            f"give its number, from 0 to {len(found) - 1}, as place"
        )
    number = 0 if place is None else place
    if number not in range(len(found)):
        raise ScheduleError(
            f"{reader.name} reads {source.name} in {len(found)} places; place must be a number from 0 to "
            f"{len(found) - 1}, got {place!r}"
        )
    reads = found[int(number)]
    if any(collect_reads(index) for index in reads[0].indices):
        raise ScheduleError(
            f"{reader.name} reads `{reads[0]}` at an index from memory; pack needs an index of loops only"
        )
    return reads


def pack(schedule: Schedule, source: Stage, reader: Stage, place: int | None = None) -> Stage:
    reads = _reads_of_place(schedule, source, reader, place)
    leaves = (*enclosing_loops(reader), *reader.leaves)
    around = [part for loop in leaves for part in _parts(loop)]
    values = global_values(schedule, reader, loop_var, {part: part.var for part in around})
    # The read of a packed source, or where an attached reader begins, may name fused loops themselves.
    from_parts: dict[Var, Expr] = {loop.var: _from_parts(schedule, loop) for loop in leaves}
    indices = [substitute(substitute(index, values), from_parts) for index in reads[0].indices]
    limited = [dim for dim, index in enumerate(reads[0].indices) if _is_limited(index)]
    folded = [dim for dim, index in enumerate(indices) if dim in limited or _is_divided(index)]
    used: set[Var] = set()
    for dim, index in enumerate(indices):
        if dim not in folded:
            visit(index, lambda e: used.add(e) if isinstance(e, Var) else None)
    loops = [loop for loop in around if loop.var in used]
    loop_axes = _layout_axes(schedule, loops)
    renamed: dict[Var, Expr] = {loop.var: axis for loop, axis in zip(loops, loop_axes, strict=True)}
    whole = {dim: Axis("int64", f"{source.name}.{dim}", source.tensor.shape[dim], False) for dim in folded}
    body = _guarded_read(source.tensor, [whole.get(dim, substitute(e, renamed)) for dim, e in enumerate(indices)])
    name = schedule.unique_name(f"{source.name}.pack")
    at = 0 if folded == limited else _before_last_reduction(loops)
    axes = (*loop_axes[:at], *whole.values(), *loop_axes[at:])
    packed = Tensor(name, tuple(axis.extent for axis in axes), source.tensor.dtype, axes, body)
    layout: list[Expr] = [loop_value(loop.stage, loop, schedule.extents, loop_var) for loop in loops]
    layout[at:at] = [reads[0].indices[dim] for dim in folded]
    _replace_body(
        reader,
        replace_reads(
            reader.body,
            lambda read: Read(packed.dtype, packed, tuple(layout)) if read in reads else None,
        ),
    )
    for stage in {loop.stage for loop in loops} | {reader}:
        stage.packed_by = (*stage.packed_by, name)
    made = schedule.add_stage(packed)
    made.packs = source.tensor
    leaf_values = global_values(schedule, reader, loop_var)
    found = tuple(substitute(index, leaf_values) for index in reads[0].indices)
    made.layout = Layout(reader, reads[0].indices, tuple(zip(loops, loop_axes, strict=True)), found)
    return made


def _is_limited(index: Expr) -> bool:
    """Whether the last values of an axis read the same element: such a dimension is kept whole, before all others."""
    return isinstance(index, Binary) and index.op == "min" and isinstance(index.a, Axis) and isinstance(index.b, Const)


def _is_divided(index: Expr) -> bool:
    """Whether loops come back to the same elements, by a division: such a dimension is kept whole."""
    found = False

    def check(e: Expr) -> None:
        nonlocal found
        found = found or (isinstance(e, Binary) and e.op in ("mod", "floordiv"))

    visit(index, check)
    return found


def _before_last_reduction(loops: Sequence[Loop]) -> int:
    """Where the dimensions that are kept whole stand among the loops of a layout."""
    reductions = [n for n, loop in enumerate(loops) if loop.is_reduce]
    return reductions[-1] if reductions else max(0, len(loops) - 1)


def _parts(loop: Loop) -> list[Loop]:
    """The loops that a fused loop was made of, so that only those that matter take part in a layout."""
    for relation in loop.stage.relations:
        if isinstance(relation, Fuse) and relation.fused is loop:
            return [*_parts(relation.first), *_parts(relation.second)]
    return [loop]


def _from_parts(schedule: Schedule, loop: Loop) -> Expr:
    """The value of a fused loop from those of the loops it was made of."""
    for relation in loop.stage.relations:
        if isinstance(relation, Fuse) and relation.fused is loop:
            first, second = _from_parts(schedule, relation.first), _from_parts(schedule, relation.second)
            return plus(times(first, schedule.extents[relation.second]), second)
    return loop.var


def _layout_axes(schedule: Schedule, loops: list[Loop]) -> tuple[Axis, ...]:
    names = [loop.name for loop in loops]
    return tuple(
        Axis(
            "int64",
            loop.name if names.count(loop.name) == 1 else f"{loop.stage.name}.{loop.name}",
            schedule.extents[loop],  # type: ignore[arg-type]  # a population's extent is an array
            False,
        )
        for loop in loops
    )


def _guarded_read(tensor: Tensor, indices: list[Expr]) -> Expr:
    """The element, or zero where an index may leave the tensor (the end of a reduction that does not divide)."""
    guard: Expr | None = None
    for index, dim in zip(indices, tensor.shape, strict=True):
        reached = Intervals().of(index)
        if reached is None or is_anywhere(reached.low < 0):
            guard = _and(guard, Binary("bool", "ge", index, Const("int64", 0)))
        if reached is None or is_anywhere(reached.high >= dim):
            guard = _and(guard, Binary("bool", "lt", index, Const("int64", dim)))
    read = Read(tensor.dtype, tensor, tuple(indices))
    return read if guard is None else Select(tensor.dtype, guard, read, identity("sum", tensor.dtype))


def _and(a: Expr | None, b: Expr) -> Expr:
    return b if a is None else Binary("bool", "and", a, b)


def reduction_guard(stage: Stage, schedule: Schedule) -> Expr | None:
    """What holds inside the reduction where a split of it does not divide; None where every split does."""
    guard: Expr | None = None
    for relation in stage.relations:
        if isinstance(relation, Split) and relation.parent.is_reduce:
            whole = schedule.extents[relation.parent]
            if not divides(schedule.extents[relation.inner], whole):
                value = loop_value(stage, relation.parent, schedule.extents, loop_var)
                guard = _and(guard, Binary("bool", "lt", value, number(whole)))
    return guard


def rfactor(schedule: Schedule, stage: Stage, loop: Loop) -> Stage:
    reduction = stage.reduction
    if reduction is None or not loop.is_reduce:
        raise ScheduleError(f"rfactor needs a reduction loop, {loop.name} of {stage.name} is spatial")
    if reduction.op.startswith("arg"):
        raise ScheduleError(
            f"{stage.name} is an {reduction.op}: its parts cannot be combined; rfactor takes sum, prod, max, min"
        )
    for leaf in stage.leaves:
        if leaf.is_reduce and schedule.attached_at(leaf):
            raise ScheduleError(f"stages are attached at loop {leaf.name} of {stage.name}; attach them after rfactor")
    rest = [leaf for leaf in stage.leaves if leaf.is_reduce and leaf is not loop]
    spatial = _copies(stage.axes)
    extents = schedule.extents
    factor = Axis("int64", loop.name, extents[loop], False)  # type: ignore[arg-type]
    kept = tuple(Axis("int64", leaf.name, extents[leaf], True) for leaf in rest)  # type: ignore[arg-type]
    renamed: dict[Var, Expr] = {leaf.var: axis for leaf, axis in zip(rest, kept, strict=True)}
    renamed[loop.var] = factor
    values: dict[Var, Expr] = {}
    for axis in reduction.axes:
        root = stage.loop_of_axis[axis]
        values[axis] = substitute(loop_value(stage, root, extents, loop_var), renamed)
    values.update(zip(stage.axes, spatial, strict=True))
    value = substitute(reduction.values[0], values)
    guard = reduction_guard(stage, schedule)
    if guard is not None:
        value = Select(value.dtype, substitute(guard, renamed), value, identity(reduction.op, value.dtype))
    dtype = accumulator_dtype(reduction.dtype)
    body: Expr = Reduce(dtype, reduction.op, (value,), kept) if kept else value
    shape = (*stage.tensor.shape, factor.extent)
    partial = Tensor(schedule.unique_name(f"{stage.name}.rf"), shape, dtype, (*spatial, factor), body)
    made = schedule.add_stage(partial)

    last = Axis("int64", loop.name, factor.extent, True)
    at = next(n for n, leaf in enumerate(stage.leaves) if leaf.is_reduce)
    stage.set_body(
        Reduce(reduction.dtype, reduction.op, (Read(dtype, partial, (*stage.axes, last)),), (last,)),
        stage.axes,
    )
    _drop_reduction_loops(stage)
    stage.leaves = (*stage.leaves[:at], stage.root_loops[-1], *stage.leaves[at:])
    return made
