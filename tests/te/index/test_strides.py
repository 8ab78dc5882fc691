"""How far reads move in memory."""

from __future__ import annotations

import pytest

from tilewright import te
from tilewright.te import Read

A = te.placeholder((4, 5, 6), name="A")
B = te.placeholder((7,), "int64", name="B")
P, Q = te.reduce_axis(2, "i"), te.reduce_axis(3, "j")


@pytest.mark.parametrize(
    ("read", "step"),
    [
        (A[0, 0, P], 1),
        (A[0, P, 0], 6),
        (A[P, 0, Q], 30),
        (A[Q, 0, 0], 0),
        (A[P + 1, 0, 2 - P], 29),
        (A[0, 2 * P + Q, P * 2], 14),
        (A[0, P * Q, 0], None),
        (A[0, Q * Q, P], 1),
        (A[P, 0, -P], 29),
        (A[0, (P + Q) - P, 0], 0),
        (A[0, P // 2 - P // 2, Q], 0),
        (A[0, 0, P // 2], None),
        (A[0, 0, B[P]], None),
    ],
)
def test_the_step_of_an_axis(read: te.Expr, step: int | None) -> None:
    assert isinstance(read, Read)
    assert te.memory_step(read, P) == step
