"""What the body of a compute must satisfy: where a reduction stands, which axes it uses, how far its reads reach."""

from __future__ import annotations

from tilewright.errors import ExpressionError
from tilewright.te.expr import Axis, Cast, Expr, Read, Reduce, Select, Var
from tilewright.te.index import range_outside
from tilewright.te.transform import children

# The functions that go through expressions are recursive, and a thousand calls are Python's limit.
MAX_DEPTH = 400


def check_body(name: str, axes: tuple[Axis, ...], body: Expr) -> None:
    """Raise ExpressionError if `body` cannot be the element of a compute called `name` over `axes`."""
    if isinstance(body, Cast) and isinstance(body.x, Reduce):
        raise ExpressionError(
            f"compute {name} casts its reduction `{body.x}` to {body.dtype}; cast the value inside it, as in "
            f"te.{body.x.op}(te.cast(x, {body.dtype!r}), axis=...), or cast the result in a second compute"
        )
    reduce_axes = body.axes if isinstance(body, Reduce) else ()
    _check_unique_names(name, (*axes, *reduce_axes))
    checker = _Checker(name, frozenset((*axes, *reduce_axes)))
    for value in body.values if isinstance(body, Reduce) else (body,):
        checker.check(value, guarded=False, read=None, depth=1)


def _check_unique_names(name: str, axes: tuple[Axis, ...]) -> None:
    by_name: dict[str, Axis] = {}
    for axis in axes:
        other = by_name.setdefault(axis.name, axis)
        if other is not axis:
            what = "two reduce axes" if other.is_reduce else "an axis and a reduce axis"
            raise ExpressionError(
                f"compute {name} has {what} called {axis.name}; loops need distinct names, "
                "so give one another: te.reduce_axis(extent, name=...)"
            )


class _Checker:
    """Walks one body; a node shared by guarded and unguarded places is checked in both."""

    def __init__(self, name: str, axes: frozenset[Axis]) -> None:
        self._name = name
        self._axes = axes
        self._seen: set[tuple[int, bool]] = set()

    def check(self, e: Expr, guarded: bool, read: Read | None, depth: int) -> None:
        """`guarded`: within a branch of a select. `read`: the read whose index this is part of."""
        if depth > MAX_DEPTH:
            raise ExpressionError(
                f"the expression of compute {self._name} must be at most {MAX_DEPTH} deep; give a part of it a compute "
                "of its own"
            )
        if isinstance(e, Var):
            # Not remembered as seen: the same axis is named with another read in the message.
            self._check_var(e, read)
            return
        if (id(e), guarded) in self._seen:
            return
        self._seen.add((id(e), guarded))
        if isinstance(e, Reduce):
            raise ExpressionError(
                f"compute {self._name} uses the reduction `{e}` inside a larger expression; a reduction must be the "
                "whole body: give it a compute of its own and read that in a second compute"
            )
        if isinstance(e, Select):
            self.check(e.cond, guarded, read, depth + 1)
            self.check(e.a, True, read, depth + 1)
            self.check(e.b, True, read, depth + 1)
            return
        inner = e if isinstance(e, Read) else read
        for operand in children(e):
            self.check(operand, guarded, inner, depth + 1)
        if isinstance(e, Read) and not guarded:
            self._check_bounds(e)

    def _check_var(self, var: Var, read: Read | None) -> None:
        if var in self._axes:
            return
        where = f"reads `{read}`" if read is not None else f"uses `{var}`"
        if not isinstance(var, Axis):
            remedy = "which is not an axis; use the axes that its function is given"
        elif var.is_reduce:
            remedy = f"a reduce axis outside its reduction; reduce over it, as in te.sum(..., axis={var.name})"
        else:
            remedy = "an axis of another compute; use the axes that its own function is given"
        tensor = f" of tensor {read.tensor.name}" if read is not None else ""
        raise ExpressionError(f"compute {self._name} {where}: the index{tensor} uses {var.name}, {remedy}")

    def _check_bounds(self, read: Read) -> None:
        for dim, index in enumerate(read.indices):
            extent = read.tensor.shape[dim]
            reached = range_outside(index, extent)
            if reached is not None:
                raise ExpressionError(
                    f"compute {self._name} reads `{read}`: index `{index}` of dimension {dim} of tensor "
                    f"{read.tensor.name} reaches {reached[0]}..{reached[1]}, but that dimension has extent {extent} "
                    f"(0..{extent - 1}); correct the index or guard the read with te.select"
                )
