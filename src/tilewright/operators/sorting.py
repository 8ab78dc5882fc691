"""The largest or smallest elements along an axis, in their order.

The place of an element in the sorted row is the number of elements that come before it: all comparisons, and no loop
whose length depends on them.
"""

from __future__ import annotations

import math

from tilewright import te
from tilewright.operators.operands import check_not_empty, own_axis, replaced, required_integer
from tilewright.operators.registry import Call, Facts, MisfitError, NotCompilableError, operator
from tilewright.te import Expr, Tensor

_MAX_STEPS = 1 << 24


@operator("TopK", facts=Facts(axis=-1))
def top_k(call: Call) -> tuple[Tensor, ...]:
    """Values and their places; of equal ones the first comes first, and NaN comes last.

    An order that was not asked for does no harm.
    """
    X = call.tensor(0)
    number = required_integer(call, 1)
    axis = own_axis(call, X.ndim)
    length = X.shape[axis]
    if not 0 <= number <= length:
        raise MisfitError(f"TopK asks for {number} of {length} elements")
    shape = (*X.shape[:axis], number, *X.shape[axis + 1 :])
    check_not_empty(call, shape)
    steps = math.prod(X.shape) * length
    if steps > _MAX_STEPS:
        raise NotCompilableError(f"TopK would take {steps} comparisons; up to {_MAX_STEPS} are compiled")
    k = te.reduce_axis(length, "k")
    is_largest = bool(call.attribute("largest", 1))

    def comes_before(*i: Expr) -> Expr:
        x, other = X[i], X[replaced(i, axis, k)]
        is_better = other > x if is_largest else other < x
        is_same = te.equal(other, x)
        if te.is_float(X.dtype):
            # All that are numbers come before one that is none, and of these the first ones.
            is_nan = te.not_equal(x, x)
            is_better = te.logical_or(is_better, te.logical_and(is_nan, te.equal(other, other)))
            is_same = te.logical_or(is_same, is_nan)
        is_earlier = te.logical_and(is_same, k < i[axis])
        return te.sum(te.cast(te.logical_or(is_better, is_earlier), "int32"), axis=k)

    rank = te.compute(X.shape, comes_before, call.name("rank"))
    j = te.reduce_axis(length, "j")

    def place(*i: Expr) -> Expr:
        is_here = te.equal(rank[replaced(i, axis, j)], te.cast(i[axis], "int32"))
        return te.max(te.select(is_here, te.cast(j, "int64"), te.constant(0, "int64")), axis=j)

    places = te.compute(shape, place, call.name("places"))
    return te.compute(shape, lambda *i: X[replaced(i, axis, places[i])], call.name("values")), places
