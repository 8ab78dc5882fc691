"""Models of many nodes: the work to import them grows as they do, and they compute what they should."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto

from tests.graph.onnx_models import model, node, reference, tensor
from tilewright.deploy.program import Program
from tilewright.graph import types
from tilewright.graph.onnx import load_model
from tilewright.graph.passes import optimize
from tilewright.network import compile_network, partition_network
from tilewright.operators import Call, express
from tilewright.partition import Fallback, partition
from tilewright.te import Tensor
from tilewright.testing.large_models import KINDS
from tilewright.testing.partitions import run_partition

# Few kernels, and each of the same few kinds of nodes. What has a number of its own in each node is another kernel.
_OF_EQUAL_NODES = [kind for kind in KINDS if kind != "numbers"]


class Calls:
    """How many functions were called."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        self.number += event in ("call", "c_call")


@contextmanager
def counted() -> Iterator[Calls]:
    calls = Calls()
    before = sys.getprofile()
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def num_calls(proto: ModelProto) -> int:
    """The work of importing a model: a number that is the same on any machine."""
    data = proto.SerializeToString()
    with counted() as calls:
        partition(optimize(load_model(data)))
    return calls.number


@pytest.mark.parametrize("kind", KINDS)
def test_work_grows_with_the_number_of_nodes(kind: str) -> None:
    few = 60 if kind == "numbers" else 250
    num_calls(KINDS[kind](few))  # what is done once for the process
    assert num_calls(KINDS[kind](4 * few)) < 4.4 * num_calls(KINDS[kind](few))


@pytest.mark.parametrize("kind", _OF_EQUAL_NODES)
def test_equal_nodes_are_looked_at_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []

    def counting(call: Call) -> tuple[Tensor, ...]:
        numbers[-1] += 1
        return express(call)

    monkeypatch.setattr(types, "express", counting)
    for num_nodes in (300, 900):
        numbers.append(0)
        partition_network(KINDS[kind](num_nodes))
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_compute_what_the_evaluator_of_onnx_does(kind: str) -> None:
    proto = KINDS[kind](40)
    x = np.random.default_rng(0).standard_normal(_shape(proto)).astype(np.float32)
    found = run_partition(partition_network(proto), {"x": x})
    for name, expected in reference(proto, {"x": x}).items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-4)


def _shape(proto: ModelProto) -> list[int]:
    return [dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim]


@pytest.mark.parametrize("kind", ["chain", "wide", "fan_out", "transformer"])
def test_kernels_that_repeat_are_compiled_once(kind: str) -> None:
    compiled = compile_network(KINDS[kind](1500), threads=1)
    assert len(compiled.kernels) < 10
    proto = KINDS[kind](1500)
    outputs = Program(compiled)([np.ones(_shape(proto), np.float32)])
    assert all(np.isfinite(output).all() for output in outputs)


def chain(op: str, length: int, **attributes: Any) -> ModelProto:
    nodes = [node(op, [f"v{n}"], [f"v{n + 1}"], **attributes) for n in range(length)]
    return model(nodes, [tensor("v0", [2, 8])], [f"v{length}"])


@pytest.mark.parametrize("op", ["Sin", "Atan", "Gelu", "Mish", "Round"])
def test_functions_with_long_expressions_are_not_nested_without_end(op: str) -> None:
    """A recursion over their expressions would otherwise end in a RecursionError."""
    found = partition_network(chain(op, 120))
    assert 1 < len(found.kernels) < 60
    assert all(part.task.hash for part in found.kernels)


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min"])
def test_thousands_of_operands_fall_back(op: str) -> None:
    proto = model([node(op, ["x"] * 3000, ["y"])], [tensor("x", [2])], ["y"])
    (part,) = partition_network(proto).parts
    assert isinstance(part, Fallback)
    assert "3000 operands" in part.reason


def movements_before_a_scale(length: int) -> list[NodeProto]:
    nodes = [node("MatMul", ["x", "w"], ["r0"])]
    for n in range(length):
        nodes.append(node("Transpose", [f"r{n}"], [f"t{n}"], perm=[1, 0]))
        nodes.append(node("Reshape", [f"t{n}", "shape"], [f"r{n + 1}"]))
    return [*nodes, node("Mul", [f"r{length}", "half"], ["y"])]


def test_a_scale_looks_up_a_chain_of_any_length() -> None:
    w = np.ones((4, 4), np.float32)
    constants = {"w": w, "shape": np.array([4, 4]), "half": np.array(0.5, np.float32)}
    proto = model(movements_before_a_scale(700), [tensor("x", [4, 4])], ["y"], constants)
    x = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    np.testing.assert_allclose(run_partition(partition_network(proto), {"x": x})["y"], x @ w / 2, 1e-5)


def test_a_chain_of_slices_with_two_readers() -> None:
    bounds = {"start": np.array([1]), "end": np.array([10**6]), "axis": np.array([0])}
    nodes = [node("Slice", [f"v{n}", *bounds], [f"v{n + 1}"]) for n in range(600)]
    nodes += [node("Relu", ["v600"], ["y"]), node("Exp", ["v600"], ["z"])]
    proto = model(nodes, [tensor("v0", [700, 2])], ["y", "z"], bounds)
    assert partition_network(proto).kernels


@pytest.mark.parametrize("depth", [5, 10, 20])
def test_nested_branches_are_inlined_in_proportion(depth: int) -> None:
    with counted() as calls:
        found = load_model(nested_branches(depth))
    assert [each.op for each in found.nodes] == ["Relu"]
    assert calls.number < 600 * (depth + 2) ** 2  # what is inside is renamed at every level


def nested_branches(depth: int) -> ModelProto:
    inner = onnx.helper.make_graph([node("Relu", ["x"], ["r0"])], "inner", [], [tensor("r0", [3])])
    for level in range(1, depth):
        inner = onnx.helper.make_graph([_branch(inner, level)], "inner", [], [tensor(f"r{level}", [3])])
    return model([_branch(inner, depth)], [tensor("x", [3])], [f"r{depth}"], {"is_taken": np.array(True)})


def _branch(inner: onnx.GraphProto, level: int) -> NodeProto:
    other = onnx.helper.make_graph([node("Neg", ["x"], [f"n{level}"])], "other", [], [tensor(f"n{level}", [3])])
    return node("If", ["is_taken"], [f"r{level}"], then_branch=inner, else_branch=other)
