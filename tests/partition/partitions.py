"""Networks cut into parts by hand, for the tests of what comes after the partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright import te
from tilewright.graph.graph import Graph
from tilewright.operators import Node, TensorType
from tilewright.partition import Fallback, KernelPart, Part, Partition, View
from tilewright.schedule import Schedule, Trace
from tilewright.te import Task

Array = npt.NDArray[Any]


class PartitionBuilder:
    """A partition as it is made: each method adds a part and returns the name of the value it computes."""

    def __init__(self, name: str = "net") -> None:
        self.graph = Graph(name, (), (), [], {}, {})
        self.parts: list[Part] = []

    def input(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> str:
        self.graph.inputs = (*self.graph.inputs, name)
        self.graph.types[name] = TensorType(dtype, shape)
        return name

    def constant(self, name: str, value: Array) -> str:
        self.graph.constants[name] = value
        dtype = "string" if value.dtype.kind == "O" else value.dtype.name
        self.graph.types[name] = TensorType(dtype, value.shape)
        return name

    def kernel(self, name: str, inputs: Sequence[str], body: Callable[..., te.Tensor], output: str) -> str:
        tensors = [self._placeholder(position, value) for position, value in enumerate(inputs)]
        result = body(*tensors)
        return self.part(KernelPart((), Task(tensors, [result], name=name), tuple(inputs), (output,)))

    def part(self, part: KernelPart) -> str:
        for name, tensor in zip(part.outputs, part.task.outputs, strict=True):
            self.graph.types[name] = TensorType(tensor.dtype, tensor.shape)
        self.parts.append(part)
        return part.outputs[0]

    def dense(self, x: str, w: str, output: str) -> str:
        """x @ w."""
        return self.kernel("dense", [x, w], _matmul, output)

    def add(self, a: str, b: str, output: str) -> str:
        return self.kernel("add", [a, b], lambda A, B: te.compute(A.shape, lambda *i: A[i] + B[i], name="sum"), output)

    def relu(self, x: str, output: str) -> str:
        return self.kernel(
            "relu", [x], lambda X: te.compute(X.shape, lambda *i: te.maximum(X[i], 0.0), name="relu"), output
        )

    def view(self, x: str, shape: tuple[int, ...], output: str) -> str:
        known = self.graph.types[x]
        assert known is not None
        self.graph.types[output] = TensorType(known.dtype, shape)
        self.parts.append(View(Node("Reshape", (x, ""), (output,)), x, output))
        return output

    def fallback(self, node: Node, *types: TensorType | None) -> str:
        for name, known in zip(node.outputs, types, strict=True):
            self.graph.types[name] = known
        self.parts.append(Fallback(node, "there is no tensor expression for it"))
        return node.outputs[0]

    def partition(self, *outputs: str) -> Partition:
        self.graph.outputs = outputs
        return Partition(self.graph, tuple(self.parts))

    def _placeholder(self, position: int, value: str) -> te.Tensor:
        known = self.graph.types[value]
        assert known is not None
        is_constant = value in self.graph.constants
        return te.placeholder(known.shape, known.dtype, name=f"in{position}", constant=is_constant)


def _matmul(X: te.Tensor, W: te.Tensor) -> te.Tensor:
    k = te.reduce_axis(W.shape[0], name="k")
    return te.compute((X.shape[0], W.shape[1]), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="product")


def packing_trace(task: Task) -> Trace:
    """Products read their weights in panels of four columns, in parallel; all else is plain loops."""
    schedule = Schedule(task)
    if "product" in [stage.name for stage in task.stages]:
        product = schedule["product"]
        product.split("j", 4)
        product.reorder("j.0", "i", "k", "j.1")
        product.vectorize("j.1")
        product.parallel("j.0")
        schedule[task.inputs[1].name].pack(product)
    return schedule.trace


def weights(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def residual(width: int = 8, num_blocks: int = 2) -> Partition:
    """x -> (dense, relu, dense, + x) repeated, then a reshape to one row; the weights differ, the tasks are equal."""
    net = PartitionBuilder("residual")
    x = net.input("x", (4, width))
    for n in range(num_blocks):
        first = net.constant(f"w{n}", weights(width, width, seed=2 * n))
        second = net.constant(f"v{n}", weights(width, width, seed=2 * n + 1))
        hidden = net.relu(net.dense(x, first, f"a{n}"), f"b{n}")
        x = net.add(net.dense(hidden, second, f"c{n}"), x, f"d{n}")
    return net.partition(net.view(x, (4 * width,), "y"))


def residual_reference(partition: Partition, x: Array) -> Array:
    constants = partition.graph.constants
    for n in range(len(constants) // 2):
        x = np.maximum(x @ constants[f"w{n}"], 0) @ constants[f"v{n}"] + x
    return x.reshape(-1)
