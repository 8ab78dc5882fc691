"""Running sums and products along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright import te
from tilewright.operators.operands import axis_of, replaced, required_integer
from tilewright.operators.registry import Call, NotCompilableError, operator
from tilewright.te import Expr, Tensor

_MAX_STEPS = 1 << 24


def _cumulative(op: Callable[..., Expr], neutral: int) -> Callable[[Call], Tensor]:
    """The lowering: each element is reduced from all up to its place, so very long axes are not compiled."""

    def lower(call: Call) -> Tensor:
        X = call.tensor(0)
        axis = axis_of(call, required_integer(call, 1), X.ndim)
        steps = math.prod(X.shape) * X.shape[axis]
        if steps > _MAX_STEPS:
            raise NotCompilableError(f"{call.node.op} would take {steps} steps; up to {_MAX_STEPS} are compiled")
        is_exclusive, is_reverse = call.attribute("exclusive", 0), call.attribute("reverse", 0)
        k = te.reduce_axis(X.shape[axis], "k")
        nothing = te.constant(neutral, X.dtype)

        def counts(place: Expr) -> Expr:
            if is_reverse:
                return k > place if is_exclusive else k >= place
            return k < place if is_exclusive else k <= place

        return te.compute(
            X.shape,
            lambda *i: op(te.select(counts(i[axis]), X[replaced(i, axis, k)], nothing), axis=k),
            call.name(),
        )

    return lower


operator("CumSum")(_cumulative(te.sum, 0))
operator("CumProd")(_cumulative(te.prod, 1))
