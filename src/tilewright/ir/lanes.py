"""Memory of each lane's own: what is allocated inside a vectorized loop exists once for every lane."""

from __future__ import annotations

from tilewright.ir.nest import Block, Buffer, For, LoopNest, Stmt
from tilewright.ir.walk import Access, map_children, rewrite_statement
from tilewright.schedule import VECTORIZE
from tilewright.te.index import Linear


def private_lanes(nest: LoopNest) -> LoopNest:
    """Give the buffers that are allocated inside a vectorized loop a last dimension, which the lanes index."""

    def go(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.kind == VECTORIZE:
            return For(stmt.var, stmt.begin, stmt.extent, stmt.kind, _widen(stmt.body, stmt))
        return map_children(stmt, go)

    return LoopNest(nest.name, nest.arguments, go(nest.body))


def _widen(body: Stmt, loop: For) -> Stmt:
    lane = Linear({loop.var: 1}, -loop.begin)
    wide: dict[Buffer, Buffer] = {}

    def allocate(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Block):
            return map_children(stmt, allocate)
        for b in stmt.buffers:
            # Copies of a loop body, made where it was cut, share their buffers.
            wide.setdefault(b, Buffer(b.name, (*b.shape, loop.extent), b.dtype, b.scope))
        return Block(tuple(wide[b] for b in stmt.buffers), tuple(map(allocate, stmt.body)))

    def access(place: Access) -> Access:
        buffer, indices = place
        return (wide[buffer], (*indices, lane)) if buffer in wide else place

    allocated = allocate(body)
    return rewrite_statement(allocated, access, lambda form: form) if wide else body
