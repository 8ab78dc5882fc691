"""What `torch_operators` writes calls of torch with: the graph being written, and the ONNX node that is to be a call.

torch is imported in the functions, so that the module can be read without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tilewright.errors import UsageError

# torch has no types here: a value is a node of its graphs, or a number.
Value = Any
T = TypeVar("T")


class NotConvertibleError(UsageError):
    """A model that has no calls in torch; the message says what of it."""


@dataclass(slots=True)
class Writer:
    """A graph of torch being written, and the module that holds its weights."""

    graph: Any
    root: Any
    constants: dict[str, TensorProto]
    num_uses: Counter[str]
    values: dict[str, Value] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        """A value as an argument; a constant scalar is a number."""
        if name not in self.constants:
            return self.values[name]
        array = numpy_helper.to_array(self.constants[name])
        return array.item() if array.ndim == 0 else self.stored(array)

    def stored(self, array: NDArray[Any]) -> Value:
        """A constant as an argument."""
        name = f"constant_{len(self.root._buffers)}"
        self.root.register_buffer(name, tensor(array))
        return self.graph.get_attr(name)

    def call_module(self, module: Any, x: Value) -> Value:
        """A call of a module that holds weights."""
        name = f"layer_{len(self.root._modules)}"
        self.root.add_module(name, module.eval())
        return self.graph.call_module(name, (x,))

    def module_behind(self, name: str) -> Any:
        """The module that computes a value that is used once; None where there is none."""
        value = self.values.get(name)
        if value is None or self.num_uses[name] != 1 or value.op != "call_module":
            return None
        return self.root.get_submodule(value.target)


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A node of the model that is to become a call."""

    node: NodeProto
    writer: Writer

    def __getitem__(self, position: int) -> Value:
        return self.writer.value(self.node.input[position])

    def has(self, position: int) -> bool:
        """Whether an optional input is there."""
        return position < len(self.node.input) and bool(self.node.input[position])

    def is_known(self, position: int) -> bool:
        """Whether an input is a constant."""
        return self.has(position) and self.node.input[position] in self.writer.constants

    def known(self, position: int) -> NDArray[Any]:
        """An input that must be a constant."""
        if not self.is_known(position):
            raise self.refused(f"its input {position} is not a constant")
        array: NDArray[Any] = numpy_helper.to_array(self.writer.constants[self.node.input[position]])
        return array

    def attribute(self, name: str, default: T) -> T:
        """An attribute, or `default` where it was left out."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                return cast(T, helper.get_attribute_value(attribute))
        return default

    def require(self, **expected: object) -> None:
        """Refuse the node unless these attributes are as expected or left out."""
        for name, value in expected.items():
            found = self.attribute(name, value)
            if found != value:
                raise self.refused(f"its {name} is {found!r}, and only {value!r} has a call in torch here")

    def refused(self, reason: str) -> NotConvertibleError:
        """The error to raise."""
        return NotConvertibleError(f"{self.node.op_type} {self.node.name or self.node.output[0]}: {reason}")

    def call(self, function: Callable[..., Any], *arguments: Value, **options: object) -> Value:
        """Write the call of a function."""
        return self.writer.graph.call_function(function, arguments, options)

    def call_method(self, name: str, *arguments: Value) -> Value:
        """Write the call of a method of the first argument."""
        return self.writer.graph.call_method(name, arguments)


def tensor(array: NDArray[Any]) -> Any:
    """A copy in torch, in the order of the memory that `array` appears to have."""
    import torch

    return torch.tensor(array)
