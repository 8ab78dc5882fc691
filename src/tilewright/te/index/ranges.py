"""The values that an index expression reaches over its axes."""

from __future__ import annotations

import math

import numpy as np

from tilewright.te.dtype import DTYPES
from tilewright.te.expr import Axis, Binary, Cast, Const, Expr, Unary, Var
from tilewright.te.index.algebra import Algebra
from tilewright.te.index.interval import Interval, combine_intervals, interval, is_anywhere
from tilewright.te.transform import visit

# Where an interval is only a bound, as for i - i % 4, the index is evaluated at up to so many points, and its parts to
# so many values together.
_MAX_POINTS = 1 << 20
_MAX_VALUES = 1 << 25


class Intervals(Algebra[Interval]):
    """What index expressions reach. Axes run from zero to their ends, unless others are given; the rest is unknown."""

    def __init__(self, given: dict[Axis, Interval] | None = None) -> None:
        super().__init__()
        self.given = given or {}

    def variable(self, var: Var) -> Interval | None:
        if not isinstance(var, Axis):
            return None
        return self.given.get(var) or Interval(0, var.extent - 1)

    def constant(self, value: int) -> Interval:
        return Interval(value, value)

    def combine(self, op: str, a: Interval, b: Interval) -> Interval | None:
        return combine_intervals(op, a, b)

    def held(self, value: Interval, dtype: str) -> Interval | None:
        """None unless the type holds the whole interval."""
        kind = DTYPES[dtype]
        low = 0 if kind.kind == "uint" else -(1 << kind.bits - 1)
        return None if is_anywhere((value.low < low) | (value.high >= low + (1 << kind.bits))) else value


def index_range(index: Expr) -> Interval | None:
    """The least and greatest value of `index`; None where it depends on data or on a select.

    >>> from tilewright import te
    >>> i, k = te.reduce_axis(14, name="i"), te.reduce_axis(3, name="k")
    >>> index_range(i * 2 + k - 1)
    Interval(low=-1, high=27)
    """
    bound = Intervals().of(index)
    if bound is None or _is_exact(index):
        return bound
    return _evaluated(index) or bound


def range_outside(index: Expr, extent: int) -> Interval | None:
    """What `index` reaches if that leaves 0..extent - 1, else None."""
    bound = Intervals().of(index)
    if bound is None or _is_within(bound, extent):
        return None
    # Only now is the exact range worth its price.
    reached = index_range(index)
    return None if reached is None or _is_within(reached, extent) else reached


def _is_within(values: Interval, extent: int) -> bool:
    return values.low >= 0 and values.high < extent


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


def _evaluated(index: Expr) -> Interval | None:
    """The same at every point, each an interval of its own; None where there are too many."""
    nodes: list[Expr] = []
    visit(index, nodes.append)
    axes = [e for e in nodes if isinstance(e, Axis)]
    num_points = math.prod(axis.extent for axis in axes)
    if num_points > _MAX_POINTS or num_points * len(nodes) > _MAX_VALUES:
        return None
    grids = np.ogrid[tuple(slice(axis.extent) for axis in axes)] if axes else []
    values = Intervals({axis: interval(grid, grid) for axis, grid in zip(axes, grids, strict=True)}).of(index)
    assert values is not None, "it is known that nothing wraps around or divides by zero"
    return Interval(int(np.min(values.low)), int(np.max(values.high)))
