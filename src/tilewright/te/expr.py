"""Scalar expressions: the immutable nodes that tensor expressions and loop nests are made of.

Nodes compare by identity; `te.structure` compares computations. Operators on nodes build new nodes, so
`a * b + 1` reads as it means. Read `te/tensor.py` next.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from tilewright.errors import ExpressionError
from tilewright.te.dtype import DTYPES, check_dtype, is_float, is_int, promote
from tilewright.te.unevaluated import Unevaluated

if TYPE_CHECKING:
    from tilewright.te.tensor import Tensor

ExprLike: TypeAlias = "Expr | int | float | bool"

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
# The operators of Python by the names that NumPy has for them.
_OPERATORS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "power": "pow",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "bitwise_and": "and",
    "bitwise_or": "or",
}
REDUCTIONS = ("sum", "prod", "max", "min", "argmax", "argmin")
_ROUNDINGS = ("floor", "ceil")
FLOAT_FUNCTIONS = (
    *("exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", *_ROUNDINGS),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
)
_UNARY = frozenset(("neg", "abs", "not", *FLOAT_FUNCTIONS))
DOT4 = "dot4"
_BINARY = frozenset((*_OPERATORS.values(), "max", "min", DOT4, *COMPARISONS))
COSTLY_FUNCTIONS = frozenset((*FLOAT_FUNCTIONS, "pow")).difference(_ROUNDINGS)
"""Those that take many instructions."""
ELEMENT_FUNCTIONS = (
    *(*FLOAT_FUNCTIONS, "pow", "abs", "maximum", "minimum", "select", "equal", "not_equal"),
    *("logical_and", "logical_or", "logical_not", DOT4),
)
"""The functions of `te` that take elements and give one."""


_MOST_BITS_SHOWN = 128


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Expr(Unevaluated):
    """A scalar expression of element type `dtype`."""

    dtype: str

    def __add__(self, other: ExprLike) -> Expr:
        return binary("add", self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return binary("add", other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return binary("sub", self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return binary("sub", other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return binary("mul", self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return binary("mul", other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return binary("div", self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return binary("div", other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return binary("floordiv", other, self)

    def __mod__(self, other: ExprLike) -> Expr:
        return binary("mod", self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return binary("mod", other, self)

    def __pow__(self, other: ExprLike) -> Expr:
        return binary("pow", self, other)

    def __rpow__(self, other: ExprLike) -> Expr:
        return binary("pow", other, self)

    def __neg__(self) -> Expr:
        return unary("neg", self)

    def __abs__(self) -> Expr:
        return unary("abs", self)

    def __lt__(self, other: ExprLike) -> Expr:
        return binary("lt", self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return binary("le", self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return binary("gt", self, other)

    def __ge__(self, other: ExprLike) -> Expr:
        return binary("ge", self, other)

    def __and__(self, other: ExprLike) -> Expr:
        return binary("and", self, other)

    def __rand__(self, other: ExprLike) -> Expr:
        return binary("and", other, self)

    def __or__(self, other: ExprLike) -> Expr:
        return binary("or", self, other)

    def __ror__(self, other: ExprLike) -> Expr:
        return binary("or", other, self)

    def __invert__(self) -> Expr:
        return unary("not", self)

    def __bool__(self) -> bool:
        raise ExpressionError(
            f"the expression `{self}` has no truth value while it is being built; use te.select(cond, a, b) for if, "
            "te.maximum and te.minimum for max and min, & | ~ for and, or, not, te.equal(a, b) for =="
        )

    def __getitem__(self, index: object) -> NoReturn:
        raise ExpressionError(
            f"the expression `{self}` is one element and has no index; give all indices together, as in A[i, j]"
        )

    def _refuse_operator(self, *others: object) -> NoReturn:
        raise ExpressionError(
            f"the expression `{self}` has none of the operators << >> ^ @, nor round and divmod; write it with "
            "+ - * / // % ** & | ~ and the functions of te"
        )

    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __xor__ = __rxor__ = _refuse_operator
    __matmul__ = __rmatmul__ = __divmod__ = __rdivmod__ = __round__ = _refuse_operator

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """A NumPy number on the left of an operator asks NumPy first, and so comes here."""
        if method == "__call__" and not options and ufunc.__name__ in _OPERATORS:
            return binary(_OPERATORS[ufunc.__name__], *inputs)
        if ufunc.__name__ in ("equal", "not_equal"):
            return ufunc.__name__ == "not_equal"  # as objects, which `==` compares
        return super(Expr, self).__array_ufunc__(ufunc, method, *inputs, **options)

    def _described(self) -> str:
        return f"the expression `{self}`"

    def __str__(self) -> str:
        from tilewright.te.printer import format_expr

        return format_expr(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.dtype}: {self}>"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Var(Expr):
    """A loop or axis variable; compared by identity."""

    name: str


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Axis(Var):
    """A dimension of a compute: its variable and the number of values it takes, from zero."""

    extent: int
    is_reduce: bool


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Const(Expr):
    """A number; in a half type it keeps float32's precision, since half types compute in float32."""

    value: int | float | bool


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Unary(Expr):
    """`op x`, or the function `op` of `x`; the result has the type of `x`."""

    op: str
    x: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Binary(Expr):
    """`a op b`. The operands share one type; comparisons give bool."""

    op: str
    a: Expr
    b: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Select(Expr):
    """`a` where `cond` holds, else `b`. The side not taken is never read from memory out of bounds."""

    cond: Expr
    a: Expr
    b: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Cast(Expr):
    """`x` converted to `dtype`."""

    x: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Read(Expr):
    """One element of a tensor."""

    tensor: Tensor
    indices: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Reduce(Expr):
    """A reduction of `values` over `axes`. argmax and argmin hold (value, index), all others one value."""

    op: str
    values: tuple[Expr, ...]
    axes: tuple[Axis, ...]


def as_expr(value: ExprLike, dtype: str | None = None) -> Expr:
    """`value` as an expression; a Python number takes `dtype` where that can hold it."""
    if isinstance(value, Expr):
        return value
    value = _number_of(value)
    if isinstance(value, bool | np.bool_):
        return Const("bool", bool(value)) if dtype in (None, "bool") else constant(int(value), dtype)
    if isinstance(value, int | np.integer):
        return constant(int(value), dtype if dtype not in (None, "bool") else "int64")
    if isinstance(value, float | np.floating):
        return constant(float(value), dtype if dtype is not None and is_float(dtype) else "float32")
    raise ExpressionError(
        f"cannot use {value!r} of type {type(value).__name__} in an expression; "
        "use a number, an axis, or an element such as A[i, j]"
    )


def _number_of(value: Any) -> Any:
    """The number in an array of no dimensions, which NumPy makes of numbers that it compares."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def constant(value: float, dtype: str) -> Const:
    """A constant of the given type; an integer that does not fit the type is an error."""
    kind = DTYPES[check_dtype(dtype)]
    if not isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
        raise ExpressionError(f"a constant is a number, got {value!r} of type {type(value).__name__}")
    if kind.kind == "float":
        return Const(dtype, _as_float(value, dtype))
    if kind.kind == "bool":
        return Const(dtype, bool(value))
    if not _is_whole(value):
        raise ExpressionError(f"constant {value} is not a whole number and cannot have type {dtype}")
    low, high = (0, 2**kind.bits - 1) if kind.kind == "uint" else (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1)
    if not low <= value <= high:
        raise ExpressionError(
            f"constant {_shown(value)} does not fit {dtype} ({low} to {high}); cast the other side first"
        )
    return Const(dtype, int(value))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer | np.bool_) or float(value).is_integer()


def _as_float(value: float, dtype: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ExpressionError(f"constant {_shown(value)} is too large for a number of type {dtype}") from None


def _shown(value: float) -> str:
    """A number as text, which Python refuses to make of the largest."""
    num_bits = int(value).bit_length()
    return f"{value}" if num_bits <= _MOST_BITS_SHOWN else f"of {num_bits} bits"


def cast(x: ExprLike, dtype: str) -> Expr:
    """`x` converted to `dtype` (float to integer truncates towards zero)."""
    check_dtype(dtype)
    if not isinstance(x, Expr):
        return constant(x, dtype)
    return x if x.dtype == dtype else Cast(dtype, x)


def unary(op: str, x: ExprLike) -> Expr:
    """Build the operator or function `op` of `x`."""
    e = as_expr(x)
    _check_op(op, _UNARY)
    if op == "not" and e.dtype != "bool":
        raise ExpressionError(f"~ needs a bool, got {e.dtype} in `{e}`; compare it first, as in ~(x > 0)")
    if op in ("neg", "abs") and e.dtype == "bool":
        raise ExpressionError(f"{op} of the bool `{e}`; use ~ for logical not, or te.cast(x, 'int32')")
    if op in FLOAT_FUNCTIONS and not is_float(e.dtype):
        raise ExpressionError(f"{op} needs a float, got {e.dtype} in `{e}`; use te.cast(x, 'float32')")
    return Unary(e.dtype, op, e)


def binary(op: str, a: ExprLike, b: ExprLike) -> Expr:
    """Build `a op b`, bringing both sides to one type."""
    _check_op(op, _BINARY)
    ea, eb = _same_type(a, b)
    dtype = ea.dtype
    if op in ("and", "or") and dtype != "bool":
        raise ExpressionError(f"`{ea}` and `{eb}`: & and | need bools, got {dtype}; compare the values first")
    if op in ("add", "sub", "mul", "div", "floordiv", "mod", "pow") and dtype == "bool":
        raise ExpressionError(f"`{ea}` and `{eb}`: arithmetic on bools; use te.cast(x, 'int32')")
    if op in ("div", "pow") and not is_float(dtype):
        raise ExpressionError(f"{op} of `{ea}` and `{eb}` needs floats, got {dtype}; use // or te.cast")
    if op in ("floordiv", "mod") and not is_int(dtype):
        raise ExpressionError(f"{op} of `{ea}` and `{eb}` needs integers, got {dtype}; use te.floor(a / b)")
    if op == DOT4 and dtype != "int32":
        raise ExpressionError(f"{op} of `{ea}` and `{eb}` needs words of four bytes as int32, got {dtype}")
    return Binary("bool" if op in COMPARISONS else dtype, op, ea, eb)


def _check_op(op: str, known: Collection[str]) -> None:
    if op not in known:
        raise ExpressionError(f"unknown operator {op!r}; use one of: {', '.join(sorted(known))}")


def _same_type(a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    if isinstance(a, Expr) and not isinstance(b, Expr):
        eb = as_expr(b, a.dtype)
        ea: Expr = a
    elif isinstance(b, Expr) and not isinstance(a, Expr):
        ea, eb = as_expr(a, b.dtype), b
    else:
        ea, eb = as_expr(a), as_expr(b)
    dtype = promote(ea.dtype, eb.dtype)
    return cast(ea, dtype), cast(eb, dtype)


def select(cond: ExprLike, a: ExprLike, b: ExprLike) -> Expr:
    """`a` where `cond` holds, else `b`."""
    if isinstance(cond, bool | np.bool_):
        raise ExpressionError(
            f"the condition of select is the Python value {cond}; "
            "`==` and `!=` compare expressions as objects: use te.equal(a, b) or te.not_equal(a, b)"
        )
    c = as_expr(cond)
    if c.dtype != "bool":
        raise ExpressionError(f"the condition of select must be a bool, got {c.dtype} in `{c}`")
    ea, eb = _same_type(a, b)
    return Select(ea.dtype, c, ea, eb)


def reduce(op: str, values: Sequence[Expr], axis: Axis | Sequence[Axis]) -> Expr:
    """Build the reduction `op` of `values` over one axis or several."""
    _check_op(op, REDUCTIONS)
    axes = check_reduce_axes(op, axis)
    num_values = 2 if op in ("argmax", "argmin") else 1
    if len(values) != num_values:
        raise ExpressionError(f"te.{op} reduces {num_values} value{'s' * (num_values > 1)}, got {len(values)}")
    if num_values == 2 and values[1].dtype != "int64":
        raise ExpressionError(f"te.{op} keeps an index, which must be an int64, got {values[1].dtype}")
    if op not in ("argmax", "argmin", "max", "min") and values[0].dtype == "bool":
        raise ExpressionError(f"te.{op} of a bool; use te.cast(x, 'int32') first")
    return Reduce(values[-1].dtype, op, tuple(values), axes)


def check_reduce_axes(op: str, axis: Axis | Sequence[Axis]) -> tuple[Axis, ...]:
    """One axis or several as a tuple, each a reduce axis and named once."""
    axes = tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    if not axes:
        raise ExpressionError(f"te.{op} needs at least one reduce axis; make one with te.reduce_axis(extent)")
    for k in axes:
        if not isinstance(k, Axis) or not k.is_reduce:
            elementwise = f", or use te.{op}imum(a, b) for two values" if op in ("max", "min") else ""
            raise ExpressionError(
                f"te.{op} reduces over reduce axes, got `{k}`; make one with te.reduce_axis(extent){elementwise}"
            )
    if len(set(map(id, axes))) != len(axes):
        raise ExpressionError(f"te.{op} over {', '.join(k.name for k in axes)} names the same reduce axis twice")
    return axes
