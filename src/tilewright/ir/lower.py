"""From a schedule to loop nests. `lower` lists the passes in order; `StageLowering` makes the nest of one stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import LoweringError
from tilewright.ir.expression import ExpressionLowering
from tilewright.ir.lanes import private_lanes
from tilewright.ir.loop_cutting import cut_loops
from tilewright.ir.nest import INPUT, LOCAL, OUTPUT, PACKED, Buffer, For, Load, LoopNest, Stmt, Store, Update, block
from tilewright.ir.vectors import strip_mine
from tilewright.ir.verify import verify
from tilewright.schedule import (
    FINISH,
    MOVE,
    NEST,
    START,
    VECTORIZE,
    Accumulation,
    Loop,
    Schedule,
    Stage,
    Unrolling,
    accumulator_dtype,
    buffer_dtype,
    domain_bases,
    global_values,
    identity,
    reduction_guard,
)
from tilewright.te import DTYPES, Expr, Reduce, Select, Var
from tilewright.te.index import Interval, Linear, LinearForms, const, of_atom

# A buffer that a step adds may have so many bytes, or four times those of the largest tensor of the task.
MAX_LOCAL_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Pack:
    """A constant input laid out ahead of time: its position among the inputs and the nest that packs it."""

    position: int
    packed: Buffer
    nest: LoopNest


@dataclass(frozen=True, slots=True)
class Module:
    """All that is compiled for one schedule: the kernel, and a nest for each constant that is packed."""

    kernel: LoopNest
    packs: tuple[Pack, ...]


def lower(schedule: Schedule, *, check: bool = False) -> Module:
    """Turn a concrete schedule into loop nests; with `check` the verifier runs after each pass."""
    module = build_nests(schedule)
    for run in (cut_loops, strip_mine, private_lanes):
        if check:
            _verify(module)
        module = Module(run(module.kernel), tuple(Pack(p.position, p.packed, run(p.nest)) for p in module.packs))
    if check:
        _verify(module)
    return module


def _verify(module: Module) -> None:
    for nest in (module.kernel, *(pack.nest for pack in module.packs)):
        verify(nest)


def build_nests(schedule: Schedule) -> Module:
    """The loop nests exactly as scheduled, before any simplifying pass."""
    for loop, extent in schedule.extents.items():
        if not isinstance(extent, int):
            raise LoweringError(f"loop {loop.name} has an array as its extent; lower one candidate at a time")
    return NestBuilder(schedule).module()


class NestBuilder:
    """Holds what is known of all stages while their nests are made."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.extents: dict[Loop, int] = schedule.extents  # type: ignore[assignment]  # checked by build_nests
        self.unrolling = Unrolling(schedule)
        self.ranges: dict[Var, Interval] = {}
        self.forms = LinearForms(self._var, self.ranges)
        self.buffers: dict[str, Buffer] = {}
        self.bases: dict[str, list[Linear]] = {}
        tensors = (*schedule.task.inputs, *schedule.task.stages)
        largest = max(math.prod(t.shape) * DTYPES[t.dtype].bytes for t in tensors)
        self._max_local_bytes = max(MAX_LOCAL_BYTES, 4 * largest)
        for stage in schedule.active_stages:
            for leaf in stage.leaves:
                self.ranges[leaf.var] = Interval(0, self.extents[leaf] - 1)

    def module(self) -> Module:
        task = self.schedule.task
        inputs = [Buffer(t.name, t.shape, t.dtype, INPUT) for t in task.inputs]
        for buffer in inputs:
            self.buffers[buffer.name] = buffer
        for stage in reversed(self.schedule.active_stages):
            self._place(stage)
        roots = [stage for stage in self.schedule.active_stages if stage.attach_loop is None]
        packs = [self._pack(stage) for stage in roots if self.schedule.is_argument(stage)]
        arguments = list(inputs)
        for pack in packs:
            arguments[pack.position] = pack.packed
        statements: list[Stmt] = []
        scratch: list[Buffer] = []
        for stage in roots:
            if self.schedule.is_prepacked(stage):
                continue
            statements.append(StageLowering(self, stage).nest())
            if not stage.is_output:
                scratch.append(self.buffers[stage.name])
        outputs = [self.buffers[t.name] for t in task.outputs]
        body = block(statements, tuple(scratch))
        return Module(LoopNest(task.name, (*arguments, *outputs), body), tuple(packs))

    def _pack(self, stage: Stage) -> Pack:
        """The nest that makes the stage of a constant input, with what is made on the way."""
        chain = [stage]
        while (source := chain[0].packs) is not None and not source.is_constant:
            chain.insert(0, self.schedule[source])
        assert source is not None
        position = [t.name for t in self.schedule.task.inputs].index(source.name)
        packed = self.buffers[stage.name]
        nest = block(
            [StageLowering(self, made).nest() for made in chain],
            tuple(self.buffers[made.name] for made in chain[:-1]),
        )
        name = f"{self.schedule.task.name}_pack_{position}"
        return Pack(position, packed, LoopNest(name, (self.buffers[source.name], packed), nest))

    def _place(self, stage: Stage) -> None:
        shape = tuple(self.extents[stage.loop_of_axis[axis]] for axis in stage.axes)
        scope = OUTPUT if stage.is_output else PACKED if self.schedule.is_argument(stage) else LOCAL
        self.buffers[stage.name] = buffer = Buffer(stage.name, shape, buffer_dtype(stage), scope)
        if scope != OUTPUT and buffer.num_bytes > self._max_local_bytes:
            raise LoweringError(
                f"stage {stage.name} takes {buffer.num_bytes / 2**30:.3g} GiB of memory; at most "
                f"{self._max_local_bytes / 2**30:.3g} are allowed for this task: compute it in smaller parts"
            )
        self.bases[stage.name] = [self.linear(base) for base in domain_bases(self.schedule, stage)]

    def linear(self, e: Expr) -> Linear:
        form = self.forms.of(e)
        assert form is not None, f"loop values are linear, got {e}"
        return form

    def _var(self, var: Var) -> Linear:
        return const(0) if self.ranges[var] == (0, 0) else of_atom(var)


class StageLowering:
    """Makes the loop nest of one stage, with the stages attached to it inside."""

    def __init__(self, builder: NestBuilder, stage: Stage) -> None:
        self.builder = builder
        self.stage = stage
        self.buffer = builder.buffers[stage.name]
        values = global_values(builder.schedule, stage, lambda loop: loop.var)
        self.axis_values = {axis: builder.linear(value) for axis, value in values.items()}
        bases = builder.bases[stage.name]
        self.indices = tuple(self.axis_values[axis] - base for axis, base in zip(stage.axes, bases, strict=True))
        self.expressions = ExpressionLowering(builder, {**self.axis_values})

    def nest(self) -> Stmt:
        return block(self._from(0))

    def _from(self, position: int) -> list[Stmt]:
        """The statements of the leaves from `position` on."""
        leaves = self.stage.leaves
        if position < len(leaves) and leaves[position].is_reduce:
            return self._reduction()
        if position == len(leaves):
            return [self._statement()]
        return [self._loop(leaves[position], [*self._attached(leaves[position]), *self._from(position + 1)])]

    def _statement(self) -> Stmt:
        if self.stage.reduction is not None:
            raise LoweringError(f"stage {self.stage.name} reduces over no loop")
        return Store(self.buffer, self.indices, self.expressions.lower(self.stage.body))

    def _attached(self, loop: Loop) -> list[Stmt]:
        return [StageLowering(self.builder, stage).nest() for stage in self.builder.schedule.attached_at(loop)]

    def _loop(self, loop: Loop, body: list[Stmt]) -> Stmt:
        buffers = tuple(self.builder.buffers[s.name] for s in self.builder.schedule.attached_at(loop))
        return self._for(loop, NEST, block(body, buffers))

    def _for(self, loop: Loop, place: str, body: Stmt) -> Stmt:
        """The loop around a body; nothing is left of one that runs once."""
        extent = self.builder.extents[loop]
        return body if extent == 1 else For(loop.var, 0, extent, self.builder.unrolling.kind(loop, place), body)

    # --- reductions -----------------------------------------------------------------------------------------------

    def _reduction(self) -> list[Stmt]:
        reduction = self.stage.reduction
        assert reduction is not None
        how = self.builder.unrolling.accumulations[self.stage]
        if not how.is_apart:
            first = Store(self.buffer, self.indices, self._identities(reduction)[0])
            return [self._over(how.spatial, START, first), self._updates(how, reduction, (self.buffer,), self.indices)]
        shape = tuple(self.builder.extents[loop] for loop in (*how.spatial, *how.lanes))
        tiles = tuple(
            Buffer(f"{self.stage.name}.acc{n or ''}", shape, accumulator_dtype(value.dtype), LOCAL)
            for n, value in enumerate(reduction.values)
        )
        at = tuple(self.builder.linear(loop.var) for loop in (*how.spatial, *how.lanes))
        start: list[Stmt] = [
            Store(tile, at, neutral) for tile, neutral in zip(tiles, self._identities(reduction), strict=True)
        ]
        body = [
            self._over((*how.spatial, *how.lanes), START, *start),
            self._updates(how, reduction, tiles, at),
            self._finish(how, reduction, tiles, at),
        ]
        return [block(body, tiles)]

    def _identities(self, reduction: Reduce) -> list[Expr]:
        neutral: Expr = identity(reduction.op, accumulator_dtype(reduction.values[0].dtype))
        if not reduction.op.startswith("arg"):
            return [neutral]
        return [neutral, identity("min", "int64")]

    def _updates(
        self, how: Accumulation, reduction: Reduce, targets: tuple[Buffer, ...], at: tuple[Linear, ...]
    ) -> Stmt:
        values = [self.expressions.lower(value) for value in reduction.values]
        guard = reduction_guard(self.stage, self.builder.schedule)
        if guard is not None:
            test = self.expressions.lower(guard)
            neutral = self._identities(reduction)
            values = [Select(v.dtype, test, v, n) for v, n in zip(values, neutral, strict=True)]
        outside = int(how.level) - how.position
        if outside <= 0:
            return self._around(how.inside, [Update(reduction.op, targets, at, tuple(values))])
        spatial = tuple(loop for loop in how.inside[outside:] if not loop.is_reduce)
        target = targets[0]
        shape = tuple(self.builder.extents[loop] for loop in spatial)
        tile = Buffer(f"{self.stage.name}.reg", shape, target.dtype, LOCAL)
        place = tuple(self.builder.linear(loop.var) for loop in spatial)
        body = [
            self._over(spatial, MOVE, Store(tile, place, Load(target.dtype, target, at))),
            self._around(how.inside[outside:], [Update(reduction.op, (tile,), place, tuple(values))]),
            self._over(spatial, MOVE, Store(target, at, Load(tile.dtype, tile, place))),
        ]
        return self._around(how.inside[:outside], [block(body, (tile,))])

    def _around(self, loops: tuple[Loop, ...], statements: list[Stmt]) -> Stmt:
        for loop in reversed(loops):
            statements = [self._loop(loop, [*self._attached(loop), *statements])]
        return block(statements)

    def _finish(self, how: Accumulation, reduction: Reduce, tiles: tuple[Buffer, ...], at: tuple[Linear, ...]) -> Stmt:
        result = tiles[-1]
        if not how.lanes:
            return self._over(how.spatial, FINISH, Store(self.buffer, self.indices, Load(result.dtype, result, at)))
        sums = tuple(Buffer(f"{t.name}.sum", (), t.dtype, LOCAL) for t in tiles)
        start: list[Stmt] = [Store(s, (), n) for s, n in zip(sums, self._identities(reduction), strict=True)]
        combine: Stmt = Update(reduction.op, sums, (), tuple(Load(t.dtype, t, at) for t in tiles))
        for loop in reversed(how.lanes):
            combine = For(loop.var, 0, self.builder.extents[loop], VECTORIZE, combine)
        store = Store(self.buffer, self.indices, Load(sums[-1].dtype, sums[-1], ()))
        return self._over(how.spatial, FINISH, block([*start, combine, store], sums))

    def _over(self, loops: Sequence[Loop], place: str, *statements: Stmt) -> Stmt:
        """The statements inside plain copies of the given loops."""
        nest = block(list(statements))
        for loop in reversed(loops):
            nest = self._for(loop, place, nest)
        return nest
