"""The bits of the float types that the functions take apart and put together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """The fields of an IEEE float type, and the integer type of the same width."""

    int_dtype: str
    mantissa_bits: int
    bias: int

    @property
    def sign_bit(self) -> int:
        """As a signed integer has it."""
        return -1 << (31 if self.int_dtype == "int32" else 63)

    @property
    def min_normal(self) -> float:
        return 2.0 ** (1 - self.bias)


FORMATS = {"float32": FloatFormat("int32", 23, 127), "float64": FloatFormat("int64", 52, 1023)}
