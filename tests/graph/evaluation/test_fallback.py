"""The fallback: any node on the reference evaluator of ONNX, corrected where that leaves the specification."""

from __future__ import annotations

import math
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


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("opset", [13, 18])
def test_a_logarithm_of_a_sum_has_the_type_of_what_is_summed_up(dtype: str, opset: int) -> None:
    x = np.array([[1, 100, 3], [20, 5, 6]], dtype)
    axes: dict[str, Any] = {"axes": [1]} if opset < 18 else {}
    operands = [x] if opset < 18 else [x, np.array([1])]
    wide = x.astype(np.float64)
    for op, expected in (
        ("ReduceLogSum", np.log(wide.sum(axis=1))),
        ("ReduceLogSumExp", np.logaddexp.reduce(wide, axis=1)),
    ):
        found = run(op, *operands, opset=opset, keepdims=0, **axes)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected.astype(dtype), rtol=1e-3)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_determinant_has_the_type_of_its_matrix(shape: tuple[int, ...], dtype: str) -> None:
    x = random(shape).astype(dtype)
    found = run("Det", x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.linalg.det(x.astype(np.float64)), rtol=1e-2 if dtype == "float16" else 1e-5)


def test_a_logarithm_of_a_sum_over_all_axes_or_none() -> None:
    x = np.array([[1, 100], [20, 5]], np.int64)
    np.testing.assert_array_equal(run("ReduceLogSum", x), [[4]])
    np.testing.assert_array_equal(run("ReduceLogSum", x, noop_with_empty_axes=1), [[0, 4], [2, 1]])
    np.testing.assert_array_equal(run("ReduceLogSumExp", x, noop_with_empty_axes=1), x)


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


def check_next_to_onnxruntime(node: onnx.NodeProto, *inputs: Any, opset: int = 18) -> None:
    given = [name for name in node.input if name]
    kinds = [
        onnx.TensorProto.STRING if x.dtype == object else onnx.helper.np_dtype_to_tensor_dtype(x.dtype) for x in inputs
    ]
    declared = [onnx_models.tensor(name, x.shape, kind) for name, x, kind in zip(given, inputs, kinds, strict=True)]
    proto = onnx_models.model([node], declared, [name for name in node.output if name], opset=opset, ir_version=8)
    feed = dict(zip(given, inputs, strict=True))
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    operands = [feed[name] if name else None for name in node.input]
    found = [output for output in run_fallback(node_from_proto(node, opset), operands) if output is not None]
    for got, wanted in zip(found, session.run(None, feed), strict=True):
        assert got.shape == wanted.shape
        if wanted.dtype.kind != "f":
            assert got.tolist() == wanted.tolist()
            continue
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-5 if wanted.itemsize > 2 else 1e-2, atol=1e-5)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("outputs", [["y"], ["y", "first", "which", "counts"], ["y", "", "which"]])
def test_elements_that_differ(axis: int | None, is_sorted: int, outputs: list[str]) -> None:
    attributes = {"sorted": is_sorted} if axis is None else {"sorted": is_sorted, "axis": axis}
    x = np.array([[3, 1, 3, 0], [3, 1, 3, 0], [2, 2, 2, 5]], np.float32)
    check_next_to_onnxruntime(onnx.helper.make_node("Unique", ["x"], outputs, **attributes), x)


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize(
    ("operands", "names"),
    [
        ([4, 0.3, 0.2], ["most", "limit", "least"]),
        ([4, 0.3], ["most", "limit"]),
        ([3], ["most"]),
        ([0, 0.3], ["most", "limit"]),
        ([9, 0.6], ["most", "", "least"]),
        ([], []),
    ],
)
def test_boxes_that_overlap_better_ones_are_left_out(center: int, operands: list[float], names: list[str]) -> None:
    rng = np.random.default_rng(0)
    boxes = np.round(rng.random((2, 12, 4)).astype(np.float32) * 8) / 4
    scores = np.round(rng.random((2, 3, 12)).astype(np.float32) * 16) / 16
    node = onnx.helper.make_node("NonMaxSuppression", ["boxes", "scores", *names], ["y"], center_point_box=center)
    given = [np.array([x], np.int64 if isinstance(x, int) else np.float32) for x in operands]
    check_next_to_onnxruntime(node, boxes, scores, *given, opset=11)


def test_numbers_become_text_as_onnxruntime_writes_them() -> None:
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.STRING)
    check_next_to_onnxruntime(node, np.array([1.5, -2, 1e20, 0.1, 1 / 3, 3, 1e-7, np.nan, np.inf, -np.inf], np.float32))
    check_next_to_onnxruntime(node, np.array([1.5, -2, 1e20, 0.1, 1e-7, np.nan]))
    check_next_to_onnxruntime(node, np.array([2**40, -3]))
    check_next_to_onnxruntime(node, np.array([True, False]))


@pytest.mark.parametrize("action", ["LOWER", "UPPER", "NONE"])
@pytest.mark.parametrize("is_sensitive", [0, 1])
@pytest.mark.parametrize("shape", [(4,), (1, 4)])
def test_words_in_one_case_without_stop_words(action: str, is_sensitive: int, shape: tuple[int, ...]) -> None:
    attributes = {"case_change_action": action, "is_case_sensitive": is_sensitive, "stopwords": ["the"], "locale": "C"}
    node = onnx.helper.make_node("StringNormalizer", ["x"], ["y"], **attributes)
    check_next_to_onnxruntime(node, np.array(["The", "the", "Mat", "on the"], object).reshape(shape))
    check_next_to_onnxruntime(node, np.array(["the"] * 4, object).reshape(shape))


@pytest.mark.parametrize(("place", "expected"), [(None, [0, 1, 9]), (0, [9, 0, 1]), (2, [0, 1, 9]), (-1, [0, 9, 1])])
def test_a_tensor_is_inserted_where_it_should_be(place: int | None, expected: list[int]) -> None:
    sequence = [np.array(0), np.array(1)]
    operands = [sequence, np.array(9)] + ([] if place is None else [np.array(place)])
    (longer,) = run_fallback(Node("SequenceInsert", ("s", "t", "p")[: len(operands)], ("y",), opset=11), operands)
    assert [int(item) for item in longer] == expected
    assert len(sequence) == 2


def test_a_sequence_that_is_empty_takes_a_first_tensor() -> None:
    (longer,) = run_fallback(Node("SequenceInsert", ("s", "t", "p"), ("y",), opset=11), [[], np.ones(2), np.array(0)])
    assert [item.tolist() for item in longer] == [[1, 1]]


def test_a_loop_takes_its_number_of_iterations_with_an_axis_of_one() -> None:
    """As onnxruntime does, though ONNX says a scalar."""
    text = """<ir_version: 8, opset_import: ["" : 20]> net (int64[1] n, float[2] x) => (float[2] y) <bool goes = {1}> {
        y = Loop <body = step (int64 i, bool c, float[2] a) => (bool d, float[2] b) { d = Identity(c) b = Add(a, x) }>
            (n, goes, x)
    }"""
    with pytest.warns(UserWarning, match="Loop"):
        session = InferenceSession(onnx.parser.parse_model(text), threads=1)
    (y,) = session.run(None, {"n": np.array([3]), "x": np.array([1, 2], np.float32)})
    np.testing.assert_array_equal(y, np.array([4, 8], np.float32))


def test_a_body_is_mapped_over_sequences_beside_tensors_and_reads_what_is_around_it() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]> net (seq(float[2]) a, seq(float[2]) b, float[2] c, float[2] d)
        => (seq(float[2]) y) {
            y = SequenceMap(a, b, c) <body = one (float[2] p, float[2] q, float[2] r) => (float[2] s) {
                t = Mul(p, q) u = Add(t, r) s = Sub(u, d) }>
        }"""
    values = [random((2,), seed) for seed in range(6)]
    with pytest.warns(UserWarning, match="SequenceMap"):
        session = InferenceSession(onnx.parser.parse_model(text))
    feed: dict[str, Any] = {"a": values[:2], "b": values[2:4], "c": values[4], "d": values[5]}
    (y,) = session.run(None, feed)
    for item, a, b in zip(y, feed["a"], feed["b"], strict=True):
        np.testing.assert_allclose(item, a * b + values[4] - values[5], rtol=1e-6)
    assert session.run(None, {**feed, "a": [], "b": []}) == [[]]


@pytest.mark.parametrize(
    "attributes",
    [
        {"separators": [" "], "mark": 0, "mincharnum": 1, "pad_value": "#"},
        {"separators": [" ", "[,.]"], "mark": 1, "mincharnum": 2, "pad_value": "#"},
        {"separators": [""], "mark": 0, "mincharnum": 1, "pad_value": ""},
        {"tokenexp": "[a-zA-Z]+", "mark": 0, "mincharnum": 1, "pad_value": "#"},
    ],
)
@pytest.mark.parametrize("shape", [(3,), (1, 3)])
def test_texts_are_cut_into_words(attributes: dict[str, Any], shape: tuple[int, ...]) -> None:
    x = np.array(["the cat, it sat.", "", "A b"], object).reshape(shape)
    node = onnx.helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", **attributes)
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    declared = [onnx_models.tensor("x", shape, onnx.TensorProto.STRING)]
    proto = onnx_models.model([node], declared, ["y"], opset_imports=opsets, ir_version=8)
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, {"x": x}
    )
    with pytest.warns(UserWarning, match="Tokenizer"):
        (got,) = InferenceSession(proto).run(None, {"x": x})
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2, 2), (0, 3, 3)])
def test_matrices_are_inverted(shape: tuple[int, ...], dtype: str) -> None:
    x = (np.eye(shape[-1]) + 0.2 * random(shape)).astype(dtype)
    node = onnx.helper.make_node("Inverse", ["x"], ["y"], domain="com.microsoft")
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    declared = [onnx_models.tensor("x", shape, onnx.helper.np_dtype_to_tensor_dtype(x.dtype))]
    proto = onnx_models.model([node], declared, ["y"], opset_imports=opsets, ir_version=8)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    with pytest.warns(UserWarning, match="Inverse"):
        (got,) = InferenceSession(proto).run(None, {"x": x})
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-2 if dtype == "float16" else 1e-4, atol=1e-3)


def test_a_matrix_without_an_inverse_gives_no_numbers_and_leaves_others_alone() -> None:
    x = np.array([[[1, 2], [2, 4]], [[2, 0], [0, 4]]], np.float32)
    (found,) = run_fallback(Node("Inverse", ("x",), ("y",), {}, domain="com.microsoft", opset=1), [x])
    np.testing.assert_array_equal(found, [np.full((2, 2), np.nan), [[0.5, 0], [0, 0.25]]])


POOLS: list[dict[str, Any]] = [
    {"kernel_shape": [3, 2], "strides": [3, 3], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 1, 1]},
    {"kernel_shape": [2, 3], "pads": [0, 1, 1, 0], "dilations": [2, 1]},
    {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER", "strides": [2, 1]},
    {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [1, 1]},
]


@pytest.mark.parametrize("attributes", POOLS)
def test_pools_of_what_has_no_shape_yet(attributes: dict[str, Any]) -> None:
    x = random((2, 3, 7, 8))
    for includes in (0, 1):
        node = onnx.helper.make_node("AveragePool", ["x"], ["y"], count_include_pad=includes, **attributes)
        check_next_to_onnxruntime(node, x, opset=19)
    for order in (0, 1):
        node = onnx.helper.make_node("MaxPool", ["x"], ["y", "places"], storage_order=order, **attributes)
        check_next_to_onnxruntime(node, x)
    bytes_ = (x * 40).astype(np.int8)
    check_next_to_onnxruntime(onnx.helper.make_node("MaxPool", ["x"], ["y"], **attributes), bytes_)


@pytest.mark.parametrize(
    ("op", "shapes", "attributes"),
    [
        ("GlobalLpPool", [(2, 3, 4, 5)], {"p": 3}),
        ("ConvTranspose", [(1, 2, 5, 5), (2, 3, 3, 3)], {"strides": [2, 2], "output_shape": [10, 11]}),
        ("GridSample", [(1, 2, 5, 6), (1, 3, 4, 2)], {"mode": "bilinear", "padding_mode": "border"}),
        ("GridSample", [(1, 2, 5, 6), (1, 3, 4, 2)], {"mode": "bicubic", "padding_mode": "reflection"}),
        ("GridSample", [(1, 2, 5, 6), (1, 3, 4, 2)], {"mode": "nearest"}),
        ("LayerNormalization", [(3, 4, 5), (4, 5), (4, 5)], {"axis": 1}),
        ("Flatten", [(0, 3, 2)], {}),
        ("Flatten", [(2, 0, 3)], {"axis": -1}),
        ("Mean", [(3,), (2, 3)], {}),
        ("GlobalAveragePool", [(0, 2, 3, 3)], {}),
        ("ConvTranspose", [(0, 2, 3, 3), (2, 1, 2, 2)], {"strides": [2, 2]}),
        ("GridSample", [(0, 2, 3, 3), (0, 4, 5, 2)], {}),
        ("Hardmax", [(2, 0)], {}),
    ],
)
def test_operators_that_the_reference_evaluator_refuses(op: str, shapes: Any, attributes: dict[str, Any]) -> None:
    names = [f"x{i}" for i in range(len(shapes))]
    inputs = [random(shape, seed) for seed, shape in enumerate(shapes)]
    check_next_to_onnxruntime(onnx.helper.make_node(op, names, ["y"], **attributes), *inputs)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_sums_of_integers_keep_their_type_where_no_shape_is_known(dtype: Any) -> None:
    squares = run("ReduceSumSquare", np.array([1, 2, 3], dtype), keepdims=0)
    assert (squares.dtype, squares.tolist()) == (dtype, 14)


@pytest.mark.parametrize("attributes", [{}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}])
def test_running_sums_along_an_axis_that_is_given_as_a_row(attributes: dict[str, Any]) -> None:
    node = onnx.helper.make_node("CumSum", ["x", "a"], ["y"], **attributes)
    for axis in (0, -1):
        check_next_to_onnxruntime(node, random((3, 4)), np.array([axis]))


def test_the_error_function_of_float64_keeps_its_digits() -> None:
    x = random((5,)).astype(np.float64)
    np.testing.assert_allclose(run("Erf", x), [math.erf(value) for value in x], rtol=1e-15)


def test_halves_are_normalised_as_floats() -> None:
    node = onnx.helper.make_node("LayerNormalization", ["x", "s"], ["y", "mean", "inverse"])
    x = (random((3, 64)) * 300).astype(np.float16)
    check_next_to_onnxruntime(node, x, np.ones(64, np.float16))


def test_fewer_indices_than_elements_and_depths_of_any_type() -> None:
    gather = onnx.helper.make_node("GatherElements", ["x", "i"], ["y"], axis=0)
    check_next_to_onnxruntime(gather, random((3, 3)), np.array([[-1, 0]], np.int32))
    for axis in (-1, 0, 1):
        one_hot = onnx.helper.make_node("OneHot", ["i", "d", "v"], ["y"], axis=axis)
        operands = np.array([[0, -1, 5]], np.float32), np.array([4], np.float32), np.array([2, 5], np.float32)
        check_next_to_onnxruntime(one_hot, *operands)


def test_bfloat16_of_unknown_shape_goes_from_one_fallback_to_the_next() -> None:
    text = """<ir_version: 8, opset_import: ["" : 20]> net (float[6] x, int64[2] s) => (float[a, b] y, bfloat16[c, d] z)
        { r = Reshape(x, s) h = Cast<to = 16>(r) z = Add(h, h) y = Cast<to = 1>(z) }"""
    with pytest.warns(UserWarning, match="Reshape"):
        session = InferenceSession(onnx.parser.parse_model(text))
    y, z = session.run(None, {"x": np.arange(6, dtype=np.float32), "s": np.array([2, 3])})
    assert y.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert z.dtype == np.uint16


def test_a_product_may_follow_a_transposition_of_what_has_no_shape_yet() -> None:
    text = """<ir_version: 8, opset_import: ["" : 20]> net (float[24] x, int64[3] s) => (float[2, 5] y)
        <int64[2] flat = {2, 12}>
        { r = Reshape(x, s) t = Transpose<perm = [0, 2, 1]>(r) f = Reshape(t, flat) y = MatMul(f, w) }"""
    proto = onnx.parser.parse_model(text)
    w = random((12, 5), 1)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    with pytest.warns(UserWarning, match="Transpose"):
        session = InferenceSession(proto)
    x = random((24,))
    (y,) = session.run(None, {"x": x, "s": np.array([2, 3, 4])})
    np.testing.assert_allclose(y, x.reshape(2, 3, 4).transpose(0, 2, 1).reshape(2, 12) @ w, rtol=1e-4, atol=1e-5)
