"""A node: an operator of ONNX or one of our own, between values of known types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright.te import DTYPES

Attribute: TypeAlias = "int | float | str | bytes | npt.NDArray[np.generic] | Sequence[int] | Sequence[float] | object"

# Operators of ONNX have the domain ""; those that passes put in their place, such as channels-last convolutions, this.
ONNX = ""
OWN = "tilewright"


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape of a value. Types that kernels do not know, such as "string", are named as in ONNX."""

    dtype: str
    shape: tuple[int, ...]
    _hash: int = field(init=False, repr=False, compare=False)
    """Types are looked up often."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.dtype, self.shape)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def is_compilable(self) -> bool:
        """Whether a kernel can hold such a value: a known element type and no dimension of zero."""
        return self.dtype in DTYPES and 0 not in self.shape


@dataclass(frozen=True, slots=True)
class Node:
    """One operator. An absent optional input or an output that nobody wants is ""."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    name: str = ""
    domain: str = ONNX
    opset: int = 0
    """The version of the operator set that the model asks for."""

    def rewired(self, inputs: Sequence[str], outputs: tuple[str, ...] | None = None) -> Node:
        """The same node between other values; its outputs stay if none are given."""
        written = self.outputs if outputs is None else outputs
        return Node(self.op, tuple(inputs), written, self.attributes, self.name, self.domain, self.opset)

    def __str__(self) -> str:
        label = f"{self.name}: " if self.name else ""
        return f"{label}{', '.join(self.outputs)} = {self.op}({', '.join(self.inputs)})"
