"""One call of an operator that ONNX does not have, and the nodes of ONNX that are written in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from onnx import NodeProto
from onnx.helper import make_node
from onnx.numpy_helper import from_array

from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.operators import Node, TensorType


class OpenValueError(Exception):
    """The nodes of a call depend on the value of an operand, which is known only when it runs."""


@dataclass(slots=True)
class Call:
    """What an expansion reads of a node, and where it writes the nodes that compute the same.

    A value is the name of one; "" is one that is left out.
    """

    node: Node
    types: Sequence[TensorType]
    """Of the inputs; one that is left out has no dimensions."""
    fresh: Callable[[str], str]
    constants: Mapping[str, npt.NDArray[np.generic]] = field(default_factory=dict)
    """Those of the inputs whose values are known."""
    nodes: list[NodeProto] = field(default_factory=list)

    def input(self, position: int) -> str:
        """The operand at a position, or "" for one that is left out."""
        return self.node.inputs[position] if position < len(self.node.inputs) else ""

    def required(self, position: int) -> str:
        """The operand at a position, which has to be there."""
        if not self.input(position):
            raise ModelError(
                f"node {self.node} ({self.node.op}) is not a valid node: its input {position} is left out; export the "
                f"model again"
            )
        return self.input(position)

    def shape(self, position: int) -> tuple[int, ...]:
        """The shape of the operand at a position."""
        self.required(position)
        return self.types[position].shape

    def known(self, position: int) -> npt.NDArray[np.generic]:
        """The value of the operand at a position; OpenValueError if that is known only when it runs."""
        value = self.constants.get(self.required(position))
        if value is None:
            raise OpenValueError(self.input(position))
        return value

    def dtype(self, position: int) -> str:
        """The element type of the operand at a position."""
        self.required(position)
        return self.types[position].dtype

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute; one that has no default has to be there."""
        value = self.node.attributes.get(name, default)
        if value is None:
            raise ModelError(
                f"node {self.node} ({self.node.op}) is not a valid node: its attribute {name} is missing; export the "
                f"model again"
            )
        return value

    def attributes(self, *names: str) -> dict[str, Any]:
        """Those of the attributes that are given."""
        return {name: self.node.attributes[name] for name in names if name in self.node.attributes}

    def is_wanted(self, position: int) -> bool:
        """Whether anybody reads the output at a position."""
        return position < len(self.node.outputs) and bool(self.node.outputs[position])

    def unsupported(self, reason: str) -> UnsupportedOperatorError:
        return UnsupportedOperatorError(
            f"node {self.node} ({self.node.op} of domain {self.node.domain}): {reason}; export the model with "
            f"operators of ONNX only"
        )

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Write a node of one output, and return that."""
        return self.add_many(op, 1, *inputs, **attributes)[0]

    def add_many(self, op: str, size: int, *inputs: str, **attributes: Any) -> list[str]:
        """Write a node of as many outputs."""
        operands = list(inputs)
        while operands and not operands[-1]:
            operands.pop()
        outputs = [self.fresh(f"{self.node.outputs[0]}.{op}") for _ in range(size)]
        self.nodes.append(make_node(op, operands, outputs, **attributes))
        return outputs

    def constant(self, value: Any, dtype: str) -> str:
        """Write a constant."""
        return self.add("Constant", value=from_array(np.asarray(value, dtype)))

    def ints(self, *values: int) -> str:
        """Write a vector of integers, such as axes or a shape."""
        return self.constant(values, "int64")

    def plus(self, *values: str) -> str:
        """The sum of those values that are not left out."""
        given = [value for value in values if value]
        total = given[0]
        for value in given[1:]:
            total = self.add("Add", total, value)
        return total

    def scaled(self, value: str, factor: float, dtype: str) -> str:
        """A value times a number."""
        return value if factor == 1 else self.add("Mul", value, self.constant(factor, dtype))


Expansion: TypeAlias = Callable[[Call], Sequence[str]]
"""Writes the nodes of a call, and returns the values of its outputs, up to the last that it knows."""
