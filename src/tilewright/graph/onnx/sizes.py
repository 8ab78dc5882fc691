"""Sizes that a user gives for inputs and dimensions: what may be given, and what follows from it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tilewright.errors import ModelError, UsageError

Shapes: TypeAlias = Mapping[str, int | Sequence[int]]

_LARGEST_SIZE = 2**31 - 1
# Longer names of dimensions are no sums of others.
_LONGEST_SUM = 100

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def checked_shapes(shapes: object) -> dict[str, int | tuple[int, ...]]:
    """The same with plain integers; UsageError or ModelError for what is no size."""
    if not isinstance(shapes, Mapping):
        raise UsageError(
            f"shapes is {shapes!r}; give sizes by the names of inputs and dimensions, as "
            f"shapes={{'input': (1, 3, 224, 224), 'batch': 4}}"
        )
    return {_checked_name(name): _checked(name, value) for name, value in shapes.items()}


def derived_size(name: str, sizes: Mapping[str, int]) -> int | None:
    """The size of a dimension whose name computes it from others that are known; None if it does not.

    >>> derived_size("past + length", {"past": 7, "length": 1})
    8
    """
    if len(name) > _LONGEST_SUM:
        return None
    try:
        size = _value(ast.parse(name.strip(), mode="eval").body, sizes)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return size if size is not None and 0 <= size <= _LARGEST_SIZE else None


def _value(expression: ast.expr, sizes: Mapping[str, int]) -> int | None:
    match expression:
        case ast.Name(id=name):
            return sizes.get(name)
        case ast.Constant(value=int(value)):
            return value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            a, b = _value(left, sizes), _value(right, sizes)
            return None if a is None or b is None else _OPERATIONS[type(op)](a, b)
        case _:
            return None


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise UsageError(f"shapes are given by the names of inputs and dimensions, got {name!r}; give a str")
    return name


def _checked(name: str, given: object) -> int | tuple[int, ...]:
    if isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray):
        return tuple(_size(name, size, given) for size in given)
    return _size(name, given, given)


def _size(name: str, size: object, given: object) -> int:
    said = f"{name} is given as {given!r}"
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise UsageError(f"{said}; a size is a whole number, and a shape a tuple of them, such as (1, 3, 224, 224)")
    whole = operator.index(size)
    if whole < 0:
        raise ModelError(f"{said}, but a dimension cannot be negative; give the size that it has when the network runs")
    if whole > _LARGEST_SIZE:
        raise ModelError(f"{said}, but a dimension must be below 2**31; give a smaller one")
    return whole
