"""Vectorized loops longer than a vector is sensibly: a loop of vectors and a rest."""

from __future__ import annotations

from tilewright.ir.nest import For, LoopNest, Stmt, block
from tilewright.ir.walk import map_children, substitute_statement
from tilewright.schedule import MAX_LANES, SERIAL, STRIP_LANES, VECTORIZE
from tilewright.te import Var
from tilewright.te.index import Interval, Linear


def strip_mine(nest: LoopNest) -> LoopNest:
    """Cut each vectorized loop of more than MAX_LANES iterations into vectors of STRIP_LANES."""
    ranges: dict[Var, Interval] = {}

    def go(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            ranges[stmt.var] = stmt.interval
            if stmt.kind == VECTORIZE and stmt.extent > MAX_LANES:
                return _strips(stmt, ranges)
        return map_children(stmt, go)

    return LoopNest(nest.name, nest.arguments, go(nest.body))


def _strips(loop: For, ranges: dict[Var, Interval]) -> Stmt:
    count, rest = divmod(loop.extent, STRIP_LANES)
    strip = Var("int64", f"{loop.var.name}.v")
    lane = Var("int64", f"{loop.var.name}.l")
    ranges[strip], ranges[lane] = Interval(0, count - 1), Interval(0, STRIP_LANES - 1)
    body = substitute_statement(loop.body, {loop.var: Linear({strip: STRIP_LANES, lane: 1}, loop.begin)}, ranges)
    parts: list[Stmt] = [For(strip, 0, count, SERIAL, For(lane, 0, STRIP_LANES, VECTORIZE, body))]
    if rest:
        parts.append(For(loop.var, loop.begin + count * STRIP_LANES, rest, VECTORIZE, loop.body))
    return block(parts)
