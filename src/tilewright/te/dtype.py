"""Element types: their kind and width, NumPy storage, and how two of them combine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tilewright.errors import ExpressionError


@dataclass(frozen=True, slots=True)
class DType:
    """One element type. `rank` orders types within promotion: the higher one wins."""

    name: str
    kind: str  # "bool", "int", "uint" or "float"
    bits: int
    rank: int
    storage: str  # the NumPy type that holds it

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)


DTYPES: dict[str, DType] = {
    t.name: t
    for t in (
        DType("bool", "bool", 1, 0, "bool"),
        DType("uint8", "uint", 8, 1, "uint8"),
        DType("int8", "int", 8, 1, "int8"),
        DType("int32", "int", 32, 3, "int32"),
        DType("int64", "int", 64, 4, "int64"),
        DType("float16", "float", 16, 5, "float16"),
        DType("bfloat16", "float", 16, 5, "uint16"),
        DType("float32", "float", 32, 6, "float32"),
        DType("float64", "float", 64, 7, "float64"),
    )
}


EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
"""The distance from 1 to the next number, of each type of floats."""


def check_dtype(name: object) -> str:
    """The element type of that name, or of that NumPy type; an unknown one raises."""
    text = name if isinstance(name, str) else getattr(name, "__name__", None) or getattr(name, "name", None)
    if not isinstance(text, str) or text not in DTYPES:
        known = ", ".join(DTYPES)
        raise ExpressionError(f"unknown dtype {name!r}; use one of: {known}")
    return text


def is_float(name: str) -> bool:
    """Whether `name` is a floating-point type."""
    return DTYPES[name].kind == "float"


def is_int(name: str) -> bool:
    """Whether `name` is an integer type, signed or not."""
    return DTYPES[name].kind in ("int", "uint")


def promote(a: str, b: str) -> str:
    """The type of an operation between `a` and `b`: floats win over integers, wide over narrow.

    >>> promote("int32", "float32"), promote("int8", "uint8"), promote("float16", "bfloat16")
    ('float32', 'int32', 'float32')
    """
    if a == b:
        return a
    da, db = DTYPES[a], DTYPES[b]
    if da.rank != db.rank:
        return a if da.rank > db.rank else b
    return "int32" if da.kind in ("int", "uint") else "float32"


def numpy_dtype(name: str) -> np.dtype[np.generic]:
    """The NumPy type that stores `name` (bfloat16 is stored as its 16 bits, in uint16)."""
    return np.dtype(DTYPES[name].storage)


def bfloat16_to_float32(bits: np.ndarray) -> np.ndarray:
    """The float32 values of bfloat16 bits held in uint16."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def float32_to_bfloat16(values: ArrayLike) -> np.ndarray:
    """The bfloat16 bits, in uint16, nearest to float32 values; ties go to even, NaN stays a quiet NaN."""
    floats = np.ascontiguousarray(values, dtype=np.float32)
    bits = floats.view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    quiet_nan = (bits >> 16) | np.uint32(0x40)
    return np.where(np.isnan(floats), quiet_nan, rounded).astype(np.uint16).reshape(np.shape(values))
