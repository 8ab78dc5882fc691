"""pragma(auto_unroll_max_step): unroll small loops, innermost first."""

from __future__ import annotations

from tilewright.ir.nest import Block, For, Stmt, Where
from tilewright.schedule import SERIAL, UNROLL, VECTORIZE


def unroll_small_loops(stmt: Stmt, max_step: int) -> Stmt:
    """Mark serial loops as unrolled as long as the body they expand to has at most `max_step` statements."""
    return _unroll(stmt, max_step)[0]


def _unroll(stmt: Stmt, max_step: int) -> tuple[Stmt, int]:
    """The statement and how many statements it expands to; more than `max_step` where a loop remains in it."""
    if isinstance(stmt, For):
        body, steps = _unroll(stmt.body, max_step)
        kind = stmt.kind
        if kind == SERIAL and steps * stmt.extent <= max_step:
            kind = UNROLL
        total = steps if kind == VECTORIZE else steps * stmt.extent if kind == UNROLL else max_step + 1
        return For(stmt.var, stmt.begin, stmt.extent, kind, body), total
    if isinstance(stmt, Block):
        parts = [_unroll(s, max_step) for s in stmt.body]
        return Block(stmt.buffers, tuple(s for s, _ in parts)), sum(n for _, n in parts)
    assert not isinstance(stmt, Where), "loops are unrolled before they are cut"
    return stmt, 1
