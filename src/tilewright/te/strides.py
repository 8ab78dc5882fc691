"""How far a read moves in memory when an axis moves."""

from __future__ import annotations

import math

from tilewright.te.expr import Axis, Binary, Const, Expr, Read, Var
from tilewright.te.transform import children


def memory_step(read: Read, axis: Axis) -> int | None:
    """How many elements further the read is when the axis moves by one; None where that differs from place to place.

    >>> from tilewright import te
    >>> A, i, k = te.placeholder((4, 8), name="A"), te.reduce_axis(2, name="i"), te.reduce_axis(8, name="k")
    >>> memory_step(A[i * 2, k], i), memory_step(A[i * 2, k], k), memory_step(A[i // 2, k], i)
    (16, 1, None)
    >>> memory_step(A[i // 2, k], k)
    1
    """
    total = 0
    for d, index in enumerate(read.indices):
        coefficient = _coefficient(index, axis)
        if coefficient is None:
            return None
        total += coefficient * math.prod(read.tensor.shape[d + 1 :])
    return total


def _coefficient(index: Expr, axis: Axis) -> int | None:
    if isinstance(index, Var):
        return int(index is axis)
    if isinstance(index, Const):
        return 0
    if isinstance(index, Binary) and index.op in ("add", "sub", "mul"):
        a, b = _coefficient(index.a, axis), _coefficient(index.b, axis)
        if a is None or b is None:
            return None
        if index.op == "mul":
            factor = index.b if isinstance(index.b, Const) else index.a
            return (a + b) * int(factor.value) if isinstance(factor, Const) else None
        return a + b if index.op == "add" else a - b
    return None if _depends(index, axis) else 0


def _depends(index: Expr, axis: Axis) -> bool:
    return index is axis or any(_depends(part, axis) for part in children(index))
