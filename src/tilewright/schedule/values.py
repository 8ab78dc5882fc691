"""The value of a loop as an expression of the leaf loops, and where an attached stage's part begins.

With a population the constants in these expressions are arrays, one entry a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tilewright.schedule.bounds import Range, required_region
from tilewright.schedule.loop import Extent, Loop, Split
from tilewright.te import Axis, Binary, Const, Expr, Var
from tilewright.te.index import Atom, FromMemory, Linear, Operation, minimum

if TYPE_CHECKING:
    from tilewright.schedule.schedule import Schedule
    from tilewright.schedule.stage import Stage

ZERO = Const("int64", 0)
_NOTHING: Mapping[Loop, Expr] = {}


def loop_var(loop: Loop) -> Expr:
    return loop.var


def number(value: Extent) -> Const:
    return Const("int64", value)  # type: ignore[arg-type]  # a population's constant is an array


def _is(e: Expr, value: int) -> bool:
    return isinstance(e, Const) and isinstance(e.value, int) and e.value == value


def plus(a: Expr, b: Expr) -> Expr:
    if _is(a, 0):
        return b
    return a if _is(b, 0) else Binary("int64", "add", a, b)


def times(a: Expr, factor: Extent) -> Expr:
    if _is(a, 0) or (isinstance(factor, int) and factor == 0):
        return ZERO
    return a if isinstance(factor, int) and factor == 1 else Binary("int64", "mul", a, number(factor))


def loop_value(
    stage: Stage,
    loop: Loop,
    extents: Mapping[Loop, Extent],
    leaf: Callable[[Loop], Expr],
    inner: frozenset[Loop] = frozenset(),
    known: Mapping[Loop, Expr] = _NOTHING,
) -> Expr:
    """The value of `loop` (from zero, within its stage's part) from the values of the leaves it is made of.

    With `inner`: its least value while those leaves run and all others stand still. Loops that are `known` stand for
    themselves as long as they stand still.
    """
    if loop in known and inner.isdisjoint(stage.leaves_of(loop)):
        return known[loop]
    relation = stage.made_into.get(loop)
    if relation is None:
        return ZERO if loop in inner else leaf(loop)
    if isinstance(relation, Split):
        tile, whole = extents[relation.inner], extents[relation.parent]
        start = times(loop_value(stage, relation.outer, extents, leaf, inner, known), tile)
        if not loop.is_reduce and not divides(tile, whole) and not isinstance(start, Const):
            start = Binary("int64", "min", start, number(whole - tile))
        return plus(start, loop_value(stage, relation.inner, extents, leaf, inner, known))
    fused = loop_value(stage, relation.fused, extents, leaf, inner, known)
    if _is(fused, 0):
        return ZERO
    size = number(extents[relation.second])
    if loop is relation.first:
        return Binary("int64", "floordiv", fused, size)
    return times(Binary("int64", "mod", fused, size), _stands_still(stage, loop, extents, inner))


def _stands_still(stage: Stage, loop: Loop, extents: Mapping[Loop, Extent], inner: frozenset[Loop]) -> Extent:
    """1 where no leaf of `loop` moves while the inner ones run, else 0."""
    still: Extent = 1
    for leaf in stage.leaves_of(loop):
        if leaf in inner:
            still = still * (extents[leaf] == 1)
    return still


def divides(tile: Extent, whole: Extent) -> bool:
    return bool(np.all(whole % tile == 0))


def domain_bases(schedule: Schedule, stage: Stage, known: Mapping[Loop, Expr] = _NOTHING) -> list[Expr]:
    """Where the part of `stage` that is computed at its attach point begins, axis by axis."""
    level = stage.attach_loop
    if level is None:
        return [ZERO] * len(stage.axes)
    extents = schedule.extents
    region = required_region(schedule, stage, level, extents)
    host = level.stage
    inner = frozenset(host.leaves[host.leaves.index(level) + 1 :])
    host_bases = dict(zip(host.axes, domain_bases(schedule, host, known), strict=True))

    def symbol_value(symbol: Atom) -> Expr:
        assert not isinstance(symbol, FromMemory), "an index that is read from memory has no range"
        if isinstance(symbol, Operation):
            return Binary("int64", symbol.op, expression(symbol.a), expression(symbol.b))
        if not isinstance(symbol, Axis):
            return symbol
        local = loop_value(host, host.loop_of_axis[symbol], extents, loop_var, inner, known)
        return plus(host_bases[symbol], local) if symbol in host_bases else local

    def expression(form: Linear) -> Expr:
        total: Expr = number(form.const)
        for symbol, coefficient in form.terms.items():
            total = plus(total, times(symbol_value(symbol), coefficient))
        return total

    return [
        ZERO if r is None else _clamped(expression(r.start), r, dim)
        for r, dim in zip(region, stage.tensor.shape, strict=True)
    ]


def _clamped(start: Expr, r: Range, dim: Extent) -> Expr:
    """`start` moved so that the part lies within the dimension (reads under a select may reach beyond)."""
    extent = minimum(r.width + 1, dim)
    if isinstance(start, Const):
        low = start.value
        if isinstance(low, int) and isinstance(dim, int) and isinstance(extent, int):
            return number(max(0, min(low, dim - extent)))
    return Binary("int64", "max", ZERO, Binary("int64", "min", start, number(dim - extent)))


def global_values(
    schedule: Schedule, stage: Stage, leaf: Callable[[Loop], Expr], known: Mapping[Loop, Expr] = _NOTHING
) -> dict[Var, Expr]:
    """The value of every axis of `stage`, from the values of its leaves."""
    bases = dict(zip(stage.axes, domain_bases(schedule, stage, known), strict=True))
    return {
        axis: plus(bases.get(axis, ZERO), loop_value(stage, loop, schedule.extents, leaf, known=known))
        for axis, loop in stage.loop_of_axis.items()
    }
