"""Batch norms, scales and shifts go into the constants before them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tests.graph.onnx_models import model, node, random, tensor
from tests.graph.passes.checking import ops, run
from tilewright.graph.onnx import load_model
from tilewright.graph.passes.affine import fold_affine
from tilewright.graph.passes.batch_norm import expand_batch_norm
from tilewright.graph.passes.canonical import canonicalize

PASSES = [canonicalize, expand_batch_norm, fold_affine]


def batch_norm(source: str, output: str, channels: int) -> tuple[onnx.NodeProto, dict[str, Any]]:
    names = [f"{output}_{part}" for part in ("scale", "bias", "mean", "variance")]
    constants: dict[str, Any] = {name: random((channels,), seed) for seed, name in enumerate(names)}
    constants[names[3]] = np.abs(constants[names[3]]) + 0.5
    return node("BatchNormalization", [source, *names], [output], epsilon=1e-3), constants


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(("group", "shape"), [(1, (6, 4, 3, 3)), (2, (6, 2, 3, 3)), (4, (8, 1, 3, 3))])
def test_batch_norm_goes_into_a_convolution(group: int, shape: tuple[int, ...], has_bias: bool) -> None:
    norm, constants = batch_norm("h", "y", shape[0])
    constants |= {"w": random(shape, 7), "b": random(shape[:1], 8)}
    conv = node("Conv", ["x", "w", "b"] if has_bias else ["x", "w"], ["h"], group=group, pads=[1, 1, 1, 1])
    assert ops(run(model([conv, norm], [tensor("x", [2, 4, 5, 5])], ["y"], constants), PASSES)) == ["Conv"]


@pytest.mark.parametrize("group", [1, 2])
def test_batch_norm_goes_into_a_transposed_convolution(group: int) -> None:
    norm, constants = batch_norm("h", "y", 3 * group)
    constants["w"] = random((4, 3, 2, 2), 7)
    conv = node("ConvTranspose", ["x", "w"], ["h"], group=group, strides=[2, 2])
    assert ops(run(model([conv, norm], [tensor("x", [2, 4, 5, 5])], ["y"], constants), PASSES)) == ["ConvTranspose"]


@pytest.mark.parametrize("transposes", [0, 1])
def test_batch_norm_goes_into_a_gemm(transposes: int) -> None:
    norm, constants = batch_norm("h", "y", 5)
    constants |= {"w": random((5, 4) if transposes else (4, 5)), "b": random((5,), 1)}
    gemm = node("Gemm", ["x", "w", "b"], ["h"], transB=transposes)
    assert ops(run(model([gemm, norm], [tensor("x", [3, 4])], ["y"], constants), PASSES)) == ["MatMul", "Add"]


def test_batch_norm_by_itself_is_a_scale_and_a_shift() -> None:
    norm, constants = batch_norm("x", "y", 4)
    assert ops(run(model([norm], [tensor("x", [2, 4, 3, 3])], ["y"], constants), PASSES)) == ["Mul", "Add"]


def test_batch_norm_of_a_value_that_others_read_stays_beside_it() -> None:
    norm, constants = batch_norm("h", "y", 6)
    constants["w"] = random((6, 4, 1, 1), 7)
    nodes = [node("Conv", ["x", "w"], ["h"]), norm, node("Neg", ["h"], ["z"])]
    graph = run(model(nodes, [tensor("x", [2, 4, 3, 3])], ["y", "z"], constants), PASSES)
    assert ops(graph).count("Conv") == 1
    assert sorted(ops(graph)) == ["Add", "Conv", "Mul", "Neg"]


def test_batch_norm_of_an_output_stays_beside_it() -> None:
    norm, constants = batch_norm("h", "y", 6)
    constants["w"] = random((6, 4, 1, 1), 7)
    graph = run(
        model([node("Conv", ["x", "w"], ["h"]), norm], [tensor("x", [2, 4, 3, 3])], ["h", "y"], constants), PASSES
    )
    assert ops(graph) == ["Conv", "Mul", "Add"]


def test_batch_norm_in_training_stays() -> None:
    norm, constants = batch_norm("x", "y", 4)
    norm.attribute.append(onnx.helper.make_attribute("training_mode", 1))
    norm.output.extend(["mean", "variance"])
    assert ops(run(model([norm], [tensor("x", [2, 4, 3, 3])], ["y"], constants), PASSES)) == ["BatchNormalization"]


@pytest.mark.parametrize(
    ("op", "constant", "expected"),
    [
        ("Add", random((6, 1, 1)), ["Conv"]),
        ("Sub", random((1, 6, 1, 1)), ["Conv"]),
        ("Mul", random((6, 1, 1)), ["Conv"]),
        ("Div", np.float32(3), ["Conv"]),
        ("Add", random((3, 3)), ["Conv", "Add"]),
        ("Mul", random((2, 1, 1, 1)), ["Conv", "Mul"]),
        ("Div", np.float32(0), ["Conv", "Div"]),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_constant_operand_goes_into_a_convolution_if_it_is_one_number_a_channel(
    op: str, constant: np.ndarray, expected: list[str]
) -> None:
    nodes = [node("Conv", ["x", "w", "b"], ["h"]), node(op, ["h", "c"], ["y"])]
    constants = {"w": random((6, 4, 1, 1)), "b": random((6,), 1), "c": constant}
    assert ops(run(model(nodes, [tensor("x", [2, 4, 3, 3])], ["y"], constants), PASSES)) == expected


def test_constant_minus_a_value_stays() -> None:
    nodes = [node("Conv", ["x", "w"], ["h"]), node("Sub", ["c", "h"], ["y"])]
    constants = {"w": random((6, 4, 1, 1)), "c": np.float32(2)}
    assert ops(run(model(nodes, [tensor("x", [2, 4, 3, 3])], ["y"], constants), PASSES)) == ["Conv", "Sub"]


def test_constant_that_makes_the_result_larger_stays() -> None:
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Mul", ["h", "c"], ["y"])]
    constants = {"w": random((4, 5)), "c": random((3, 1, 1))}
    assert ops(run(model(nodes, [tensor("x", [2, 4])], ["y"], constants), PASSES)) == ["MatMul", "Mul"]


def test_integers_are_left_alone() -> None:
    nodes = [node("Add", ["n", "a"], ["h"]), node("Add", ["h", "a"], ["y"])]
    proto = model(nodes, [tensor("n", [3], onnx.TensorProto.INT32)], ["y"], {"a": np.array([1, 2, 3], np.int32)})
    assert ops(run(proto, PASSES)) == ["Add", "Add"]


def attention(scale: list[onnx.NodeProto], scores: str) -> onnx.ModelProto:
    constants: dict[str, Any] = {name: random((8, 8), seed) for seed, name in enumerate("qk")}
    constants |= {"qb": random((8,), 5), "kb": random((8,), 6), "heads": np.array([2, 5, 2, 4]), "s": np.float32(0.5)}
    nodes = []
    for name, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1])):
        nodes += [
            node("MatMul", ["x", name], [f"{name}1"]),
            node("Add", [f"{name}1", f"{name}b"], [f"{name}2"]),
            node("Reshape", [f"{name}2", "heads"], [f"{name}3"]),
            node("Transpose", [f"{name}3"], [f"{name}4"], perm=perm),
        ]
    nodes += scale
    nodes.append(node("Softmax", [scores], ["y"], axis=-1))
    return model(nodes, [tensor("x", [2, 5, 8])], ["y"], constants)


@pytest.mark.parametrize(
    ("scale", "scores"),
    [
        ([node("MatMul", ["q4", "k4"], ["p"]), node("Mul", ["p", "s"], ["scaled"])], "scaled"),
        ([node("MatMul", ["q4", "k4"], ["p"]), node("Div", ["p", "s"], ["scaled"])], "scaled"),
        ([node("Mul", ["s", "k4"], ["k5"]), node("MatMul", ["q4", "k5"], ["p"])], "p"),
    ],
)
def test_scale_of_attention_goes_into_the_weights(scale: list[onnx.NodeProto], scores: str) -> None:
    graph = run(attention(scale, scores), PASSES)
    assert "Mul" not in ops(graph)
    assert "Div" not in ops(graph)
    assert ops(graph).count("MatMul") == 3


@pytest.mark.parametrize(("dtype", "large"), [(np.float32, 1.5 * 2**23), (np.float16, 1.5 * 2**10)])
def test_large_shifts_that_round_stay(dtype: type[np.floating[Any]], large: float) -> None:
    """Round, as some exporters write it."""
    nodes = [
        node("Mul", ["x", "three"], ["s"]),
        node("Add", ["s", "large"], ["a"]),
        node("Sub", ["a", "large"], ["r"]),
        node("Div", ["r", "three"], ["y"]),
    ]
    constants = {"large": dtype(large), "three": dtype(3)}
    inputs = [tensor("x", [50], onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))]
    assert ops(run(model(nodes, inputs, ["y"], constants), PASSES)) == ["Mul", "Add", "Sub", "Div"]


@pytest.mark.parametrize(
    ("first", "weights", "factor"),
    [
        ("MatMul", np.full((4, 4), 300, np.float16), 500),
        ("Mul", np.float32(1e30), 1e30),
        ("Mul", np.float32(1e-30), 1e-30),
    ],
    ids=["weights", "large", "small"],
)
def test_what_no_number_of_the_type_can_be_stays_apart(first: str, weights: Any, factor: float) -> None:
    dtype = weights.dtype
    nodes = [node(first, ["x", "w"], ["h"]), node("Mul", ["h", "factor"], ["y"])]
    inputs = [tensor("x", [2, 4], onnx.helper.np_dtype_to_tensor_dtype(dtype))]
    proto = model(nodes, inputs, ["y"], {"w": weights, "factor": dtype.type(factor)})
    assert ops(fold_affine(canonicalize(load_model(proto)))) == [first, "Mul"]


@pytest.mark.parametrize(
    ("first", "shape", "constants"),
    [
        ("MatMul", (5, 4), {"w": (4, 1), "b": (1, 3), "s": (3,)}),
        ("Mul", (5, 1), {"w": (), "b": (1, 3), "s": (3,)}),
        ("Conv", (1, 2, 5, 5), {"w": (1, 2, 3, 3), "b": (1, 3, 1, 1), "s": (3, 1, 1)}),
        ("ConvTranspose", (1, 2, 5, 5), {"w": (2, 1, 3, 3), "b": (3, 1, 1), "s": (1, 3, 1, 1)}),
        ("LayerNormalization", (5, 1), {"w": (1,), "b": (1, 3), "s": (3,)}),
        ("Conv", (1, 2, 5, 5), {"w": (3, 2, 3, 3), "b": (4, 1, 3, 1, 1), "s": (1, 1, 3, 1, 1)}),
    ],
)
def test_a_scale_that_would_make_the_value_before_a_sum_larger_stays(
    first: str, shape: tuple[int, ...], constants: dict[str, tuple[int, ...]]
) -> None:
    nodes = [node(first, ["x", "w"], ["h"]), node("Add", ["h", "b"], ["a"]), node("Mul", ["a", "s"], ["y"])]
    values = {name: np.asarray(random(size, seed)) for seed, (name, size) in enumerate(constants.items())}
    assert ops(run(model(nodes, [tensor("x", list(shape))], ["y"], values), PASSES)) == [first, "Add", "Mul"]
