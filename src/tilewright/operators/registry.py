"""How a node becomes a tensor expression: one function an operator, found by domain and name.

    @operator("Relu", facts=Facts(elementwise=True))
    def relu(call: Call) -> te.Tensor:
        X = call.tensor(0)
        return te.compute(X.shape, lambda *i: te.maximum(X[i], 0.0), call.name())

A function that cannot compile this node (an input that has to be known is not, a mode that has no expression) raises
NotCompilableError; the node then runs by the fallback. One whose operands cannot fit the operator raises MisfitError.

`Facts` are what passes ask of an operator and cannot read off its expression; they are said here alone.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of an operator; a fact that is not the same for all of its nodes is a function of the node."""

    elementwise: bool = False
    """Each element of the result comes from those at its place, of operands that are broadcast together."""
    reshapes: bool = False
    """The elements of the first operand in their order, under the shape of the result."""
    reinterprets: bool = False
    """The bytes of the first operand in their order, as elements of another type."""
    copies_same_type: bool = False
    """It gives back its first operand where that has the type of the result."""
    copies_one: bool = False
    """It gives back its operand where it has only one."""
    reduces: bool = False
    """It reduces axes that an attribute or the second operand names; `keepdims` says whether they stay."""
    axis: int | Callable[[Node], int] | None = None
    """What the attribute `axis` is where it is left out; None where it may not be, or there is none."""
    random: bool | Callable[[Node], bool] = False
    """Two runs may give different results."""
    checks_shapes: bool = False
    """The expression checks all that it reads, and takes more than ONNX's rules for shapes do."""
    shaped_by_floats: bool = False
    """The shape of the result follows from operands that may be floats."""
    prefers_channels_last: bool = False
    """It is so much faster on images with their channels last that they are transposed for it."""
    follows_channels_last: bool = False
    """It takes an image with its channels last where it finds one; its other operands stay as they are."""


NOTHING_KNOWN = Facts()
_OPERATORS: dict[tuple[str, str], Lowering] = {}
_FACTS: dict[tuple[str, str], Facts] = {}


def operator(*names: str, domain: str = ONNX, facts: Facts = NOTHING_KNOWN) -> Callable[[Lowering], Lowering]:
    """Register a function as the tensor expression of these operators, with what is known of them."""
    know(*names, domain=domain, facts=facts)

    def register(function: Lowering) -> Lowering:
        _OPERATORS.update({(domain, name): function for name in names})
        return function

    return register


def know(*names: str, domain: str = ONNX, facts: Facts) -> None:
    """Register what is known of operators, which need not have a tensor expression."""
    for name in names:
        if (domain, name) in _FACTS:
            raise ValueError(f"operator {name} of domain {domain!r} is registered twice")
        _FACTS[domain, name] = facts


def facts_of(node: Node) -> Facts:
    """What is known of the operator of a node."""
    return _FACTS.get((node.domain, node.op), NOTHING_KNOWN)


def is_random(node: Node) -> bool:
    """Whether two runs of the node may give different results."""
    random = facts_of(node).random
    return random(node) if callable(random) else random


def axis_attribute(node: Node) -> int:
    """The axis that the node works along, as it counts: from the end where it is negative."""
    if "axis" in node.attributes:
        return cast(int, node.attributes["axis"])
    default = facts_of(node).axis
    if default is None:
        raise NotCompilableError(f"{node.op} has no axis")
    return default(node) if callable(default) else default


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
