"""Walking and rebuilding loop nests and the expressions in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from tilewright.ir.nest import Block, Buffer, For, Index, Load, Stmt, Store, Test, Update, Where
from tilewright.te import Binary, Cast, Expr, Select, Unary, Var
from tilewright.te.index import FromMemory, Linear, Operation, Ranges, substitute, variables

Access: TypeAlias = tuple[Buffer, tuple[Linear, ...]]


def operands(e: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside `e`."""
    if isinstance(e, Binary):
        return e.a, e.b
    if isinstance(e, Select):
        return e.cond, e.a, e.b
    if isinstance(e, Unary | Cast):
        return (e.x,)
    if isinstance(e, Load):
        return tuple(value for form in e.indices for value in memory_reads(form))
    return ()


def memory_reads(form: Linear) -> Iterator[Expr]:
    """The expressions that the form reads from memory."""
    for atom in form.terms:
        if isinstance(atom, FromMemory):
            yield atom.value
        elif isinstance(atom, Operation):
            yield from memory_reads(atom.a)
            yield from memory_reads(atom.b)


def forms(e: Expr) -> tuple[Linear, ...]:
    """The linear forms directly in a node."""
    if isinstance(e, Load):
        return e.indices
    return (e.form,) if isinstance(e, Index | Test) else ()


def expressions(e: Expr) -> Iterator[Expr]:
    """`e` and everything inside it, each node once."""
    seen: set[int] = set()
    stack = [e]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(operands(node))


def statements(stmt: Stmt) -> Iterator[Stmt]:
    """`stmt` and every statement inside it."""
    yield stmt
    for child in children(stmt):
        yield from statements(child)


def children(stmt: Stmt) -> tuple[Stmt, ...]:
    if isinstance(stmt, For):
        return (stmt.body,)
    if isinstance(stmt, Block):
        return stmt.body
    if isinstance(stmt, Where):
        return tuple(case for _, _, case in stmt.cases)
    return ()


def values_of(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that a Store or Update writes."""
    if isinstance(stmt, Store):
        return (stmt.value,)
    return stmt.values if isinstance(stmt, Update) else ()


def map_children(stmt: Stmt, fn: Callable[[Stmt], Stmt]) -> Stmt:
    """The statement with `fn` applied to those directly inside it."""
    if isinstance(stmt, For):
        return For(stmt.var, stmt.begin, stmt.extent, stmt.kind, fn(stmt.body))
    if isinstance(stmt, Block):
        return Block(stmt.buffers, tuple(map(fn, stmt.body)))
    if isinstance(stmt, Where):
        return Where(stmt.var, tuple((begin, end, fn(case)) for begin, end, case in stmt.cases))
    return stmt


def rewrite_value(e: Expr, access: Callable[[Access], Access], form: Callable[[Linear], Linear]) -> Expr:
    """The expression with what its loads reach replaced by `access`, and linear forms used as values by `form`.

    A node that stands in several places stays one node.
    """
    memo: dict[int, Expr] = {}

    def go(e: Expr) -> Expr:
        known = memo.get(id(e))
        if known is None:
            known = memo[id(e)] = rebuilt(e)
        return known

    def rebuilt(e: Expr) -> Expr:
        if isinstance(e, Load):
            return Load(e.dtype, *access((e.buffer, e.indices)))
        if isinstance(e, Index):
            return Index(e.dtype, form(e.form))
        if isinstance(e, Test):
            return Test(e.dtype, e.op, form(e.form))
        if isinstance(e, Binary):
            return Binary(e.dtype, e.op, go(e.a), go(e.b))
        if isinstance(e, Select):
            return Select(e.dtype, go(e.cond), go(e.a), go(e.b))
        if isinstance(e, Unary):
            return Unary(e.dtype, e.op, go(e.x))
        return Cast(e.dtype, go(e.x)) if isinstance(e, Cast) else e

    return go(e)


def rewrite_statement(stmt: Stmt, access: Callable[[Access], Access], form: Callable[[Linear], Linear]) -> Stmt:
    """The same for a statement: what it stores to and loads from, and its linear forms."""

    def go(s: Stmt) -> Stmt:
        if isinstance(s, Store):
            return Store(*access((s.buffer, s.indices)), rewrite_value(s.value, access, form))
        if isinstance(s, Update):
            places = [access((buffer, s.indices)) for buffer in s.buffers]
            values = tuple(rewrite_value(value, access, form) for value in s.values)
            return Update(s.op, tuple(buffer for buffer, _ in places), places[0][1], values)
        return map_children(s, go)

    return go(stmt)


def substitute_statement(stmt: Stmt, values: Mapping[Var, Linear], ranges: Ranges) -> Stmt:
    """Replace loop variables by linear forms throughout."""

    def form(old: Linear) -> Linear:
        return substitute(old, values, ranges, lambda atom: FromMemory(rewrite_value(atom.value, access, form)))

    def access(place: Access) -> Access:
        return place[0], tuple(map(form, place[1]))

    return rewrite_statement(stmt, access, form)


def written_buffers(stmt: Stmt) -> list[Buffer]:
    """The buffers that the statement writes."""
    found: dict[Buffer, None] = {}
    for inner in statements(stmt):
        if isinstance(inner, Store):
            found[inner.buffer] = None
        elif isinstance(inner, Update):
            found.update(dict.fromkeys(inner.buffers))
    return list(found)


def used_buffers(stmt: Stmt) -> list[Buffer]:
    """The buffers that the statement reads or writes, in the order of first use."""
    found: dict[Buffer, None] = dict.fromkeys(written_buffers(stmt))
    for inner in statements(stmt):
        for value in _all_values(inner):
            found.update((e.buffer, None) for e in expressions(value) if isinstance(e, Load))
    return list(found)


def used_variables(stmt: Stmt) -> list[Var]:
    """The loop variables that the statement names, in the order of first use."""
    found: dict[Var, None] = {}
    for inner in statements(stmt):
        used = list(inner.indices) if isinstance(inner, Store | Update) else []
        for value in _all_values(inner):
            used += [form for e in expressions(value) for form in forms(e)]
        for form in used:
            found.update(dict.fromkeys(variables(form)))
        if isinstance(inner, Where):
            found[inner.var] = None
    return list(found)


def _all_values(stmt: Stmt) -> list[Expr]:
    """What the statement writes, and what its own indices read from memory."""
    indices = stmt.indices if isinstance(stmt, Store | Update) else ()
    return [*values_of(stmt), *(value for form in indices for value in memory_reads(form))]
