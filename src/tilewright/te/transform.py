"""Walking and rebuilding expressions.

These run for every statement of every candidate, so they dispatch on the node's type, visit a shared node once,
and return the same object where nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.te.expr import Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Unary, Var

Rebuild = Callable[[Expr], Expr]


def children(e: Expr) -> tuple[Expr, ...]:
    """The direct operands of a node, left to right; the indices of a read, the values of a reduction."""
    return _CHILDREN[type(e)](e)


def visit(expr: Expr, fn: Callable[[Expr], object]) -> None:
    """Call `fn` on every node once, a node before its operands, left to right."""
    seen: set[int] = set()
    stack = [expr]
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        fn(e)
        stack.extend(reversed(_CHILDREN[type(e)](e)))


def operands_first(expr: Expr) -> list[Expr]:
    """Every node once, after its operands, left to right; without recursion, however deep the expression is."""
    order: list[Expr] = []
    seen: set[int] = set()
    stack = [(expr, False)]
    while stack:
        e, is_expanded = stack.pop()
        if is_expanded:
            order.append(e)
        elif id(e) not in seen:
            seen.add(id(e))
            stack.append((e, True))
            stack.extend((operand, False) for operand in reversed(_CHILDREN[type(e)](e)))
    return order


def depth_of(expr: Expr) -> int:
    """How many nodes stand in each other, without recursion.

    >>> from tilewright import te
    >>> i = te.reduce_axis(8, name="i")
    >>> depth_of(i), depth_of(i * 2 + i)
    (1, 3)
    """
    depths: dict[int, int] = {}
    for e in operands_first(expr):
        depths[id(e)] = 1 + max((depths[id(operand)] for operand in _CHILDREN[type(e)](e)), default=0)
    return depths[id(expr)]


def collect_reads(expr: Expr) -> list[Read]:
    """Every read in the expression, once a node, left to right; one inside another's index follows it."""
    reads: list[Read] = []

    def add(e: Expr) -> None:
        if type(e) is Read:
            reads.append(e)

    visit(expr, add)
    return reads


def rewrite(expr: Expr, fn: Callable[[Expr], Expr | None]) -> Expr:
    """Rebuild bottom-up: `fn` sees each node with its operands already rewritten, and None keeps the node."""
    memo: dict[int, Expr] = {}

    def go(e: Expr) -> Expr:
        known = memo.get(id(e))
        if known is None:
            rebuilt = _REBUILD[type(e)](e, go)
            known = fn(rebuilt)
            if known is None:
                known = rebuilt
            memo[id(e)] = known
        return known

    return go(expr)


def merged(expr: Expr) -> Expr:
    """The expression with one node for parts that are the same.

    >>> from tilewright import te
    >>> i = te.reduce_axis(8, name="i")
    >>> both = merged((i + 1) * (i + 1))
    >>> children(both)[0] is children(both)[1]
    True
    """
    known: dict[tuple[object, ...], Expr] = {}

    def merge(e: Expr) -> Expr:
        return known.setdefault((type(e), e.dtype, _own_part(e), *map(id, _CHILDREN[type(e)](e))), e)

    return rewrite(expr, merge)


def _own_part(e: Expr) -> object:
    """What tells a node from others with the same operands."""
    if isinstance(e, Unary | Binary):
        return e.op
    if isinstance(e, Const):
        return repr(e.value)
    if isinstance(e, Reduce):
        return (e.op, *map(id, e.axes))
    return id(e.tensor if isinstance(e, Read) else e) if isinstance(e, Read | Var) else None


def substitute(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """Replace variables by expressions. The list of axes that a Reduce binds stays as it is.

    >>> from tilewright import te
    >>> A, i = te.placeholder((8,), name="A"), te.reduce_axis(8, name="i")
    >>> print(substitute(A[i] + 1.0, {i: i // 2}))
    A[i // 2] + 1.0
    """
    if not values:
        return expr
    memo: dict[int, Expr] = {id(var): value for var, value in values.items()}

    def go(e: Expr) -> Expr:
        known = memo.get(id(e))
        if known is None:
            known = memo[id(e)] = _REBUILD[type(e)](e, go)
        return known

    return go(expr)


def replace_reads(expr: Expr, fn: Callable[[Read], Expr | None]) -> Expr:
    """Replace reads, the reads in their indices first; None keeps a read."""
    return rewrite(expr, lambda e: fn(e) if type(e) is Read else None)


def _no_children(e: Expr) -> tuple[Expr, ...]:
    return ()


_CHILDREN: dict[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    Var: _no_children,
    Axis: _no_children,
    Const: _no_children,
    Unary: lambda e: (e.x,),
    Binary: lambda e: (e.a, e.b),
    Select: lambda e: (e.cond, e.a, e.b),
    Cast: lambda e: (e.x,),
    Read: lambda e: e.indices,
    Reduce: lambda e: e.values,
}


def _leaf(e: Expr, go: Rebuild) -> Expr:
    return e


def _unary(e: Unary, go: Rebuild) -> Expr:
    x = go(e.x)
    return e if x is e.x else Unary(e.dtype, e.op, x)


def _binary(e: Binary, go: Rebuild) -> Expr:
    a, b = go(e.a), go(e.b)
    return e if a is e.a and b is e.b else Binary(e.dtype, e.op, a, b)


def _select(e: Select, go: Rebuild) -> Expr:
    cond, a, b = go(e.cond), go(e.a), go(e.b)
    return e if cond is e.cond and a is e.a and b is e.b else Select(e.dtype, cond, a, b)


def _cast(e: Cast, go: Rebuild) -> Expr:
    x = go(e.x)
    return e if x is e.x else Cast(e.dtype, x)


def _read(e: Read, go: Rebuild) -> Expr:
    indices = _tuple(e.indices, go)
    return e if indices is e.indices else Read(e.dtype, e.tensor, indices)


def _reduce(e: Reduce, go: Rebuild) -> Expr:
    values = _tuple(e.values, go)
    return e if values is e.values else Reduce(e.dtype, e.op, values, e.axes)


def _tuple(old: tuple[Expr, ...], go: Rebuild) -> tuple[Expr, ...]:
    new = tuple([go(e) for e in old])
    for a, b in zip(old, new, strict=True):
        if a is not b:
            return new
    return old


_REBUILD: dict[type[Expr], Callable[[Any, Rebuild], Expr]] = {
    Var: _leaf,
    Axis: _leaf,
    Const: _leaf,
    Unary: _unary,
    Binary: _binary,
    Select: _select,
    Cast: _cast,
    Read: _read,
    Reduce: _reduce,
}
