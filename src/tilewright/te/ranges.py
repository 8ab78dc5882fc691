"""The values that an index expression reaches over its axes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tilewright.te.dtype import DTYPES, is_int
from tilewright.te.expr import Axis, Binary, Cast, Const, Expr, Unary, Var
from tilewright.te.transform import visit

Range = tuple[int, int]

# Where an interval is only a bound, as for i - i % 4, the index is evaluated at up to so many points, and its parts to
# so many values together.
_MAX_POINTS = 1 << 20
_MAX_VALUES = 1 << 25


def index_range(index: Expr) -> Range | None:
    """The least and greatest value of `index`; None where it depends on data or on a select.

    >>> from tilewright import te
    >>> i, k = te.reduce_axis(14, name="i"), te.reduce_axis(3, name="k")
    >>> index_range(i * 2 + k - 1)
    (-1, 27)
    """
    bound = _interval(index)
    if bound is None or _is_exact(index):
        return bound
    return _enumerated(index) or bound


def range_outside(index: Expr, extent: int) -> Range | None:
    """What `index` reaches if that leaves 0..extent - 1, else None."""
    bound = _interval(index)
    if bound is None or _within(bound, extent):
        return None
    # Only now is the exact range worth its price.
    reached = index_range(index)
    return None if reached is None or _within(reached, extent) else reached


def _within(values: Range, extent: int) -> bool:
    return values[0] >= 0 and values[1] < extent


def _interval(index: Expr) -> Range | None:
    memo: dict[int, Range | None] = {}

    def go(e: Expr) -> Range | None:
        if id(e) not in memo:
            memo[id(e)] = of_node(e)
        return memo[id(e)]

    def of_node(e: Expr) -> Range | None:
        if isinstance(e, Axis):
            return 0, e.extent - 1
        if isinstance(e, Const):
            return int(e.value), int(e.value)
        if isinstance(e, Cast):
            inner = go(e.x) if is_int(e.x.dtype) else None
            return inner if inner is not None and _fits(inner, e.dtype) else None
        if isinstance(e, Unary) and e.op == "neg":
            inner = go(e.x)
            return None if inner is None else (-inner[1], -inner[0])
        if not isinstance(e, Binary) or e.op not in _COMBINE:
            return None
        a, b = go(e.a), go(e.b)
        if a is None or b is None:
            return None
        result = _COMBINE[e.op](a, b)
        return result if result is not None and _fits(result, e.dtype) else None

    return go(index)


def _fits(values: Range, dtype: str) -> bool:
    """Whether the type holds the range, so that nothing wraps around."""
    kind = DTYPES[dtype]
    if kind.kind == "uint":
        return values[0] >= 0 and values[1] < 1 << kind.bits
    return -(1 << (kind.bits - 1)) <= values[0] and values[1] < 1 << (kind.bits - 1)


def _product(a: Range, b: Range) -> Range:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient(a: Range, b: Range) -> Range | None:
    if b[0] <= 0 <= b[1]:
        return None
    corners = [x // y for x in a for y in b]
    return min(corners), max(corners)


def _remainder(a: Range, b: Range) -> Range | None:
    if b[0] <= 0:
        return None
    if a[0] >= 0 and a[1] < b[0]:
        return a
    return 0, b[1] - 1


_COMBINE: dict[str, Callable[[Range, Range], Range | None]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _product,
    "floordiv": _quotient,
    "mod": _remainder,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}


def _is_exact(index: Expr) -> bool:
    """Whether the interval is certainly reached: nothing stands in two places, and no remainder narrows a range."""
    seen: set[int] = set()

    def go(e: Expr) -> bool:
        if isinstance(e, Const):
            return True
        if id(e) in seen:
            return False
        seen.add(id(e))
        if isinstance(e, Binary):
            return e.op != "mod" and go(e.a) and go(e.b)
        return isinstance(e, Var) or (isinstance(e, Cast | Unary) and go(e.x))

    return go(index)


def _enumerated(index: Expr) -> Range | None:
    nodes: list[Expr] = []
    visit(index, nodes.append)
    axes = [e for e in nodes if isinstance(e, Axis)]
    num_points = math.prod(axis.extent for axis in axes)
    if num_points > _MAX_POINTS or num_points * len(nodes) > _MAX_VALUES:
        return None
    grids = np.ogrid[tuple(slice(axis.extent) for axis in axes)] if axes else []
    values = _evaluate(index, dict(zip(axes, grids, strict=True)))
    return int(values.min()), int(values.max())


_POINTWISE: dict[str, Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "min": np.minimum,
    "max": np.maximum,
}


def _evaluate(index: Expr, axes: dict[Axis, NDArray[np.int64]]) -> NDArray[np.int64]:
    """`index` at every point; only called where intervals showed that nothing wraps around or divides by zero."""
    memo: dict[int, NDArray[np.int64]] = {id(axis): values for axis, values in axes.items()}

    def go(e: Expr) -> NDArray[np.int64]:
        if id(e) not in memo:
            memo[id(e)] = of_node(e)
        return memo[id(e)]

    def of_node(e: Expr) -> NDArray[np.int64]:
        if isinstance(e, Const):
            return np.asarray(e.value, np.int64)
        if isinstance(e, Cast):
            return go(e.x)
        if isinstance(e, Unary):
            return -go(e.x)
        assert isinstance(e, Binary)
        return _POINTWISE[e.op](go(e.a), go(e.b))

    return go(index)
