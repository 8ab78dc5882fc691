"""In which type a stage computes: sums of 16-bit floats are kept in float32 until the last stage."""

from __future__ import annotations

from tilewright import te
from tilewright.te import Expr


def wide_dtype(dtype: str) -> str:
    """The type that intermediate results of a computation on `dtype` have."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def widen(x: Expr) -> Expr:
    """`x` in the type of intermediate results."""
    return te.cast(x, wide_dtype(x.dtype))
