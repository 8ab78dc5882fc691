"""How a node becomes a tensor expression: one function an operator, found by domain and name.

    @operator("Relu")
    def relu(call: Call) -> te.Tensor:
        X = call.tensor(0)
        return te.compute(X.shape, lambda *i: te.maximum(X[i], 0.0), call.name())

A function that cannot compile this node (an input that has to be known is not, a mode that has no expression) raises
NotCompilableError; the node then runs by the fallback. One whose operands cannot fit the operator raises MisfitError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from tilewright import te
from tilewright.errors import TilewrightError
from tilewright.operators.node import ONNX, Node

T = TypeVar("T")


class NotCompilableError(TilewrightError):
    """This node has no tensor expression; the message says why."""


class MisfitError(NotCompilableError):
    """The operands do not fit the operator, whatever runs it."""


class KnownValues(Sequence[npt.NDArray[np.generic] | None]):
    """The values of a node's operands that are known ahead, each looked up when it is asked for."""

    def __init__(self, node: Node, constants: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self._names = node.inputs
        self._constants = constants

    @overload
    def __getitem__(self, position: int) -> npt.NDArray[np.generic] | None: ...

    @overload
    def __getitem__(self, position: slice) -> Sequence[npt.NDArray[np.generic] | None]: ...

    def __getitem__(self, position: int | slice) -> object:
        if isinstance(position, slice):
            return [self._constants.get(name) for name in self._names[position]]
        return self._constants.get(self._names[position])

    def __len__(self) -> int:
        return len(self._names)


@dataclass(slots=True)
class Call:
    """A node with its operands: the tensors it reads, and the values of those that are known ahead."""

    node: Node
    tensors: Sequence[te.Tensor | None]
    values: Sequence[npt.NDArray[np.generic] | None]
    prefix: str = ""
    """Put before the names of the stages, to keep them apart from those of other nodes."""
    is_computed: bool = True
    """Whether the expression is for a kernel. If not, it is for its type, which the elements do not decide."""
    _num_names: int = field(default=0, init=False)

    def tensor(self, position: int) -> te.Tensor:
        """The operand at `position`, which must be there."""
        found = self.optional(position)
        if found is None:
            raise NotCompilableError(f"{self.node.op} has no input {position}")
        return found

    def optional(self, position: int) -> te.Tensor | None:
        """The operand at `position`, or None where it was left out."""
        return self.tensors[position] if position < len(self.tensors) else None

    def value(self, position: int) -> npt.NDArray[np.generic] | None:
        """The value of the operand where it is known ahead, or None where it was left out."""
        if position >= len(self.node.inputs) or not self.node.inputs[position]:
            return None
        value = self.values[position]
        if value is None:
            raise NotCompilableError(
                f"{self.node.op} needs input {self.node.inputs[position]} before it runs, but that is computed"
            )
        return value

    def attribute(self, name: str, default: T) -> T:
        """An attribute, or `default` where it was left out."""
        return cast(T, self.node.attributes.get(name, default))

    def name(self, hint: str = "") -> str:
        """A new name for a stage."""
        self._num_names += 1
        base = hint or self.node.op.lower()
        return f"{self.prefix}{base}" if self._num_names == 1 else f"{self.prefix}{base}_{self._num_names}"


Lowering: TypeAlias = Callable[[Call], "te.Tensor | tuple[te.Tensor, ...]"]

_OPERATORS: dict[tuple[str, str], Lowering] = {}


def operator(*names: str, domain: str = ONNX) -> Callable[[Lowering], Lowering]:
    """Register a function as the tensor expression of these operators."""

    def register(function: Lowering) -> Lowering:
        for name in names:
            if (domain, name) in _OPERATORS:
                raise ValueError(f"operator {name} of domain {domain!r} is registered twice")
            _OPERATORS[domain, name] = function
        return function

    return register


def has_expression(node: Node) -> bool:
    """Whether the operator of this node can be compiled, in some of its forms at least."""
    return (node.domain, node.op) in _OPERATORS


def express(call: Call) -> tuple[te.Tensor, ...]:
    """The outputs of a node as tensors; those that nobody wants may be left out at the end."""
    function = _OPERATORS.get((call.node.domain, call.node.op))
    if function is None:
        raise NotCompilableError(f"there is no tensor expression for {call.node.op}")
    outputs = function(call)
    return (outputs,) if isinstance(outputs, te.Tensor) else outputs
