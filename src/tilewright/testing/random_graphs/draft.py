"""A graph while it is drawn, node by node: each node runs at once on the reference evaluator, so that the next fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto
from onnx.defs import OpSchema, SchemaError, get_schema

from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.evaluation.fallback import run_fallback
from tilewright.graph.protos import array_type, node_from_proto, static_type, type_proto
from tilewright.graph.types import onnx_types

Array: TypeAlias = NDArray[Any]
Step: TypeAlias = "Callable[[Draft, str], object]"
"""Adds one node or a few that read a value; NotDrawn where that value does not suit them."""

EXTENTS = (1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 19, 31, 33, 64, 70, 131)
_MAX_ELEMENTS = 16384
# Far below what a type can hold: sums and products of what follows have to fit as well.
_LARGEST_INTEGER = 1 << 12
_LARGEST = {"float16": 200.0, "float32": 1e4, "float64": 1e6}


class NotDrawn(Exception):  # noqa: N818  # no error: another node is drawn instead
    """A node that cannot be here: of another opset or type, too large, or not finite."""


def need(condition: object) -> None:
    """Give up a step unless its operands suit it."""
    if not condition:
        raise NotDrawn


class Draft:
    """The nodes, the constants, and what each value is for one random input."""

    def __init__(self, seed: int, opset: int = 18) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.inputs: dict[str, Array] = {}
        self.values: dict[str, Array] = {}

    # --- choices -----------------------------------------------------------------------------------------------------

    def integer(self, low: int, high: int) -> int:
        """A random integer from low to high, both included."""
        need(low <= high)
        return int(self.rng.integers(low, high + 1))

    def choice(self, items: Sequence[Any]) -> Any:
        need(items)
        return items[self.integer(0, len(items) - 1)]

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def extent(self, most: int = 33) -> int:
        """A size: odd ones, and often 1."""
        return int(self.choice([e for e in EXTENTS if e <= most]))

    def axis(self, x: str) -> int:
        """An axis of a value, counted from either end."""
        rank = self.values[x].ndim
        need(rank > 0)
        return self.integer(-rank, rank - 1)

    def array(self, shape: Sequence[int], dtype: str = "float32") -> Array:
        """Random elements: numbers around zero, and no integers that two products would carry out of their type."""
        kind = np.dtype(dtype).kind
        if kind != "f":
            low, high = {"b": (0, 2), "u": (0, 10)}.get(kind, (-9, 10))
            return np.asarray(self.rng.integers(low, high, tuple(shape))).astype(dtype)
        numbers = np.asarray(self.rng.standard_normal(tuple(shape)))
        # Numbers that are the same, halves and zeros are where rules of rounding and of order show.
        return np.asarray(np.round(numbers * 2) / 2 if self.chance(0.2) else numbers).astype(dtype)

    # --- values ------------------------------------------------------------------------------------------------------

    def dtype(self, x: str) -> str:
        return self.values[x].dtype.name

    def is_float(self, x: str) -> bool:
        return self.values[x].dtype.kind == "f"

    def shape(self, x: str) -> tuple[int, ...]:
        return self.values[x].shape

    def input(self, shape: Sequence[int], dtype: str = "float32") -> str:
        return self.given(self.array(shape, dtype))

    def given(self, value: Array) -> str:
        """An input of this value."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.values[name] = value
        return name

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        self.values[name] = self.constants[name]
        return name

    def integers(self, *values: int) -> str:
        """A constant vector, such as axes."""
        return self.constant(np.array(values, np.int64))

    def weights(self, *shape: int, dtype: str = "float32") -> str:
        return self.constant(np.asarray(self.array(shape, "float64") / 2).astype(dtype))

    def operand(self, shape: Sequence[int], dtype: str) -> str:
        """A constant or an input of that type: a new one, or one that there is."""
        fitting = [
            name for name, value in self.values.items() if value.shape == tuple(shape) and value.dtype.name == dtype
        ]
        if fitting and self.chance(0.4):
            return str(self.choice(fitting))
        return self.constant(self.array(shape, dtype)) if self.chance(0.6) else self.input(shape, dtype)

    def partner(self, x: str) -> str:
        """A value that broadcasts with another, which may be the same."""
        value = self.values[x]
        fitting = [
            name
            for name, other in self.values.items()
            if other.dtype == value.dtype and _broadcast(value.shape, other.shape) is not None
        ]
        if self.chance(0.6):
            return str(self.choice(fitting))
        kept = [size if self.chance(0.6) else 1 for size in value.shape]
        kept = [self.extent(7) if size == 1 and self.chance(0.2) else size for size in kept]
        return self.operand(kept[self.integer(0, len(kept)) :], value.dtype.name)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def node(self, op: str, inputs: Sequence[str], count: int = 1, **attributes: Any) -> list[str]:
        """Add a node and run it; the names of its outputs."""
        outputs = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        self._check_fit(op, inputs, attributes)
        proto = onnx.helper.make_node(op, inputs, outputs, **attributes)
        node = node_from_proto(proto, self.opset)
        protos = {name: type_proto(array_type(self.values[name])) for name in inputs if name}
        try:
            inferred = onnx_types(node, protos, self.constants)
            results = run_fallback(node, [self.values[name] if name else None for name in inputs])
        except (ModelError, UnsupportedOperatorError) as error:
            raise NotDrawn(str(error)) from error
        for result, known in zip(results, map(static_type, inferred), strict=True):
            # Of some pools the evaluator and the inference of onnx think differently.
            need(known is None or known == array_type(np.asarray(result)))
        self._append(proto, results)
        return outputs

    def add(self, op: str, inputs: Sequence[str], results: Sequence[Array], **attributes: Any) -> None:
        """Add a node of which is known what it gives."""
        outputs = [f"v{len(self.nodes)}_{i}" for i in range(len(results))]
        self._append(onnx.helper.make_node(op, inputs, outputs, **attributes), results)

    def _append(self, proto: NodeProto, results: Sequence[Array]) -> None:
        for result in results:
            self._check_result(result)
        self.nodes.append(proto)
        self.values.update(zip(proto.output, map(np.asarray, results), strict=True))

    def result(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node of one output; its name."""
        return self.node(op, inputs, **attributes)[0]

    def schema(self, op: str) -> OpSchema:
        try:
            schema = get_schema(op, self.opset, "")
        except SchemaError as error:
            raise NotDrawn(f"opset {self.opset} has no {op}") from error
        need(not schema.deprecated)
        return schema

    def _check_fit(self, op: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> None:
        """The operator of this opset takes such operands and attributes."""
        schema = self.schema(op)
        need(len(inputs) <= schema.max_input and attributes.keys() <= schema.attributes.keys())
        types: dict[str, str] = {}
        for position, name in enumerate(inputs):
            if not name:
                continue
            formal = schema.inputs[min(position, len(schema.inputs) - 1)]
            kind = onnx.helper.np_dtype_to_tensor_dtype(self.values[name].dtype)
            written = f"tensor({onnx.TensorProto.DataType.Name(kind).lower()})"
            need(written in formal.types)
            need(op == "Slice" or not _is_huge(self.values[name]))
            if formal.is_homogeneous:
                need(types.setdefault(formal.type_str, written) == written)

    def _check_result(self, result: Any) -> None:
        need(isinstance(result, np.ndarray) and result.size <= _MAX_ELEMENTS and result.ndim <= 6)
        if result.dtype.kind == "f" and result.size:
            need(np.isfinite(result).all() and np.abs(result).max() <= _LARGEST[result.dtype.name])

    def model(self) -> ModelProto:
        """The graph with every value that nothing reads as an output."""
        read = {name for proto in self.nodes for name in proto.input}
        return self.model_of([name for proto in self.nodes for name in proto.output if name not in read])

    def model_of(self, outputs: Sequence[str]) -> ModelProto:
        """The graph with these outputs."""
        graph = onnx.helper.make_graph(
            self.nodes,
            "random",
            [value_info(name, value) for name, value in self.inputs.items()],
            [value_info(name, self.values[name]) for name in outputs],
            [onnx.numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        return onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", self.opset)])


def value_info(name: str, value: Array) -> onnx.ValueInfoProto:
    """An input or output of the type of a value."""
    kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    return onnx.helper.make_tensor_value_info(name, kind, value.shape)


def _is_huge(value: Array) -> bool:
    """Whether arithmetic on these integers might leave their type: "to the end" as the end of a slice, say."""
    return value.dtype.kind == "i" and value.size > 0 and int(np.abs(value).max()) > _LARGEST_INTEGER


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None
