"""The fallback: any node on the reference evaluator of ONNX, corrected where that leaves the specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.graph import onnx_models
from tests.graph.onnx_models import random
from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.evaluation.fallback import FallbackOperator, run_fallback
from tilewright.graph.protos import node_from_proto
from tilewright.network import InferenceSession
from tilewright.operators import Node, TensorType
from tilewright.testing.operators import run_operator


def run(op: str, *inputs: Any, opset: int = 20, **attributes: Any) -> Any:
    names = tuple("" if value is None else f"in{i}" for i, value in enumerate(inputs))
    (output,) = run_fallback(Node(op, names, ("out",), attributes, opset=opset), inputs)
    return output


def test_operator_runs_again_and_again() -> None:
    operator = FallbackOperator(Node("Add", ("x", "y"), ("z",), opset=14))
    for seed in range(3):
        a, b = random((2, 3), seed), random((3,), seed + 10)
        np.testing.assert_array_equal(operator([a, b])[0], a + b)


def test_same_value_may_be_read_twice() -> None:
    operator = FallbackOperator(Node("Mul", ("x", "x"), ("z",), opset=14))
    np.testing.assert_array_equal(operator([random((3,)), random((3,))])[0], random((3,)) ** 2)


def test_a_subgraph_may_read_a_value_with_a_name_like_our_own() -> None:
    captured = "tilewright.operand.0"
    branches = {
        name: onnx_models.graph([onnx_models.node(op, [captured], ["y"])], [], ["y"])
        for name, op in (("then_branch", "Neg"), ("else_branch", "Abs"))
    }
    proto = onnx.helper.make_node("If", ["c"], ["z"], **branches)
    (output,) = run_fallback(node_from_proto(proto, 20), [np.array(True), random((3,))])
    np.testing.assert_array_equal(output, -random((3,)))


def test_elements_are_divided_by_the_norm_of_their_sizes() -> None:
    x = np.array([[3, -1], [0, 0]], np.float32)
    np.testing.assert_allclose(run("LpNormalization", x, p=1), np.array([[0.75, -0.25], [0, 0]]))


@pytest.mark.parametrize("opset", [9, 13, 14, 15])
def test_batches_are_normalised_by_what_is_given(opset: int) -> None:
    proto = onnx.helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], epsilon=0.0)
    x = np.array([[3.0], [5.0]], np.float32)
    given = [np.array([value], np.float32) for value in (2, 1, 3, 4)]
    (output,) = run_fallback(node_from_proto(proto, opset), [x, *given])
    np.testing.assert_allclose(output, np.array([[1.0], [3.0]]))


@pytest.mark.parametrize("size", [1, 3, 4])
def test_every_channel_of_one_image_has_its_neighbours(size: int) -> None:
    x = random((1, 5, 2, 2))
    (expected,) = run_operator("LRN", x, size=size, alpha=0.5)
    np.testing.assert_allclose(run("LRN", x, size=size, alpha=0.5), expected, rtol=1e-5)


def test_absent_input_and_unwanted_output() -> None:
    x = random((4,))
    top = FallbackOperator(Node("TopK", ("x", "k"), ("", "i"), opset=11))([x, np.array([2])])
    assert top[0] is None
    np.testing.assert_array_equal(top[1], np.argsort(-x)[:2])
    np.testing.assert_array_equal(run("Clip", x, None, np.float32(0.5)), np.minimum(x, 0.5))


def test_result_takes_the_type_that_is_known() -> None:
    operator = FallbackOperator(Node("Add", ("x", "y"), ("z",), opset=14), [TensorType("float16", (3,))])
    assert operator([random((3,)), random((3,))])[0].dtype == np.float16


def test_overflow_is_no_warning() -> None:
    assert np.isinf(run("Exp", np.array([1000.0], np.float32))[0])


def test_node_that_does_not_fit_its_inputs_is_named() -> None:
    with pytest.raises(ModelError, match=r"z = MatMul\(x, y\) \(MatMul\) failed .*shape=\(2, 3\).*shape=\(2, 3\)"):
        run_fallback(Node("MatMul", ("x", "y"), ("z",), opset=13), [random((2, 3)), random((2, 3))])


def test_operator_that_nobody_knows_is_named() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"z = Frobnicate\(x\) \(Frobnicate, opset 13\)"):
        FallbackOperator(Node("Frobnicate", ("x",), ("z",), opset=13))


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (2, 3, 2, 3, 4)])
def test_largest_element_of_a_channel(shape: tuple[int, ...]) -> None:
    x = random(shape)
    np.testing.assert_array_equal(run("GlobalMaxPool", x).reshape(2, 3), x.reshape(2, 3, -1).max(axis=2))


def test_negative_pads_crop() -> None:
    x = random((3, 5))
    got = run("Pad", x, np.array([1, -2, -1, 3]), np.float32(7))
    np.testing.assert_array_equal(got, np.pad(x[:2, 2:], ((1, 0), (0, 3)), constant_values=7))
    got = run("Pad", x, np.array([-1, 1]), None, np.array([-1]), mode="edge")
    np.testing.assert_array_equal(got, np.pad(x[:, 1:], ((0, 0), (0, 1)), mode="edge"))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_softmax_before_opset_13_takes_all_axes_from_one_on(axis: int) -> None:
    x = random((2, 3, 4))
    axes = tuple(range(axis % 3, 3))
    powers = np.exp(x)
    expected = powers / powers.sum(axis=axes, keepdims=True)
    np.testing.assert_allclose(run("Softmax", x, opset=11, axis=axis), expected, rtol=1e-5)
    np.testing.assert_allclose(run("LogSoftmax", x, opset=11, axis=axis), np.log(expected), rtol=1e-4, atol=1e-6)
    is_largest = x == x.max(axis=axes, keepdims=True)
    np.testing.assert_array_equal(run("Hardmax", x, opset=11, axis=axis), is_largest.astype(np.float32))


def test_softmax_before_opset_13_starts_at_axis_1() -> None:
    powers = np.exp(random((2, 3, 4)))
    expected = powers / powers.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(run("Softmax", random((2, 3, 4)), opset=11), expected, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_softmax_from_opset_13_takes_one_axis(axis: int) -> None:
    powers = np.exp(random((2, 3, 4)))
    expected = powers / powers.sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(run("Softmax", random((2, 3, 4)), opset=13, axis=axis), expected, rtol=1e-5)


@pytest.mark.parametrize("group", [1, 2, 4])
def test_transposed_convolution_in_groups(group: int) -> None:
    import torch

    x, w, b = random((2, 4, 5, 5)), random((4, 3, 2, 2), 1), random((3 * group,), 2)
    tensors = [torch.from_numpy(array) for array in (x, w, b)]
    expected = torch.nn.functional.conv_transpose2d(*tensors, stride=2, groups=group).numpy()
    got = run("ConvTranspose", x, w, b, group=group, strides=(2, 2))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_arithmetic_may_follow_a_reshape_of_what_has_no_shape_yet() -> None:
    text = """<ir_version: 8, opset_import: ["" : 20]> net (float[19] x) => (int64[1, 1, 19] y)
        <int64[3] s = {1, 1, 19}> { n = NonZero(x) r = Reshape(n, s) y = Neg(r) }"""
    with pytest.warns(UserWarning, match="NonZero, Reshape"):
        session = InferenceSession(onnx.parser.parse_model(text))
    (output,) = session.run(None, {"x": np.ones(19, np.float32)})
    np.testing.assert_array_equal(output, -np.arange(19).reshape(1, 1, 19))


def test_a_classifier_gives_its_scores_by_label() -> None:
    """As scikit-learn's are exported."""
    classifier = onnx.helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        coefficients=[1.0, 2.0, -1.0, 0.5],
        intercepts=[0.5, -0.5],
        classlabels_strings=["cat", "dog"],
        post_transform="SOFTMAX",
    )
    by_label = onnx.helper.make_node(
        "ZipMap", ["scores"], ["y"], domain="ai.onnx.ml", classlabels_strings=["cat", "dog"]
    )
    mapper = onnx.helper.make_node(
        "CategoryMapper", ["label"], ["number"], domain="ai.onnx.ml", cats_strings=["dog", "cat"], cats_int64s=[7, 3]
    )
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 1)]
    inputs = [onnx_models.tensor("x", [3, 2])]
    proto = onnx_models.model(
        [classifier, by_label, mapper], inputs, ["label", "number", "y"], opset_imports=opsets, ir_version=8
    )
    scores = proto.graph.output[2].type.sequence_type.elem_type.map_type
    scores.key_type = onnx.TensorProto.STRING
    scores.value_type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    x = random((3, 2))
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    with pytest.warns(UserWarning, match="ZipMap"):
        labels, numbers, rows = InferenceSession(proto).run(None, {"x": x})
    wanted_labels, wanted_numbers, wanted_rows = session.run(None, {"x": x})
    assert labels.tolist() == wanted_labels.tolist()
    assert numbers.tolist() == wanted_numbers.tolist()
    assert [list(row) for row in rows] == [list(row) for row in wanted_rows]
    np.testing.assert_allclose(
        [list(row.values()) for row in rows], [list(row.values()) for row in wanted_rows], rtol=1e-5
    )
