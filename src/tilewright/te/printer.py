"""Expressions and tensors as text: Python syntax with no more parentheses than it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.te.dtype import is_float, is_int
from tilewright.te.expr import Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Unary, Var

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


def format_expr(expr: Expr) -> str:
    """The expression as text.

    >>> from tilewright import te
    >>> i = te.reduce_axis(8, name="i")
    >>> format_expr((i + 1) * 2 - i // 4)
    '(i + 1) * 2 - i // 4'
    """
    return _format(expr)[0]


def format_tensor(tensor: Tensor) -> str:
    """A placeholder as `A: float32[4, 8]`, a computed tensor as its definition `C[i] = A[i] + 1.0`."""
    if tensor.body is None:
        mark = " constant" if tensor.is_constant else ""
        return f"{tensor.name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]{mark}"
    return f"{tensor.name}{_subscript(tensor.axes)} = {format_expr(tensor.body)}"


def format_number(value: int | float | bool, dtype: str) -> str:
    """The shortest text that reads back as the same number of type `dtype`; half types compute in float32."""
    if is_float(dtype) and dtype != "float64":
        with np.errstate(over="ignore"):
            return str(np.float32(value))
    return repr(value)


def _format(e: Expr) -> tuple[str, int]:
    """The text of `e` and how tightly its outermost operator binds."""
    return _FORMAT[type(e)](e)


def _within(e: Expr, strength: int) -> str:
    text, own = _format(e)
    return f"({text})" if own < strength else text


def _list(exprs: tuple[Expr, ...]) -> str:
    return ", ".join(_format(e)[0] for e in exprs)


def _subscript(indices: tuple[Expr, ...]) -> str:
    return f"[{_list(indices)}]" if indices else "[()]"


def _var(e: Var) -> tuple[str, int]:
    return e.name, _ATOM


def _const(e: Const) -> tuple[str, int]:
    text = format_number(e.value, e.dtype)
    return text, _SIGN if text.startswith("-") else _ATOM


def _unary(e: Unary) -> tuple[str, int]:
    if e.op in _PREFIX:
        return _PREFIX[e.op] + _within(e.x, _SIGN), _SIGN
    return f"{e.op}({_format(e.x)[0]})", _ATOM


def _binary(e: Binary) -> tuple[str, int]:
    if e.op not in _INFIX:
        return f"{e.op}({_list((e.a, e.b))})", _ATOM
    sign, strength = _INFIX[e.op]
    left = strength + 1 if strength == _COMPARE else strength
    right = _within(e.b, strength + 1)
    if e.op == "add" and type(e.b) is Const and right.startswith("-"):
        sign, right = "-", right[1:]
    return f"{_within(e.a, left)} {sign} {right}", strength


def _select(e: Select) -> tuple[str, int]:
    return f"select({_list((e.cond, e.a, e.b))})", _ATOM


def _cast(e: Cast) -> tuple[str, int]:
    return f"{e.dtype}({_format(e.x)[0]})", _ATOM


def _read(e: Read) -> tuple[str, int]:
    # Every index is an int64; that a narrower integer was widened for it goes without saying.
    indices = tuple(x.x if type(x) is Cast and is_int(x.x.dtype) else x for x in e.indices)
    return e.tensor.name + _subscript(indices), _ATOM


def _reduce(e: Reduce) -> tuple[str, int]:
    values = _list(e.values)
    if len(e.values) == 2:
        # The index that argmax keeps is shown where it is not simply the axis.
        values = _list(e.values[:1]) if e.values[1] is e.axes[0] else f"({values})"
    return f"{e.op}({values}, axis=[{_list(e.axes)}])", _ATOM


_FORMAT: dict[type[Expr], Callable[[Any], tuple[str, int]]] = {
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
