"""Loop nests and linear forms as text."""

from __future__ import annotations

from tilewright.ir.nest import Block, For, Index, Load, LoopNest, Stmt, Store, Test, Update, Where
from tilewright.schedule import SERIAL
from tilewright.te import Binary, Cast, Const, Expr, Select, Unary, format_number
from tilewright.te.index import Linear, format_linear
from tilewright.te.printer import LEFT_OUT, MAX_CHARACTERS

_SYMBOL = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "eq": "==", "ne": "!=", "and": "&", "or": "|", "pow": "**",
}  # fmt: skip


def format_nest(nest: LoopNest) -> str:
    """The function as pseudo-code."""
    arguments = ", ".join(f"{b.name}: {b.dtype}[{', '.join(map(str, b.shape))}]" for b in nest.arguments)
    lines = [f"def {nest.name}({arguments}):"]
    _format(nest.body, 1, lines)
    return "\n".join(lines)


def _format(stmt: Stmt, depth: int, lines: list[str]) -> None:
    pad = "  " * depth
    if isinstance(stmt, For):
        keyword = "for" if stmt.kind == SERIAL else stmt.kind
        span = f"{stmt.begin}, {stmt.begin + stmt.extent}" if stmt.begin else str(stmt.extent)
        lines.append(f"{pad}{keyword} {stmt.var.name} in range({span}):")
        _format(stmt.body, depth + 1, lines)
    elif isinstance(stmt, Block):
        for buffer in stmt.buffers:
            lines.append(f"{pad}{buffer.name} = allocate({buffer.dtype}[{', '.join(map(str, buffer.shape))}])")
        for inner in stmt.body:
            _format(inner, depth, lines)
    elif isinstance(stmt, Where):
        for begin, end, case in stmt.cases:
            lines.append(f"{pad}where {begin} <= {stmt.var.name} < {end}:")
            _format(case, depth + 1, lines)
    elif isinstance(stmt, Store):
        lines.append(f"{pad}{stmt.buffer.name}{_subscript(stmt.indices)} = {format_value(stmt.value)}")
    else:
        assert isinstance(stmt, Update)
        target = ", ".join(f"{b.name}{_subscript(stmt.indices)}" for b in stmt.buffers)
        lines.append(f"{pad}{target} {stmt.op}= {', '.join(map(format_value, stmt.values))}")


def format_value(e: Expr) -> str:
    """An expression of a loop nest; every operation in parentheses."""
    return _Writer().value(e)


def _subscript(indices: tuple[Linear, ...]) -> str:
    return _Writer().subscript(indices)


class _Writer:
    """Writes each node once, and leaves out what is too long to be read."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def value(self, e: Expr) -> str:
        known = self._known.get(id(e))
        if known is None:
            known = self._value(e)
            if len(known) > MAX_CHARACTERS:
                known = LEFT_OUT
            self._known[id(e)] = known
        return known

    def _value(self, e: Expr) -> str:
        if isinstance(e, Const):
            return format_number(e.value, e.dtype)
        if isinstance(e, Load):
            return f"{e.buffer.name}{self.subscript(e.indices)}"
        if isinstance(e, Index):
            return self.linear(e.form)
        if isinstance(e, Test):
            return f"({self.linear(e.form)} {_SYMBOL[e.op]} 0)"
        if isinstance(e, Select):
            return f"select({self.value(e.cond)}, {self.value(e.a)}, {self.value(e.b)})"
        if isinstance(e, Cast):
            return f"{e.dtype}({self.value(e.x)})"
        if isinstance(e, Unary):
            return f"{e.op}({self.value(e.x)})"
        if not isinstance(e, Binary):
            return f"<{type(e).__name__}>"  # the verifier shows nests that should not be
        if e.op in _SYMBOL:
            return f"({self.value(e.a)} {_SYMBOL[e.op]} {self.value(e.b)})"
        return f"{e.op}({self.value(e.a)}, {self.value(e.b)})"

    def subscript(self, indices: tuple[Linear, ...]) -> str:
        return f"[{', '.join(map(self.linear, indices))}]"

    def linear(self, form: Linear) -> str:
        return format_linear(form, self.value)
