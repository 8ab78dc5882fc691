"""Expressions and tensors as text: Python syntax with no more parentheses than it needs.

An operand that stands in several places is written in each, so that the text of a short program can be endless: what
is longer than anybody reads is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.te.dtype import is_float, is_int
from tilewright.te.expr import Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Unary, Var
from tilewright.te.transform import operands_first

if TYPE_CHECKING:
    from tilewright.te.tensor import Tensor

# How tightly each form binds, in Python's order; comparisons do not chain.
_COMPARE, _OR, _AND, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 8)

_INFIX = {
    "lt": ("<", _COMPARE),
    "le": ("<=", _COMPARE),
    "gt": (">", _COMPARE),
    "ge": (">=", _COMPARE),
    "eq": ("==", _COMPARE),
    "ne": ("!=", _COMPARE),
    "or": ("|", _OR),
    "and": ("&", _AND),
    "add": ("+", _SUM),
    "sub": ("-", _SUM),
    "mul": ("*", _PRODUCT),
    "div": ("/", _PRODUCT),
    "floordiv": ("//", _PRODUCT),
    "mod": ("%", _PRODUCT),
}
_PREFIX = {"neg": "-", "not": "~"}

MAX_CHARACTERS = 20_000
LEFT_OUT = "..."


def format_expr(expr: Expr) -> str:
    """The expression as text.

    >>> from tilewright import te
    >>> i = te.reduce_axis(8, name="i")
    >>> format_expr((i + 1) * 2 - i // 4)
    '(i + 1) * 2 - i // 4'
    """
    return _Writer().text(expr)


def format_tensor(tensor: Tensor) -> str:
    """A placeholder as `A: float32[4, 8]`, a computed tensor as its definition `C[i] = A[i] + 1.0`."""
    if tensor.body is None:
        mark = " constant" if tensor.is_constant else ""
        return f"{tensor.name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]{mark}"
    writer = _Writer()
    return f"{tensor.name}{writer.subscript(tensor.axes)} = {writer.text(tensor.body)}"


def format_number(value: int | float | bool, dtype: str) -> str:
    """The shortest text that reads back as the same number of type `dtype`; half types compute in float32."""
    if is_float(dtype) and dtype != "float64":
        with np.errstate(over="ignore"):
            return str(np.float32(value))
    return repr(value)


class _Writer:
    """Writes each node once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[str, int]] = {}

    def write(self, e: Expr) -> tuple[str, int]:
        """The text of `e` and how tightly its outermost operator binds."""
        if id(e) not in self._known:
            for node in operands_first(e):
                known = _FORMAT[type(node)](node, self)
                self._known[id(node)] = known if len(known[0]) <= MAX_CHARACTERS else (LEFT_OUT, _ATOM)
        return self._known[id(e)]

    def text(self, e: Expr) -> str:
        return self.write(e)[0]

    def within(self, e: Expr, strength: int) -> str:
        text, own = self.write(e)
        return f"({text})" if own < strength else text

    def list(self, exprs: tuple[Expr, ...]) -> str:
        return ", ".join(map(self.text, exprs))

    def subscript(self, indices: tuple[Expr, ...]) -> str:
        return f"[{self.list(indices)}]" if indices else "[()]"


def _var(e: Var, w: _Writer) -> tuple[str, int]:
    return e.name, _ATOM


def _const(e: Const, w: _Writer) -> tuple[str, int]:
    text = format_number(e.value, e.dtype)
    return text, _SIGN if text.startswith("-") else _ATOM


def _unary(e: Unary, w: _Writer) -> tuple[str, int]:
    if e.op in _PREFIX:
        return _PREFIX[e.op] + w.within(e.x, _SIGN), _SIGN
    return f"{e.op}({w.text(e.x)})", _ATOM


def _binary(e: Binary, w: _Writer) -> tuple[str, int]:
    if e.op not in _INFIX:
        return f"{e.op}({w.list((e.a, e.b))})", _ATOM
    sign, strength = _INFIX[e.op]
    left = strength + 1 if strength == _COMPARE else strength
    right = w.within(e.b, strength + 1)
    if e.op == "add" and type(e.b) is Const and right.startswith("-"):
        sign, right = "-", right[1:]
    return f"{w.within(e.a, left)} {sign} {right}", strength


def _select(e: Select, w: _Writer) -> tuple[str, int]:
    return f"select({w.list((e.cond, e.a, e.b))})", _ATOM


def _cast(e: Cast, w: _Writer) -> tuple[str, int]:
    return f"{e.dtype}({w.text(e.x)})", _ATOM


def _read(e: Read, w: _Writer) -> tuple[str, int]:
    # Every index is an int64; that a narrower integer was widened for it goes without saying.
    indices = tuple(x.x if type(x) is Cast and is_int(x.x.dtype) else x for x in e.indices)
    return e.tensor.name + w.subscript(indices), _ATOM


def _reduce(e: Reduce, w: _Writer) -> tuple[str, int]:
    values = w.list(e.values)
    if len(e.values) == 2:
        # The index that argmax keeps is shown where it is not simply the axis.
        values = w.list(e.values[:1]) if e.values[1] is e.axes[0] else f"({values})"
    return f"{e.op}({values}, axis=[{w.list(e.axes)}])", _ATOM


_FORMAT: dict[type[Expr], Callable[[Any, _Writer], tuple[str, int]]] = {
    Var: _var,
    Axis: _var,
    Const: _const,
    Unary: _unary,
    Binary: _binary,
    Select: _select,
    Cast: _cast,
    Read: _read,
    Reduce: _reduce,
}
