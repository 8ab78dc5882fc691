"""Intervals of integers, and what the operations of index arithmetic make of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
Number: TypeAlias = "int | IntArray"
Flag: TypeAlias = "bool | npt.NDArray[np.bool_]"

FAR = 1 << 40
"""Farther than any index, and safe from overflow when it is multiplied by one."""


class Interval(NamedTuple):
    """The integers from `low` to `high`, both included.

    Its ends are typed as the ints that they mostly are; `interval` makes one whose ends are arrays.
    """

    low: int
    high: int


def interval(low: int | npt.NDArray[Any], high: int | npt.NDArray[Any]) -> Interval:
    """An interval whose ends may be arrays."""
    return Interval(low, high)  # type: ignore[arg-type]


EVERYTHING = Interval(-FAR, FAR)


@overload
def minimum(a: int, b: int) -> int: ...
@overload
def minimum(a: Number, b: Number) -> Number: ...
def minimum(a: Number, b: Number) -> Number:
    """The smaller of two numbers, or of each two."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


@overload
def maximum(a: int, b: int) -> int: ...
@overload
def maximum(a: Number, b: Number) -> Number: ...
def maximum(a: Number, b: Number) -> Number:
    """The larger of two numbers, or of each two."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b)


def ceil_div(a: Number, b: Number) -> Number:
    """The quotient, rounded up."""
    return -(-a // b)


def is_array(number: object) -> bool:
    """Whether this is a number for each candidate."""
    return isinstance(number, np.ndarray)


def is_anywhere(condition: Flag) -> bool:
    """Whether a condition on numbers holds, for one candidate at least."""
    return condition if isinstance(condition, bool) else bool(np.any(condition))


def choose(where: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`."""
    if isinstance(where, np.ndarray):
        return np.where(where, a, b)
    return a if where else b


def _add(a: Interval, b: Interval) -> Interval:
    return Interval(a.low + b.low, a.high + b.high)


def _subtract(a: Interval, b: Interval) -> Interval:
    return Interval(a.low - b.high, a.high - b.low)


def _multiply(a: Interval, b: Interval) -> Interval:
    return _between_corners(operator.mul, a, b)


def _floordiv(a: Interval, b: Interval) -> Interval | None:
    """None where the divisor may be zero."""
    if is_anywhere((b.low <= 0) & (b.high >= 0)):
        return None
    return _between_corners(operator.floordiv, a, b)


def _between_corners(function: Callable[[int, int], int], a: Interval, b: Interval) -> Interval:
    """What a function reaches that only rises, or only falls, along each operand."""
    first, last = function(a.low, b.low), function(a.high, b.low)
    low, high = minimum(first, last), maximum(first, last)
    if b.low is b.high:
        return Interval(low, high)
    first, last = function(a.low, b.high), function(a.high, b.high)
    return Interval(minimum(low, minimum(first, last)), maximum(high, maximum(first, last)))


def _modulo(a: Interval, b: Interval) -> Interval | None:
    """None where the divisor may be negative or zero. What stays between two multiples of the divisor is exact."""
    if is_anywhere(b.low <= 0):
        return None
    if b.low is b.high and not is_array(a.low) and a.low == 0:
        return Interval(0, minimum(a.high, b.high - 1))
    first, last = a.low // b.low, a.high // b.low
    is_exact = (first == last) & ((b.low == b.high) | (first == 0))
    return Interval(choose(is_exact, a.low % b.low, 0), choose(is_exact, a.high % b.low, b.high - 1))


def _minimum(a: Interval, b: Interval) -> Interval:
    return Interval(minimum(a.low, b.low), minimum(a.high, b.high))


def _maximum(a: Interval, b: Interval) -> Interval:
    return Interval(maximum(a.low, b.low), maximum(a.high, b.high))


_RULES: dict[str, Callable[[Interval, Interval], Interval | None]] = {
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "floordiv": _floordiv,
    "mod": _modulo,
    "min": _minimum,
    "max": _maximum,
}
OPERATIONS = frozenset(_RULES)
"""The operations of index arithmetic."""


def combine_intervals(op: str, a: Interval, b: Interval) -> Interval | None:
    """What `op` reaches where its operands are anywhere in `a` and `b`; None where it may divide by zero.

    >>> combine_intervals("floordiv", Interval(3, 9), Interval(4, 4))
    Interval(low=0, high=2)
    >>> combine_intervals("mod", Interval(5, 7), Interval(4, 4))
    Interval(low=1, high=3)
    """
    return _RULES[op](a, b)
