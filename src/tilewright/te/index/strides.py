"""How far a read moves in memory when an axis moves."""

from __future__ import annotations

import math

from tilewright.te.expr import Axis, Expr, Read
from tilewright.te.index.linear import LinearForms, variables
from tilewright.te.transform import visit


def memory_step(read: Read, axis: Axis) -> int | None:
    """How many elements further the read is when the axis moves by one; None where that differs from place to place.

    >>> from tilewright import te
    >>> A, i, k = te.placeholder((4, 8), name="A"), te.reduce_axis(2, name="i"), te.reduce_axis(8, name="k")
    >>> memory_step(A[i * 2, k], i), memory_step(A[i * 2, k], k), memory_step(A[i // 2, k], i)
    (16, 1, None)
    >>> memory_step(A[i // 2, k], k)
    1
    """
    forms = LinearForms()
    total = 0
    for d, index in enumerate(read.indices):
        step = _step(index, axis, forms)
        if step is None:
            return None
        total += step * math.prod(read.tensor.shape[d + 1 :])
    return total


def _step(index: Expr, axis: Axis, forms: LinearForms) -> int | None:
    form = forms.of(index)
    if form is None:
        return None if _depends(index, axis) else 0
    coefficient = form.terms.get(axis, 0)
    rest = form + forms.variable(axis) * -coefficient
    return None if axis in variables(rest) else coefficient


def _depends(index: Expr, axis: Axis) -> bool:
    used: list[Expr] = []
    visit(index, used.append)
    return any(e is axis for e in used)
