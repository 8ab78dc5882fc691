"""Nodes of ONNX through the tensor expressions of their operators: express, compile with a naive schedule, run.

What the import of a network does once is done here for each graph, in the plainest way: nodes whose operands are all
known are folded by ONNX's own evaluator, all others become one task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from tilewright import te
from tilewright.graph.protos import node_from_proto, normal_domain
from tilewright.operators import Call, Node, NotCompilableError, express, is_random
from tilewright.runtime.build import build
from tilewright.te import Task

# Operands that a model has as constants, such as shapes and scales, have no more dimensions than this.
_MAX_CONSTANT_DIMENSIONS = 1

_HALF_RTOL = {"float16": 4 * 2.0**-10, "bfloat16": 4 * 2.0**-7}


def run_node(node: onnx.NodeProto, inputs: Mapping[str, NDArray[Any]], opset: int) -> list[NDArray[Any]]:
    """The outputs of one node, by a compiled kernel. `inputs` has the arrays by the names that the node gives them."""
    return run_graph(_graph_of(node, inputs), inputs, {normal_domain(node.domain): opset})


def _graph_of(node: onnx.NodeProto, inputs: Iterable[str]) -> onnx.GraphProto:
    return onnx.GraphProto(
        node=[node],
        input=[onnx.ValueInfoProto(name=name) for name in inputs],
        output=[onnx.ValueInfoProto(name=name) for name in node.output if name],
    )


def run_operator(
    op: str,
    *inputs: NDArray[Any] | None,
    opset: int = 22,
    outputs: int = 1,
    known: Sequence[int] = (),
    **attributes: Any,
) -> list[NDArray[Any]]:
    """The outputs of an operator, by a compiled kernel; None is an operand that is left out.

    It has as many outputs as `outputs` says. The operands at the positions `known` are known ahead, others only if the
    operator cannot do without.

    >>> run_operator("Concat", np.array([1, 2]), np.array([3]), axis=0)
    [array([1, 2, 3])]
    """
    node, given = _node(op, inputs, outputs, attributes)
    return run_graph(_graph_of(node, given), given, {"": opset}, [node.input[position] for position in known])


def _node(
    op: str, inputs: Sequence[NDArray[Any] | None], outputs: int, attributes: Mapping[str, Any]
) -> tuple[onnx.NodeProto, dict[str, NDArray[Any]]]:
    names = ["" if array is None else f"x{position}" for position, array in enumerate(inputs)]
    node = onnx.helper.make_node(op, names, [f"y{position}" for position in range(outputs)], **attributes)
    return node, {name: array for name, array in zip(names, inputs, strict=True) if array is not None}


def run_model(model: onnx.ModelProto, inputs: Sequence[Any]) -> list[NDArray[Any]]:
    """The outputs of a model, by one compiled kernel; raises NotCompilableError if that cannot be."""
    names = [value.name for value in model.graph.input]
    given = {name: as_array(value) for name, value in zip(names, inputs, strict=False) if value is not None}
    opsets = {normal_domain(entry.domain): entry.version for entry in model.opset_import}
    return run_graph(model.graph, given, opsets)


def as_array(value: object) -> NDArray[Any]:
    """An input or output of ONNX's test cases as an array."""
    if isinstance(value, onnx.TensorProto):
        return np.asarray(onnx.numpy_helper.to_array(value))
    if isinstance(value, list | dict):
        raise NotCompilableError(f"a {type(value).__name__} is no tensor")
    return np.asarray(value)


def run_graph(
    graph: onnx.GraphProto,
    inputs: Mapping[str, NDArray[Any]],
    opsets: Mapping[str, int],
    known: Collection[str] = (),
) -> list[NDArray[Any]]:
    """The outputs of a graph. Inputs other than `known` are known ahead only if an operator cannot do without.

    It is tried first without, then with all integers, then with all scalars and vectors, such as scales.
    """
    integers = [name for name, array in inputs.items() if np.issubdtype(array.dtype, np.integer)]
    vectors = [name for name, array in inputs.items() if array.ndim <= _MAX_CONSTANT_DIMENSIONS]
    for more in ([], integers):
        try:
            return _run(graph, inputs, {*known, *more}, opsets)
        except NotCompilableError:
            continue
    return _run(graph, inputs, {*known, *integers, *vectors}, opsets)


def _run(
    graph: onnx.GraphProto, inputs: Mapping[str, NDArray[Any]], known: Collection[str], opsets: Mapping[str, int]
) -> list[NDArray[Any]]:
    builder = _Builder(opsets, frozenset(value.name for value in graph.output))
    for initializer in graph.initializer:
        builder.add_value(initializer.name, onnx.numpy_helper.to_array(initializer), is_known=True)
    for name, array in inputs.items():
        builder.add_value(name, array, is_known=name in known)
    for number, node in enumerate(graph.node):
        builder.add_node(number, node)
    return builder.run([value.name for value in graph.output])


@dataclass(slots=True)
class _Builder:
    """Expresses a graph node by node."""

    opsets: Mapping[str, int]
    graph_outputs: frozenset[str]
    given: dict[str, NDArray[Any]] = field(default_factory=dict)
    """What is not computed by kernels; `values` has the part of it that is known ahead."""
    values: dict[str, NDArray[Any]] = field(default_factory=dict)
    tensors: dict[str, te.Tensor] = field(default_factory=dict)
    arrays: dict[te.Tensor, NDArray[Any]] = field(default_factory=dict)
    """What kernels are given for each placeholder."""

    def add_value(self, name: str, array: NDArray[Any], is_known: bool) -> None:
        self.given[name] = array
        if is_known:
            self.values[name] = array
        if array.dtype.name in te.DTYPES and array.size:
            tensor = te.placeholder(array.shape, array.dtype.name, f"input_{len(self.arrays)}", constant=is_known)
            self.tensors[name] = tensor
            self.arrays[tensor] = np.ascontiguousarray(array).reshape(array.shape)

    def add_node(self, number: int, proto: onnx.NodeProto) -> None:
        node = node_from_proto(proto, self.opsets.get(normal_domain(proto.domain), 1))
        if self._can_fold(node):
            for name, value in zip(node.outputs, self._fold(proto), strict=True):
                self.add_value(name, value, is_known=True)
            return
        for name in node.inputs:
            self._check_operand(node, name)
        call = Call(
            node,
            [self.tensors.get(name) for name in node.inputs],
            [self.values.get(name) for name in node.inputs],
            f"n{number}_",
        )
        for name, tensor in zip(node.outputs, express(call), strict=False):
            self.tensors[name] = tensor

    def _check_operand(self, node: Node, name: str) -> None:
        if not name or name in self.tensors:
            return
        found = self.given.get(name)
        if found is None:
            raise NotCompilableError(f"an input of {node.op} is no tensor")
        if found.size == 0 and name not in self.values:
            raise NotCompilableError(f"an input of {node.op} has no elements")
        if found.size:
            raise NotCompilableError(f"an input of {node.op} is {found.dtype.name}, which kernels do not know")

    def _can_fold(self, node: Node) -> bool:
        has_body = any(isinstance(value, onnx.GraphProto) for value in node.attributes.values())
        if self.graph_outputs & set(node.outputs) or has_body or is_random(node):
            return False
        if node.op in ("Shape", "Size"):
            return node.inputs[0] in self.tensors
        return all(name in self.values for name in node.inputs if name)

    def _fold(self, proto: onnx.NodeProto) -> list[NDArray[Any]]:
        given = {name: self.values[name] for name in proto.input if name in self.values}
        for name in proto.input:
            if name and name not in given:  # only its shape is asked for
                given[name] = np.empty(self.tensors[name].shape, np.bool_)
        evaluator = ReferenceEvaluator(proto, opsets=dict(self.opsets))
        return [np.asarray(value) for value in evaluator.run(None, given)]

    def run(self, outputs: Sequence[str]) -> list[NDArray[Any]]:
        wanted = [self.tensors.get(name) for name in outputs]
        for name, tensor in zip(outputs, wanted, strict=True):
            if tensor is None or tensor.is_placeholder:
                raise NotCompilableError(f"output {name} is not computed by a kernel")
        tensors = [tensor for tensor in wanted if tensor is not None]
        inputs = [tensor for tensor in te.topological_order(tensors) if tensor.is_placeholder]
        kernel = build(Task(inputs, tensors), threads=1)
        results = kernel(*(self.arrays[tensor] for tensor in inputs))
        found = [results] if len(tensors) == 1 else list(results)
        return [_typed(array, tensor.dtype) for array, tensor in zip(found, tensors, strict=True)]


def _typed(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The array of a kernel as ONNX has it: bits of bfloat16 in a type of that name."""
    if dtype != "bfloat16":
        return array
    return array.view(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16))


def assert_outputs(actual: Sequence[NDArray[Any]], expected: Sequence[Any], rtol: float, atol: float) -> None:
    """Raise AssertionError unless the outputs have the expected types, shapes and, up to a tolerance, elements.

    ONNX's evaluator rounds 16-bit floats after each step, kernels only what they store, so that those may differ in
    their last bits.
    """
    assert len(actual) == len(expected)
    for a, e in zip(actual, map(as_array, expected), strict=True):
        assert a.dtype == e.dtype, f"type {a.dtype}, expected {e.dtype}"
        assert a.shape == e.shape, f"shape {a.shape}, expected {e.shape}"
        tolerance = max(rtol, _HALF_RTOL.get(a.dtype.name, 0.0))
        if a.dtype.name == "bfloat16":
            a, e = a.astype(np.float32), e.astype(np.float32)
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=atol)
