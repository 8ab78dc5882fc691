"""Bound inference: how far every loop runs, and which part of each attached stage its consumers need.

A needed part is a `Range` for each axis: symbols that are fixed where the stage is attached, plus an interval. Its
width is int or array arithmetic and so holds for one schedule or a population; `ir.lower` turns the symbols into
expressions. One recursion serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from tilewright.errors import ScheduleError
from tilewright.schedule.loop import Extent, Loop, Split, ceil_div, maximum, minimum
from tilewright.te import Axis, Binary, Cast, Const, Expr, Unary, Var

if TYPE_CHECKING:
    from tilewright.schedule.schedule import Schedule
    from tilewright.schedule.stage import Stage


@dataclass(frozen=True, slots=True)
class Opaque:
    """A symbol for `op(a, b)` of ranges that do not vary below the attach point."""

    op: str
    a: Range
    b: Range


Symbol: TypeAlias = Var | Opaque
Terms: TypeAlias = tuple[tuple[Symbol, int], ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The integers `sum(coefficient * symbol) + lo .. + lo + width`."""

    terms: Terms
    lo: Extent
    width: Extent

    def __hash__(self) -> int:
        return hash(self.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Range) and self.terms == other.terms and _same(self, other)

    @property
    def is_point(self) -> bool:
        return isinstance(self.width, int) and self.width == 0


def _same(a: Range, b: Range) -> bool:
    return a.lo == b.lo if isinstance(a.lo, int) and isinstance(b.lo, int) else np.array_equal(a.lo, b.lo)


def point(value: Extent) -> Range:
    return Range((), value, 0)


def add(a: Range, b: Range) -> Range:
    if not b.terms:
        return Range(a.terms, a.lo + b.lo, a.width + b.width)
    terms = dict(a.terms)
    for symbol, coefficient in b.terms:
        terms[symbol] = terms.get(symbol, 0) + coefficient
    return Range(tuple((s, c) for s, c in terms.items() if c), a.lo + b.lo, a.width + b.width)


def scale(a: Range, factor: Extent) -> Range:
    if not isinstance(factor, int):
        assert not a.terms, "symbols have the same coefficient in all candidates"
        ends = a.lo * factor, (a.lo + a.width) * factor
        low = minimum(*ends)
        return Range((), low, maximum(*ends) - low)
    if factor == 0:
        return point(0)
    terms = tuple((s, c * factor) for s, c in a.terms)
    if factor > 0:
        return Range(terms, a.lo * factor, a.width * factor)
    return Range(terms, (a.lo + a.width) * factor, a.width * -factor)


def union(a: Range, b: Range) -> Range | None:
    """The hull of both; None where their distance is not known."""
    if dict(a.terms) != dict(b.terms):
        return None
    lo = minimum(a.lo, b.lo)
    return Range(a.terms, lo, maximum(a.lo + a.width, b.lo + b.width) - lo)


def range_of(e: Expr, lookup: Callable[[Var], Range | None]) -> Range | None:
    """The range of an index expression; None where it cannot be told (an index read from memory)."""
    if isinstance(e, Const):
        return point(cast(Extent, e.value))  # an array where the expression belongs to a population
    if isinstance(e, Var):
        return lookup(e)
    if isinstance(e, Cast):
        return range_of(e.x, lookup)
    if isinstance(e, Unary) and e.op == "neg":
        x = range_of(e.x, lookup)
        return None if x is None else scale(x, -1)
    if not isinstance(e, Binary):
        return None
    a, b = range_of(e.a, lookup), range_of(e.b, lookup)
    if a is None or b is None:
        return None
    return _combine(e.op, a, b)


def _combine(op: str, a: Range, b: Range) -> Range | None:
    if op == "add":
        return add(a, b)
    if op == "sub":
        return add(a, scale(b, -1))
    if op == "mul":
        return _multiply(a, b) or _multiply(b, a)
    if op in ("floordiv", "mod"):
        if not b.is_point or b.terms or np.any(b.lo <= 0):
            return None
        return _divide(a, b.lo) if op == "floordiv" else _modulo(a, b.lo)
    if op in ("min", "max"):
        return _extremum(op, a, b)
    return None


def _multiply(a: Range, factor: Range) -> Range | None:
    if not factor.is_point or factor.terms:
        return None
    return scale(a, factor.lo) if isinstance(factor.lo, int) or not a.terms else None


def _divide(a: Range, d: Extent) -> Range:
    if not a.terms:
        low = a.lo // d
        return Range((), low, (a.lo + a.width) // d - low)
    return Range(((Opaque("floordiv", Range(a.terms, a.lo, 0), point(d)), 1),), 0, ceil_div(a.width, d))


def _modulo(a: Range, d: Extent) -> Range:
    if a.terms and a.is_point:
        return Range(((Opaque("mod", a, point(d)), 1),), 0, 0)
    if a.terms:
        return Range((), 0, (d - 1) * (a.width > 0))
    wraps = a.lo // d != (a.lo + a.width) // d
    return Range((), a.lo % d * (1 - wraps), a.width * (1 - wraps) + (d - 1) * wraps)


def _extremum(op: str, a: Range, b: Range) -> Range:
    pick = minimum if op == "min" else maximum
    if not a.terms and not b.terms:
        low = pick(a.lo, b.lo)
        return Range((), low, pick(a.lo + a.width, b.lo + b.width) - low)
    symbol = Opaque(op, Range(a.terms, a.lo, 0), Range(b.terms, b.lo, 0))
    return Range(((symbol, 1),), 0, maximum(a.width, b.width))


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
    regions: list[Range | None] | None = None
    for consumer in schedule.consumers(stage):
        lookup = _axis_lookup(schedule, consumer, level, extents)
        for read in consumer.reads:
            if read.tensor is not stage.tensor:
                continue
            ranges = [range_of(index, lookup) for index in read.indices]
            if regions is None:
                regions = ranges
            else:
                regions = list(map(_union, regions, ranges))
    if regions is None:  # steps that are replayed are checked at the end, and this may be asked before
        raise ScheduleError(f"{stage.name} is computed inside loop {level.name}, and nothing reads it there")
    return regions


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
        return Range((), 0, extents[loop] - 1) if _runs_inside(loop, level) else Range(((var, 1),), 0, 0)

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
        axis: Range((), 0, dim - 1) if r is None else reach.with_shifts(r, dim)
        for axis, r, dim in zip(consumer.axes, region, consumer.tensor.shape, strict=True)
    }
    ranges.update((axis, Range((), 0, axis.extent - 1)) for axis in consumer.reduce_axes)
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
        low, high = self._start(r)
        up, down = maximum(-low, 0), maximum(high - (dim - extent), 0)
        return Range(r.terms, r.lo - down, extent - 1 + down + up)

    def _start(self, r: Range) -> tuple[Extent, Extent]:
        low = high = r.lo
        for symbol, coefficient in r.terms:
            ends = [end * coefficient for end in self._symbol(symbol)]
            low, high = low + minimum(*ends), high + maximum(*ends)
        return low, high

    def _symbol(self, symbol: Symbol) -> tuple[Extent, Extent]:
        if isinstance(symbol, Opaque):
            return self._operation(symbol)
        if not isinstance(symbol, Axis):
            return 0, self.extents[self.loops[symbol]] - 1
        loop = self.host.loop_of_axis[symbol]
        is_part = self.host.attach_loop is not None and not symbol.is_reduce
        room = symbol.extent - self.extents[loop] if is_part else 0
        return 0, self.below.highest_start(loop) + room

    def _operation(self, symbol: Opaque) -> tuple[Extent, Extent]:
        (a_low, a_high), (b_low, b_high) = self._start(symbol.a), self._start(symbol.b)
        if symbol.op == "floordiv":
            return a_low // b_low, a_high // b_low
        if symbol.op == "mod":
            return 0, b_low - 1
        pick = minimum if symbol.op == "min" else maximum
        return pick(a_low, b_low), pick(a_high, b_high)


class _LoopRanges:
    """Ranges of a stage's axes where the leaves `inner` run and all others stand still."""

    def __init__(self, stage: Stage, inner: frozenset[Loop], extents: Mapping[Loop, Extent]) -> None:
        self.stage = stage
        self.inner = inner
        self.extents = extents

    def range(self, axis: Axis, loop: Loop) -> Range:
        is_offset = not axis.is_reduce and self.stage.attach_loop is not None
        symbols: Terms = ((axis, 1),) if is_offset or self.is_fixed_somewhere(loop) else ()
        return Range(symbols, 0, self.width(loop))

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
