"""Models of many nodes: one for each way in which a graph can be large. Importing them must take time in proportion.

`KINDS` has a function for each; it takes the number of nodes, which the model has about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

_OPSET = 17
_ROWS, _WIDTH = 2, 8


class _Builder:
    """A model as it grows; values are named by the order in which they are made."""

    def __init__(self, shape: Sequence[int] = (_ROWS, _WIDTH)) -> None:
        self.input = "x"
        self._shape = shape
        self._nodes: list[NodeProto] = []
        self._initializers: list[TensorProto] = []

    @property
    def num_nodes(self) -> int:
        return len(self._nodes)

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        output = f"v{len(self._nodes)}"
        if attributes:
            self._nodes.append(onnx.helper.make_node(op, inputs, [output], **attributes))
        else:
            self._nodes.append(NodeProto(op_type=op, input=inputs, output=[output]))
        return output

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self._initializers)}"
        self._initializers.append(onnx.numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def random(self, *shape: int) -> str:
        generator = np.random.default_rng(len(self._initializers))
        return self.constant(generator.standard_normal(shape) / 4)

    def model(self, outputs: Sequence[str]) -> ModelProto:
        given = onnx.helper.make_tensor_value_info(self.input, TensorProto.FLOAT, self._shape)
        wanted = [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = GraphProto(name="large", node=self._nodes, initializer=self._initializers, input=[given], output=wanted)
        return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=8)


def chain(num_nodes: int) -> ModelProto:
    """Elementwise nodes, each of which reads the one before."""
    builder = _Builder()
    value, number = builder.input, builder.constant(0.5)
    while builder.num_nodes < num_nodes:
        value = builder.add("Mul", builder.add("Tanh", value), number)
        value = builder.add("Relu", builder.add("Add", value, builder.input))
    return builder.model([value])


def wide(num_nodes: int) -> ModelProto:
    """Nodes that do not depend on each other: each gives an output of the network."""
    builder = _Builder()
    return builder.model([builder.add("Add", builder.input, builder.random(_WIDTH)) for _ in range(num_nodes)])


def numbers(num_nodes: int) -> ModelProto:
    """Nodes that do not depend on each other, each with a number of its own: no two kernels are the same."""
    builder = _Builder()
    return builder.model([builder.add("Add", builder.input, builder.constant(n)) for n in range(num_nodes)])


def fan_out(num_nodes: int) -> ModelProto:
    """One value that half of the nodes read; the others add up what those give."""
    builder = _Builder()
    read = builder.add("Tanh", builder.input)
    values = [builder.add("Mul", read, builder.random(_WIDTH)) for _ in range(num_nodes // 2)]
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [builder.add("Add", a, b) for a, b in pairs] + values[len(values) // 2 * 2 :]
    return builder.model(values)


def residual(num_nodes: int) -> ModelProto:
    """Every value is read by the next two nodes, so that expressions written out would grow without bound."""
    builder = _Builder()
    before, value = builder.input, builder.add("Tanh", builder.input)
    while builder.num_nodes < num_nodes:
        before, value = value, builder.add("Add", value, before)
    return builder.model([value])


def shape_arithmetic(num_nodes: int) -> ModelProto:
    """Reshapes to shapes that are computed, as exporters write them: Shape, Gather, Unsqueeze, Concat."""
    builder = _Builder()
    value = builder.input
    while builder.num_nodes < num_nodes:
        value = _reshape_as_exported(builder, value, num_columns=2)
        value = _reshape_as_exported(builder, builder.add("Relu", value), num_columns=_WIDTH)
    return builder.model([value])


def _reshape_as_exported(builder: _Builder, value: str, num_columns: int) -> str:
    zero = builder.add("Constant", value=onnx.numpy_helper.from_array(np.array(0, np.int64)))
    size = builder.add("Gather", builder.add("Shape", value), zero, axis=0)
    whole = builder.add("Div", builder.add("Mul", size, builder.constant(6, np.int64)), builder.constant(6, np.int64))
    rows = builder.add("Unsqueeze", builder.add("Sub", whole, zero), builder.constant([0], np.int64))
    sizes = builder.add("Concat", rows, builder.constant([-1, num_columns], np.int64), axis=0)
    target = builder.add("Slice", sizes, *(builder.constant([n], np.int64) for n in (1, 3)))
    kept = builder.add("Cast", builder.add("Cast", target, to=TensorProto.FLOAT), to=TensorProto.INT64)
    return builder.add("Reshape", value, kept)


def constants(num_nodes: int) -> ModelProto:
    """Constant nodes, and arithmetic on them that does not depend on the input."""
    builder = _Builder()
    value = builder.add("Constant", value_floats=[0.5] * _WIDTH)
    while builder.num_nodes < num_nodes:
        number = builder.add("Constant", value_float=1.0 / (1 + builder.num_nodes))
        value = builder.add("Add", builder.add("Tanh", value), number)
    return builder.model([builder.add("Add", builder.input, value)])


def equal_subgraphs(num_nodes: int) -> ModelProto:
    """The same few nodes again and again, all of the input."""
    builder = _Builder()
    total = builder.input
    numbers = [builder.constant(0.5), builder.constant(2.0)]
    while builder.num_nodes < num_nodes:
        value = builder.add("Relu", builder.add("Mul", builder.add("Tanh", builder.input), numbers[0]))
        total = builder.add("Add", builder.add("Mul", value, numbers[1]), total)
    return builder.model([total])


def initializers(num_nodes: int) -> ModelProto:
    """A constant of its own for each node."""
    builder = _Builder()
    value = builder.input
    while builder.num_nodes < num_nodes:
        value = builder.add("Add", builder.add("Mul", value, builder.random(_WIDTH)), builder.random(_WIDTH))
    return builder.model([value])


def movements(num_nodes: int) -> ModelProto:
    """Identity, Reshape, Transpose and Cast in turn."""
    builder = _Builder()
    value = builder.input
    there, back = builder.constant([_ROWS, 2, _WIDTH // 2], np.int64), builder.constant([_ROWS, _WIDTH], np.int64)
    while builder.num_nodes < num_nodes:
        value = builder.add("Reshape", builder.add("Identity", value), there)
        value = builder.add("Transpose", builder.add("Transpose", value, perm=[0, 2, 1]), perm=[0, 1, 2])
        value = builder.add("Relu", builder.add("Reshape", value, back))
        value = builder.add("Cast", builder.add("Cast", value, to=TensorProto.DOUBLE), to=TensorProto.FLOAT)
    return builder.model([value])


def convolutions(num_nodes: int) -> ModelProto:
    """Conv and Relu in turn; the same weights for all."""
    channels = 4
    builder = _Builder((1, channels, 6, 6))
    weights, bias = builder.random(channels, channels, 3, 3), builder.random(channels)
    value = builder.input
    while builder.num_nodes < num_nodes:
        value = builder.add("Relu", builder.add("Conv", value, weights, bias, pads=[1, 1, 1, 1]))
    return builder.model([value])


def transformer(num_nodes: int) -> ModelProto:
    """Layers of attention and a feed-forward part, each with weights of its own."""
    builder = _Builder((1, 4, _WIDTH))
    value = builder.input
    while builder.num_nodes < num_nodes:
        value = _layer_norm(builder, builder.add("Add", value, _attention(builder, value)))
        inner = _product(builder, value, 2 * _WIDTH)
        inner = builder.add("Mul", inner, builder.add("Sigmoid", inner))
        value = _layer_norm(builder, builder.add("Add", value, _product(builder, inner, _WIDTH, 2 * _WIDTH)))
    return builder.model([value])


def _product(builder: _Builder, value: str, width: int, depth: int = _WIDTH) -> str:
    return builder.add("Add", builder.add("MatMul", value, builder.random(depth, width)), builder.random(width))


def _attention(builder: _Builder, value: str) -> str:
    split, joined = builder.constant([1, 4, 2, _WIDTH // 2], np.int64), builder.constant([1, 4, _WIDTH], np.int64)
    heads = [builder.add("Reshape", _product(builder, value, _WIDTH), split) for _ in range(3)]
    query, values = (builder.add("Transpose", heads[n], perm=[0, 2, 1, 3]) for n in (0, 2))
    keys = builder.add("Transpose", heads[1], perm=[0, 2, 3, 1])
    scores = builder.add("Div", builder.add("MatMul", query, keys), builder.constant(2.0))
    mixed = builder.add("MatMul", builder.add("Softmax", scores, axis=-1), values)
    together = builder.add("Reshape", builder.add("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
    return _product(builder, together, _WIDTH)


def _layer_norm(builder: _Builder, value: str) -> str:
    centred = builder.add("Sub", value, builder.add("ReduceMean", value, axes=[-1]))
    square = builder.add("Pow", centred, builder.constant(2.0))
    variance = builder.add("Add", builder.add("ReduceMean", square, axes=[-1]), builder.constant(1e-5))
    normal = builder.add("Div", centred, builder.add("Sqrt", variance))
    return builder.add("Add", builder.add("Mul", normal, builder.random(_WIDTH)), builder.random(_WIDTH))


KINDS: dict[str, Callable[[int], ModelProto]] = {
    function.__name__: function
    for function in (
        chain,
        wide,
        numbers,
        fan_out,
        residual,
        shape_arithmetic,
        constants,
        equal_subgraphs,
        initializers,
        movements,
        convolutions,
        transformer,
    )
}
