"""The functions of the expression language. Several shadow a builtin on purpose: `te.sum` reads as it means."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import ExpressionError
from tilewright.te.expr import DOT4, Axis, Expr, ExprLike, as_expr, binary, check_reduce_axes, reduce, unary


def sum(value: ExprLike, axis: Axis | Sequence[Axis]) -> Expr:
    """The sum of `value` over one reduce axis or several.

    >>> from tilewright import te
    >>> A, k = te.placeholder((4, 8), name="A"), te.reduce_axis(8, name="k")
    >>> print(te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="S"))
    S[i] = sum(A[i, k], axis=[k])
    """
    return reduce("sum", (as_expr(value),), axis)


def prod(value: ExprLike, axis: Axis | Sequence[Axis]) -> Expr:
    """The product of `value` over the reduce axes."""
    return reduce("prod", (as_expr(value),), axis)


def max(value: ExprLike, axis: Axis | Sequence[Axis]) -> Expr:
    """The largest `value` over the reduce axes; NaN if any is NaN. Of two values: `maximum`."""
    return reduce("max", (as_expr(value),), axis)


def min(value: ExprLike, axis: Axis | Sequence[Axis]) -> Expr:
    """The smallest `value` over the reduce axes; NaN if any is NaN. Of two values: `minimum`."""
    return reduce("min", (as_expr(value),), axis)


def argmax(value: ExprLike, axis: Axis | Sequence[Axis]) -> Expr:
    """The index (int64) of the first largest `value`; over several axes, their row-major index.

    A NaN counts as larger than every number, as in NumPy.
    """
    return _arg_reduce("argmax", value, axis)


def argmin(value: ExprLike, axis: Axis | Sequence[Axis]) -> Expr:
    """The index (int64) of the first smallest `value`; over several axes, their row-major index.

    A NaN counts as smaller than every number, as in NumPy.
    """
    return _arg_reduce("argmin", value, axis)


def _arg_reduce(op: str, value: ExprLike, axis: Axis | Sequence[Axis]) -> Expr:
    axes = check_reduce_axes(op, axis)
    index: Expr = axes[0]
    for k in axes[1:]:
        index = index * k.extent + k
    return reduce(op, (as_expr(value), index), axes)


def exp(x: ExprLike) -> Expr:
    """e to the power of `x`."""
    return unary("exp", x)


def log(x: ExprLike) -> Expr:
    """The natural logarithm."""
    return unary("log", x)


def sqrt(x: ExprLike) -> Expr:
    """The square root; NaN below zero."""
    return unary("sqrt", x)


def rsqrt(x: ExprLike) -> Expr:
    """1 / sqrt(x)."""
    return unary("rsqrt", x)


def tanh(x: ExprLike) -> Expr:
    """The hyperbolic tangent."""
    return unary("tanh", x)


def sin(x: ExprLike) -> Expr:
    """The sine of an angle in radians; a float64 angle above 2**45 has none (NaN)."""
    return unary("sin", x)


def cos(x: ExprLike) -> Expr:
    """The cosine of an angle in radians; a float64 angle above 2**45 has none (NaN)."""
    return unary("cos", x)


def tan(x: ExprLike) -> Expr:
    """The tangent of an angle in radians; a float64 angle above 2**45 has none (NaN)."""
    return unary("tan", x)


def asin(x: ExprLike) -> Expr:
    """The angle from -pi/2 to pi/2 with this sine."""
    return unary("asin", x)


def acos(x: ExprLike) -> Expr:
    """The angle from 0 to pi with this cosine."""
    return unary("acos", x)


def atan(x: ExprLike) -> Expr:
    """The angle from -pi/2 to pi/2 with this tangent."""
    return unary("atan", x)


def sinh(x: ExprLike) -> Expr:
    """The hyperbolic sine."""
    return unary("sinh", x)


def cosh(x: ExprLike) -> Expr:
    """The hyperbolic cosine."""
    return unary("cosh", x)


def asinh(x: ExprLike) -> Expr:
    """The inverse of the hyperbolic sine."""
    return unary("asinh", x)


def acosh(x: ExprLike) -> Expr:
    """The inverse of the hyperbolic cosine; NaN below 1."""
    return unary("acosh", x)


def atanh(x: ExprLike) -> Expr:
    """The inverse of the hyperbolic tangent; NaN beyond -1 and 1."""
    return unary("atanh", x)


def erf(x: ExprLike) -> Expr:
    """The error function."""
    return unary("erf", x)


def sigmoid(x: ExprLike) -> Expr:
    """1 / (1 + exp(-x))."""
    return unary("sigmoid", x)


def floor(x: ExprLike) -> Expr:
    """The largest whole number not above `x`, as a float."""
    return unary("floor", x)


def ceil(x: ExprLike) -> Expr:
    """The smallest whole number not below `x`, as a float."""
    return unary("ceil", x)


def abs(x: ExprLike) -> Expr:
    """The absolute value of a float or an integer."""
    return unary("abs", x)


def pow(x: ExprLike, y: ExprLike) -> Expr:
    """`x ** y`, of floats."""
    return binary("pow", x, y)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    """The larger of two values; NaN if either is NaN. Over a reduce axis: `max`."""
    return binary("max", a, b)


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    """The smaller of two values; NaN if either is NaN. Over a reduce axis: `min`."""
    return binary("min", a, b)


def dot4(a: ExprLike, b: ExprLike) -> Expr:
    """The sum of four products of bytes: those of the word `a`, unsigned, with those of the word `b`, signed.

    A word is an int32 that holds four neighbouring elements of uint8 or int8, the first in its lowest byte. Summed over
    words, this is one instruction for each vector of them where the target has it.

    >>> from tilewright import te
    >>> A, B = te.placeholder((5, 16), "int32", "A"), te.placeholder((16, 7), "int32", "B")
    >>> k = te.reduce_axis(16, name="k")
    >>> te.compute((5, 7), lambda i, j: te.sum(te.dot4(A[i, k], B[k, j]), axis=k), name="C")
    <Tensor C[i, j] = sum(dot4(A[i, k], B[k, j]), axis=[k])>
    """
    return binary(DOT4, a, b)


def floordiv(a: ExprLike, b: ExprLike) -> Expr:
    """`a // b` of integers, rounded down; 0 where `b` is 0, as in NumPy."""
    return binary("floordiv", a, b)


def floormod(a: ExprLike, b: ExprLike) -> Expr:
    """`a % b` of integers, with the sign of `b`; 0 where `b` is 0, as in NumPy."""
    return binary("mod", a, b)


def equal(a: ExprLike, b: ExprLike) -> Expr:
    """`a == b` as a bool element; nodes themselves compare by identity."""
    return binary("eq", a, b)


def not_equal(a: ExprLike, b: ExprLike) -> Expr:
    """`a != b` as a bool element; nodes themselves compare by identity."""
    return binary("ne", a, b)


def logical_and(first: ExprLike, *others: ExprLike) -> Expr:
    """Whether all of the conditions hold."""
    return _logical("and", first, others)


def logical_or(first: ExprLike, *others: ExprLike) -> Expr:
    """Whether any of the conditions holds."""
    return _logical("or", first, others)


def _logical(op: str, first: ExprLike, others: tuple[ExprLike, ...]) -> Expr:
    result = as_expr(first)
    if result.dtype != "bool":
        raise ExpressionError(f"logical_{op} needs bools, got {result.dtype} in `{result}`; compare the value first")
    for other in others:
        result = binary(op, result, other)
    return result


def logical_not(x: ExprLike) -> Expr:
    """Whether the condition does not hold; the same as ~x."""
    return unary("not", x)
