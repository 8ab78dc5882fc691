"""Bound inference: how far every loop runs, and which part of each attached stage its consumers need.

A needed part is a `Range` for each axis: a linear form of what is fixed where the stage is attached, plus a width.
That is int or array arithmetic and so holds for one schedule or a population; `values` turns the forms into
expressions. One recursion serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from tilewright.errors import ScheduleError
from tilewright.schedule.loop import Extent, Loop, Split
from tilewright.te import Axis, Var
from tilewright.te.index import (
    Algebra,
    Interval,
    Linear,
    Operation,
    bounds,
    ceil_div,
    combine_intervals,
    const,
    has_large_numbers,
    interval,
    is_anywhere,
    is_large,
    maximum,
    minimum,
    of_atom,
    variables,
)

if TYPE_CHECKING:
    from tilewright.schedule.schedule import Schedule
    from tilewright.schedule.stage import Stage


@dataclass(frozen=True, slots=True)
class Range:
    """The integers from `start` to `start + width`; `start` is a form of symbols that are fixed."""

    start: Linear
    width: Extent

    @property
    def is_number(self) -> bool:
        """Whether it is a single integer, or one for each candidate, whatever the symbols are."""
        return self.start.is_const and isinstance(self.width, int) and self.width == 0

    @property
    def interval(self) -> Interval:
        """The range as an interval, where it does not depend on symbols."""
        return interval(self.start.const, self.start.const + self.width)


def from_zero(extent: Extent) -> Range:
    """All values of a loop of that extent."""
    return Range(const(0), extent - 1)


class RangesBelow(Algebra[Range]):
    """The ranges of index expressions while the loops below some level run, from those of their variables."""

    def __init__(self, lookup: Callable[[Var], Range | None]) -> None:
        super().__init__()
        self.lookup = lookup

    def variable(self, var: Var) -> Range | None:
        return self.lookup(var)

    def constant(self, value: int) -> Range:
        return Range(const(value), 0)

    def held(self, value: Range, dtype: str) -> Range | None:
        """None also where it may wrap around: then all of the dimension is needed."""
        return None if dtype != "int64" or is_large(value.width) or has_large_numbers(value.start) else value

    def combine(self, op: str, a: Range, b: Range) -> Range | None:
        if op == "add":
            return Range(a.start + b.start, a.width + b.width)
        if op == "sub":
            return self.combine("add", a, _scaled(b, -1))
        if op == "mul":
            return _scaled(a, b.start.const) if b.is_number else _scaled(b, a.start.const) if a.is_number else None
        if op in ("floordiv", "mod") and (not b.is_number or is_anywhere(b.start.const <= 0)):
            return None
        if a.start.is_const and b.start.is_const:
            return _of_interval(combine_intervals(op, a.interval, b.interval))
        return _around_symbols(op, a, b)


def _scaled(a: Range, factor: int) -> Range:
    if not is_anywhere(factor != 0):
        return Range(const(0), 0)
    moved = a.width * factor
    return Range(a.start * factor + const(minimum(moved, 0)), maximum(moved, -moved))


def _of_interval(found: Interval | None) -> Range | None:
    return None if found is None else Range(const(found.low), found.high - found.low)


def _around_symbols(op: str, a: Range, b: Range) -> Range:
    """An operation that is not linear: what it is where both ranges begin becomes a symbol of its own."""
    start = of_atom(Operation(op, a.start, b.start))
    if op == "mod":  # what moves may begin anew
        return Range(start * (a.width == 0), (b.start.const - 1) * (a.width > 0))
    return Range(start, ceil_div(a.width, b.start.const) if op == "floordiv" else maximum(a.width, b.width))


def union(a: Range, b: Range) -> Range | None:
    """The hull of both; None where their distance is not known."""
    distance = b.start - a.start
    if not distance.is_const:
        return None
    low = minimum(distance.const, 0)
    return Range(a.start + low, maximum(a.width, distance.const + b.width) - low)


# --- loops -------------------------------------------------------------------------------------------------------


def infer_extents(schedule: Schedule) -> dict[Loop, Extent]:
    """The extent of every loop of every stage, consumers first."""
    extents: dict[Loop, Extent] = {}
    for stage in reversed(schedule.active_stages):
        for loop, extent in zip(stage.root_loops, domain_extents(schedule, stage, extents), strict=True):
            extents[loop] = extent
        for relation in stage.relations:
            if isinstance(relation, Split):
                whole = extents[relation.parent]
                tile = minimum(relation.factor, whole)
                extents[relation.outer], extents[relation.inner] = ceil_div(whole, tile), tile
            else:
                extents[relation.fused] = extents[relation.first] * extents[relation.second]
    return extents


def domain_extents(schedule: Schedule, stage: Stage, extents: Mapping[Loop, Extent]) -> list[Extent]:
    reduce_extents: list[Extent] = [axis.extent for axis in stage.reduce_axes]
    if stage.attach_loop is None:
        return [*stage.tensor.shape, *reduce_extents]
    needed = required_region(schedule, stage, stage.attach_loop, extents)
    spatial = [
        dim if r is None else minimum(r.width + 1, dim) for r, dim in zip(needed, stage.tensor.shape, strict=True)
    ]
    return [*spatial, *reduce_extents]


def required_region(
    schedule: Schedule, stage: Stage, level: Loop, extents: Mapping[Loop, Extent]
) -> list[Range | None]:
    """What of `stage` its consumers read in one iteration of the loop `level`: a range for each axis."""
    consumers = schedule.consumers(stage)
    if not consumers:  # steps that are replayed are checked at the end, and this may be asked before
        raise ScheduleError(f"{stage.name} is computed inside loop {level.name}, and nothing reads it there")
    regions: list[list[Range | None]] = [[] for _ in stage.tensor.shape]
    for consumer in consumers:
        below = RangesBelow(_axis_lookup(schedule, consumer, level, extents))
        reads = [read.indices for read in consumer.reads if read.tensor is stage.tensor]
        for ranges, indices in zip(regions, zip(*reads, strict=True), strict=True):
            ranges += map(below.of, dict.fromkeys(indices))  # many reads differ in one index only
    return [reduce(_union, ranges) for ranges in regions]


def _union(a: Range | None, b: Range | None) -> Range | None:
    return None if a is None or b is None else union(a, b)


def enclosing_loops(stage: Stage) -> list[Loop]:
    """The loops of other stages that run around `stage`, outermost first."""
    level = stage.attach_loop
    if level is None:
        return []
    host = level.stage
    return [*enclosing_loops(host), *host.leaves[: host.leaves.index(level) + 1]]


def _axis_lookup(
    schedule: Schedule, consumer: Stage, level: Loop, extents: Mapping[Loop, Extent]
) -> Callable[[Var], Range | None]:
    """The ranges of the axes of `consumer`, and of the loop variables that its packed reads name, below `level`."""
    loops = {loop.var: loop for loop in (*enclosing_loops(consumer), *consumer.leaves)}
    axes = _axis_ranges(schedule, consumer, level, extents)

    def lookup(var: Var) -> Range | None:
        loop = loops.get(var)
        if loop is None:
            return axes[var]
        return from_zero(extents[loop]) if _runs_inside(loop, level) else Range(of_atom(var), 0)

    return lookup


def _runs_inside(loop: Loop, level: Loop) -> bool:
    if loop.stage is level.stage:
        leaves = loop.stage.leaves
        return leaves.index(loop) > leaves.index(level)
    return level in enclosing_loops(loop.stage)


def _axis_ranges(
    schedule: Schedule, consumer: Stage, level: Loop, extents: Mapping[Loop, Extent]
) -> Mapping[Var, Range]:
    if consumer is level.stage:
        inner = frozenset(consumer.leaves[consumer.leaves.index(level) + 1 :])
        below = _LoopRanges(consumer, inner, extents)
        return {axis: below.range(axis, loop) for axis, loop in consumer.loop_of_axis.items()}
    region = required_region(schedule, consumer, level, extents)
    reach = _Reach(level, extents)
    ranges: dict[Var, Range] = {
        axis: from_zero(dim) if r is None else reach.with_shifts(r, dim)
        for axis, r, dim in zip(consumer.axes, region, consumer.tensor.shape, strict=True)
    }
    ranges.update((axis, from_zero(axis.extent)) for axis in consumer.reduce_axes)
    return ranges


class _Reach:
    """How far the symbols that stand still inside `level` range over all of its iterations."""

    def __init__(self, level: Loop, extents: Mapping[Loop, Extent]) -> None:
        self.host = level.stage
        self.extents = extents
        leaves = self.host.leaves
        self.below = _LoopRanges(self.host, frozenset(leaves[leaves.index(level) + 1 :]), extents)
        self.loops = {loop.var: loop for loop in (*enclosing_loops(self.host), *leaves)}

    def with_shifts(self, r: Range, dim: Extent) -> Range:
        """Where a part that begins at `r` really lies: one that leaves the dimension is moved to its border."""
        extent = minimum(r.width + 1, dim)
        low, high = bounds(r.start, {symbol: self._symbol(symbol) for symbol in variables(r.start)})
        up, down = maximum(-low, 0), maximum(high - (dim - extent), 0)
        return Range(r.start + const(-down), extent - 1 + down + up)

    def _symbol(self, symbol: Var) -> Interval:
        if not isinstance(symbol, Axis):
            return interval(0, self.extents[self.loops[symbol]] - 1)
        loop = self.host.loop_of_axis[symbol]
        is_part = self.host.attach_loop is not None and not symbol.is_reduce
        room = symbol.extent - self.extents[loop] if is_part else 0
        return interval(0, self.below.highest_start(loop) + room)


class _LoopRanges:
    """Ranges of a stage's axes where the leaves `inner` run and all others stand still."""

    def __init__(self, stage: Stage, inner: frozenset[Loop], extents: Mapping[Loop, Extent]) -> None:
        self.stage = stage
        self.inner = inner
        self.extents = extents

    def range(self, axis: Axis, loop: Loop) -> Range:
        is_offset = not axis.is_reduce and self.stage.attach_loop is not None
        start = of_atom(axis) if is_offset or self.is_fixed_somewhere(loop) else const(0)
        return Range(start, self.width(loop))

    def width(self, loop: Loop) -> Extent:
        """How far the loop's value moves while the inner leaves run."""
        relation = self.stage.made_into.get(loop)
        if relation is None:
            return self.extents[loop] - 1 if loop in self.inner else 0
        if isinstance(relation, Split):
            moved = self.width(relation.outer) * self.extents[relation.inner] + self.width(relation.inner)
            return minimum(moved, self.extents[loop] - 1)
        if not self.is_fixed_somewhere(relation.fused):
            return self.extents[loop] - 1
        moved = self.width(relation.fused)
        if loop is relation.second:
            return (self.extents[loop] - 1) * (moved > 0)
        return minimum(ceil_div(moved, self.extents[relation.second]), self.extents[loop] - 1)

    def highest_start(self, loop: Loop) -> Extent:
        """The largest value from which the loop's value moves on while the inner leaves run."""
        relation = self.stage.made_into.get(loop)
        if relation is None:
            return 0 if loop in self.inner else self.extents[loop] - 1
        if isinstance(relation, Split):
            tile = self.extents[relation.inner]
            begin = self.highest_start(relation.outer) * tile
            if not loop.is_reduce:
                begin = minimum(begin, self.extents[loop] - tile)
            return begin + self.highest_start(relation.inner)
        if loop is relation.first:
            return self.highest_start(relation.fused) // self.extents[relation.second]
        return self.extents[loop] - 1

    def is_fixed_somewhere(self, loop: Loop) -> bool:
        """Whether a leaf that this loop is made of is outside the inner ones."""
        return any(leaf not in self.inner for leaf in self.stage.leaves_of(loop))
