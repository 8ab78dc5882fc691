"""`Net`: writes an ONNX model layer by layer, with random weights that keep activations in a sane range.

    net = Net("example", seed=0)
    x = net.input("input", (1, 3, 224, 224))
    x = net.relu(net.conv_bn(x, 64, 7, stride=2, pad=3))
    model = net.model(output=x)

The form is that of models exported from training frameworks in evaluation mode: batch norms stand by themselves,
parameters are initializers, and scalars and shapes are Constant nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, ValueInfoProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8

# A size for all dimensions of the image, or one for each.
Sizes = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the network. Its mean and variance are what random weights let expect: batch norms divide by them."""

    name: str
    shape: tuple[int, ...]
    mean: float = 0.0
    variance: float = 1.0

    @property
    def channels(self) -> int:
        """The extent of the axis that convolutions mix."""
        return self.shape[1]

    @property
    def mean_square(self) -> float:
        """What the variance of a sum of products with random weights grows with."""
        return self.variance + self.mean**2


class Net:
    """A network being written: every method adds a layer and gives its result."""

    def __init__(self, name: str, seed: int) -> None:
        # The weights go straight into the model, since a copy of it takes longer than all the rest.
        self._model = ModelProto(
            ir_version=IR_VERSION, producer_name="tilewright", opset_import=[helper.make_opsetid("", OPSET)]
        )
        self._graph = self._model.graph
        self._graph.name = name
        self._random = np.random.Generator(np.random.SFC64(seed))

    def input(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> Value:
        """An input of the network."""
        self._graph.input.append(_tensor_type(name, shape, dtype))
        return Value(name, shape)

    def model(self, **outputs: Value) -> ModelProto:
        """The finished model, whose outputs get the given names."""
        for name, value in outputs.items():
            for node in self._graph.node:
                node.input[:] = [name if n == value.name else n for n in node.input]
                node.output[:] = [name if n == value.name else n for n in node.output]
            self._graph.output.append(_tensor_type(name, value.shape, "float32"))
        return self._model

    def op(
        self,
        op: str,
        *inputs: Value,
        shape: tuple[int, ...] | None = None,
        moments: tuple[float, float] | None = None,
        **attributes: Any,
    ) -> Value:
        """A node of any operator; shape and moments (mean, variance) are those of the first input unless given."""
        label = self.label(op)
        names = [value.name for value in inputs]
        self._graph.node.append(helper.make_node(op, names, [label], label, **attributes))
        first = inputs[0]
        return Value(label, shape or first.shape, *(moments or (first.mean, first.variance)))

    def label(self, op: str) -> str:
        """The name of the node that comes next, of its result, and the beginning of its parameters' names."""
        return f"{op.lower()}_{len(self._graph.node)}"

    def weight(self, name: str, shape: tuple[int, ...], deviation: float, mean: float = 0.0) -> Value:
        """A parameter of uniformly random numbers with the given mean and standard deviation."""
        numbers = self._random.random(shape, np.float32)
        width = deviation * math.sqrt(12)
        numbers *= np.float32(width)
        numbers += np.float32(mean - width / 2)
        return self.parameter(name, numbers)

    def parameter(self, name: str, array: npt.NDArray[np.generic]) -> Value:
        """An array that is part of the model."""
        tensor = self._graph.initializer.add()
        tensor.name = name
        tensor.dims.extend(array.shape)
        tensor.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor.raw_data = array.tobytes()
        return Value(name, array.shape)

    def constant(self, value: npt.ArrayLike) -> Value:
        """A scalar or a few numbers, such as a shape, as a node; floats are float32."""
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        label = self.label("Constant")
        tensor = numpy_helper.from_array(array)
        self._graph.node.append(helper.make_node("Constant", [], [label], label, value=tensor))
        return Value(label, array.shape)

    def conv(
        self, x: Value, channels: int, kernel: Sizes, stride: Sizes = 1, pad: Sizes = 0, groups: int = 1,
        bias: bool = False,
    ) -> Value:  # fmt: skip
        """A convolution with weights by He: after a ReLU it keeps the mean square."""
        rank = len(x.shape) - 2
        window, strides, pads = (_each(sizes, rank) for sizes in (kernel, stride, pad))
        label = self.label("Conv")
        weight_shape = (channels, x.channels // groups, *window)
        fan_in = math.prod(weight_shape[1:])
        operands = [x, self.weight(f"{label}.weight", weight_shape, math.sqrt(2 / fan_in))]
        if bias:
            operands.append(self.weight(f"{label}.bias", (channels,), 0.1))
        return self.op(
            "Conv", *operands, shape=(x.shape[0], channels, *_windows(x.shape[2:], window, strides, pads)),
            moments=(0.0, 2 * x.mean_square), dilations=[1] * rank, group=groups, kernel_shape=window,
            pads=[*pads, *pads], strides=strides,
        )  # fmt: skip

    def conv_transpose(self, x: Value, channels: int, kernel: int, stride: int = 1, pad: int = 0) -> Value:
        """A transposed convolution of an image, with weights by He."""
        label = self.label("ConvTranspose")
        sizes = tuple((size - 1) * stride - 2 * pad + kernel for size in x.shape[2:])
        weight_shape = (x.channels, channels, kernel, kernel)
        # Each input meets all taps of the kernel, so that an output meets this many of them on average.
        taps = math.prod(kernel * size / out for size, out in zip(x.shape[2:], sizes, strict=True))
        weight = self.weight(f"{label}.weight", weight_shape, math.sqrt(2 / (x.channels * taps)))
        return self.op(
            "ConvTranspose", x, weight, shape=(x.shape[0], channels, *sizes), moments=(0.0, 2 * x.mean_square),
            dilations=[1, 1], group=1, kernel_shape=[kernel] * 2, pads=[pad] * 4, strides=[stride] * 2,
        )  # fmt: skip

    def batch_norm(self, x: Value, epsilon: float = 1e-5) -> Value:
        """A batch norm whose statistics fit what comes, so that its result has about mean 0 and variance 1."""
        label = self.label("BatchNormalization")
        deviation = math.sqrt(x.variance)
        operands = (
            self.weight(f"{label}.weight", (x.channels,), 0.1, mean=1.0),
            self.weight(f"{label}.bias", (x.channels,), 0.1),
            self.weight(f"{label}.running_mean", (x.channels,), 0.1 * deviation, mean=x.mean),
            self.weight(f"{label}.running_var", (x.channels,), 0.1 * x.variance, mean=x.variance),
        )
        return self.op(
            "BatchNormalization", x, *operands, moments=(0.0, 1.0), epsilon=epsilon, momentum=0.9, training_mode=0
        )

    def conv_bn(
        self, x: Value, channels: int, kernel: Sizes, stride: Sizes = 1, pad: Sizes = 0, groups: int = 1,
        epsilon: float = 1e-5,
    ) -> Value:  # fmt: skip
        """A convolution without bias, and its batch norm."""
        return self.batch_norm(self.conv(x, channels, kernel, stride, pad, groups), epsilon)

    def layer_norm(self, x: Value, epsilon: float) -> Value:
        """A norm of the last axis."""
        label = self.label("LayerNormalization")
        scale = self.weight(f"{label}.weight", x.shape[-1:], 0.1, mean=1.0)
        shift = self.weight(f"{label}.bias", x.shape[-1:], 0.1)
        return self.op("LayerNormalization", x, scale, shift, moments=(0.0, 1.0), axis=-1, epsilon=epsilon)

    def relu(self, x: Value) -> Value:
        """max(x, 0)."""
        return self.op("Relu", x, moments=_rectified(x))

    def relu6(self, x: Value) -> Value:
        """min(max(x, 0), 6), as the Clip that it is exported as."""
        return self.op("Clip", x, self.constant(0.0), self.constant(6.0), moments=_rectified(x))

    def add(self, x: Value, y: Value) -> Value:
        """The sum of two values of one shape."""
        return self.op("Add", x, y, moments=(x.mean + y.mean, x.variance + y.variance))

    def max_pool(self, x: Value, kernel: int, stride: int, pad: int = 0) -> Value:
        """The largest of each window."""
        return self._pool("MaxPool", x, kernel, stride, pad, dilations=[1] * (len(x.shape) - 2))

    def average_pool(self, x: Value, kernel: int, stride: int, pad: int = 0) -> Value:
        """The mean of each window, its padding included."""
        return self._pool("AveragePool", x, kernel, stride, pad, count_include_pad=1)

    def _pool(self, op: str, x: Value, kernel: int, stride: int, pad: int, **attributes: Any) -> Value:
        rank = len(x.shape) - 2
        window, strides, pads = ((size,) * rank for size in (kernel, stride, pad))
        return self.op(
            op, x, shape=(*x.shape[:2], *_windows(x.shape[2:], window, strides, pads)), ceil_mode=0,
            kernel_shape=window, pads=[*pads, *pads], strides=strides, **attributes,
        )  # fmt: skip

    def global_average(self, x: Value) -> Value:
        """The mean of each channel, flattened to [batch, channels]."""
        shape = (*x.shape[:2], *[1] * (len(x.shape) - 2))
        return self.flatten(self.op("GlobalAveragePool", x, shape=shape))

    def flatten(self, x: Value) -> Value:
        """[batch, everything else]."""
        return self.op("Flatten", x, shape=(x.shape[0], math.prod(x.shape[1:])), axis=1)

    def concat(self, values: Sequence[Value]) -> Value:
        """Side by side along the channels."""
        first = values[0]
        channels = sum(value.channels for value in values)
        mean = sum(value.mean * value.channels for value in values) / channels
        mean_square = sum(value.mean_square * value.channels for value in values) / channels
        return self.op(
            "Concat", *values, shape=(first.shape[0], channels, *first.shape[2:]),
            moments=(mean, mean_square - mean**2), axis=1,
        )  # fmt: skip

    def linear(self, x: Value, features: int) -> Value:
        """A dense layer with bias, of [batch, features]."""
        label = self.label("Gemm")
        weight = self.weight(f"{label}.weight", (features, x.shape[1]), math.sqrt(1 / x.shape[1]))
        bias = self.weight(f"{label}.bias", (features,), 0.1)
        return self.op(
            "Gemm", x, weight, bias, shape=(x.shape[0], features), moments=(0.0, x.mean_square),
            alpha=1.0, beta=1.0, transB=1,
        )  # fmt: skip


def _tensor_type(name: str, shape: tuple[int, ...], dtype: str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def _each(sizes: Sizes, rank: int) -> tuple[int, ...]:
    return (sizes,) * rank if isinstance(sizes, int) else sizes


def _windows(
    sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], pads: Sequence[int]
) -> tuple[int, ...]:
    """How many windows there are in each dimension."""
    return tuple((n + 2 * p - k) // s + 1 for n, k, s, p in zip(sizes, window, strides, pads, strict=True))


def _rectified(x: Value) -> tuple[float, float]:
    """Mean and variance of max(x, 0) for normally distributed x."""
    deviation = math.sqrt(x.variance)
    density = math.exp(-0.5 * (x.mean / deviation) ** 2) / math.sqrt(2 * math.pi)
    positive = 0.5 * (1 + math.erf(x.mean / deviation / math.sqrt(2)))
    mean = x.mean * positive + deviation * density
    mean_square = x.mean_square * positive + x.mean * deviation * density
    return mean, mean_square - mean**2
