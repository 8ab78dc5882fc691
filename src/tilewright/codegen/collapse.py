"""Two nested loops as one, where every access steps through memory as if they were.

`for a in 3: for b in 8: X[a, b]` is `for b in 24: X[0, b]`: fewer loops to run, and to compile. The test is on
addresses, not on indices: rows that lie one behind the other in memory are one long row.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir import (
    Buffer,
    For,
    Load,
    Stmt,
    Store,
    Update,
    Where,
    expressions,
    forms,
    statements,
    values_of,
)
from tilewright.schedule import SERIAL
from tilewright.te.index import Linear, of_atom, variables


def collapse(loop: For) -> For | None:
    """The one loop, over the inner variable while the outer one stays at zero; None where two are needed."""
    inner = loop.body
    if not isinstance(inner, For) or loop.kind != SERIAL or inner.kind != SERIAL or loop.begin or inner.begin:
        return None
    for buffer, indices in _accesses(inner.body):
        step = outer_step = 0
        for form, stride in zip(indices, buffer.strides if buffer else (0,), strict=True):
            step += stride * form.terms.get(inner.var, 0)
            outer_step += stride * form.terms.get(loop.var, 0)
            nonlinear = Linear({atom: c for atom, c in form.terms.items() if atom not in (loop.var, inner.var)}, 0)
            if not {loop.var, inner.var}.isdisjoint(variables(nonlinear)):
                return None
            if buffer is None and not {loop.var, inner.var}.isdisjoint(form.terms):
                return None
        if outer_step != step * inner.extent:
            return None
    return For(inner.var, 0, loop.extent * inner.extent, SERIAL, inner.body)


def _accesses(stmt: Stmt) -> Iterator[tuple[Buffer | None, tuple[Linear, ...]]]:
    """Every buffer access, and every other linear form alone, with no buffer."""
    for inner in statements(stmt):
        if isinstance(inner, Store):
            yield inner.buffer, inner.indices
        elif isinstance(inner, Update):
            yield from ((buffer, inner.indices) for buffer in inner.buffers)
        elif isinstance(inner, Where):
            yield None, (of_atom(inner.var),)
        for value in values_of(inner):
            for e in expressions(value):
                if isinstance(e, Load):
                    yield e.buffer, e.indices
                else:
                    yield from ((None, (form,)) for form in forms(e))
