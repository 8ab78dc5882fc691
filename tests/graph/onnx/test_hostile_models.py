"""Models as nobody should write them: those with a meaning run, the others are refused by an error that says why."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto

from tests.graph.onnx_models import graph, model, node, tensor
from tilewright.errors import ModelError, TilewrightError
from tilewright.graph.onnx import load_model
from tilewright.network import InferenceSession, compile_network

pytestmark = pytest.mark.filterwarnings("ignore:network")  # of fallbacks

X = np.array([1.0, -2.0, 3.0], np.float32)
LARGEST = 2**63 - 1


def parsed(text: str, opset: int = 20) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> net {text}')


def run(proto: ModelProto, **inputs: np.ndarray) -> list[np.ndarray]:
    return InferenceSession(compile_network(proto, threads=1)).run(None, inputs)


# --- names -----------------------------------------------------------------------------------------------------------

NAMES_WITH_A_MEANING: dict[str, tuple[str, list[Any]]] = {
    "an output twice": ("(float[3] x) => (y, y) { y = Neg(x) }", [-X, -X]),
    "an output twice through Identity": ("(float[3] x) => (y, y) { t = Neg(x) y = Identity(t) }", [-X, -X]),
    "an input as an output": ("(float[3] x) => (x, y) { y = Neg(x) }", [X, -X]),
    "an input as several outputs": ("(float[3] x) => (x, y, y) { y = Identity(x) }", [X, X, X]),
    "a constant as several outputs": ("(float[3] x) => (y, w, y) <float[1] w = {5.}> { y = Identity(w) }", [5, 5, 5]),
    "outputs that are the same value": ("(float[3] x) => (y, z) { y = Neg(x) z = Identity(y) }", [-X, -X]),
    "nodes in any order": ("(float[3] x) => (y) { y = Neg(t) t = Neg(x) }", [X]),
}


@pytest.mark.parametrize("case", NAMES_WITH_A_MEANING)
def test_names_with_a_meaning(case: str) -> None:
    text, expected = NAMES_WITH_A_MEANING[case]
    for got, wanted in zip(run(parsed(text), x=X), expected, strict=True):
        np.testing.assert_array_equal(got, np.broadcast_to(wanted, got.shape))


def test_names_of_the_graph_around_may_be_taken_again_in_subgraphs() -> None:
    text = """(float[3] x, bool c) => (y) { y = If (c) <
        then_branch = yes () => (float[3] c) { c = Neg(x) }, else_branch = no () => (float[3] y) { y = Add(x, x) }> }"""
    for condition, expected in ((True, -X), (False, 2 * X)):
        np.testing.assert_array_equal(run(parsed(text), x=X, c=np.array(condition))[0], expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(float[3] x, float[3] x) => (y) { y = Neg(x) }", "several inputs x; .*rename one"),
        ("(float[3] x) => (y) <float[1] y = {1.}> { y = Neg(x) }", "computes y, which an input or init.* already"),
        ("(float[4] x) => (y) { y, y = Split <num_outputs = 2> (x) }", "computes y, which .*Split.* gives already"),
        ("(float[3] x) => () { y = Neg(x) }", "no outputs, .*name the values"),
        ("(float[3] x) => (y) { a = Add(x, y) y = Neg(a) }", "in a cycle"),
        ("(float[3] x) => (y) { y = Neg() }", r"\(Neg\) is not a valid node: it has 0 inputs, but takes 1;"),
        ("(float[3] x) => (y) { y = Concat <axis = 0> (x, , x) }", r"input 1 \(inputs\) is left out"),
        ("(float[3] x) => (y) { y, z = Neg(x) }", "it has 2 outputs, but gives 1"),
    ],
)
def test_names_without_a_meaning(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_model(parsed(text))


def test_input_without_a_name() -> None:
    with pytest.raises(ModelError, match="an input of the model has no name"):
        load_model(model([node("Relu", ["x"], ["y"])], [tensor("x", [3]), tensor("", [3])], ["y"]))


# --- operands left out -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["", "n"])
@pytest.mark.parametrize("condition", ["", "c"])
def test_loop_without_trip_count_or_condition(limit: str, condition: str) -> None:
    text = f"""(float[3] x, bool c) => (y) <int64 n = {{9}}, int64 last = {{1}}> {{ y = Loop ({limit}, {condition}, x) <
        body = step (int64 i, bool go, float[3] s) => (bool on, float[3] t)
        {{ on = Less(i, last) t = Add(s, s) }}> }}"""
    np.testing.assert_array_equal(run(parsed(text), x=X, c=np.array(True))[0], 4 * X)


def test_optional_without_a_value() -> None:
    element = onnx.helper.make_tensor_type_proto(TensorProto.FLOAT, [3])
    nodes = [node("Optional", [], ["o"], type=element), node("OptionalHasElement", ["o"], ["y"])]
    assert not run(model(nodes, [], [tensor("y", [], TensorProto.BOOL)]))[0]


@pytest.mark.parametrize("opset", [11, 12, 13, 18])
def test_operand_that_a_later_version_makes_optional_may_be_left_out(opset: int) -> None:
    text = '(float[1,1,1,2] x) => (y) <float[4] s = {1., 1., 2., 2.}> { y = Resize <mode = "nearest"> (x, , s) }'
    got = run(parsed(text, opset), x=np.array([[[[1, 2]]]], np.float32))[0]
    np.testing.assert_array_equal(got[0, 0], [[1, 1, 2, 2]] * 2)


# --- what models say of their values ---------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [9, 20])
@pytest.mark.parametrize("said", [[0], [-1], [7], [3, 3], [None], None])
def test_shapes_that_the_model_states_of_computed_values_do_not_bind(opset: int, said: list[int] | None) -> None:
    proto = model([node("Neg", ["x"], ["t"]), node("Neg", ["t"], ["y"])], [tensor("x", [3])], [tensor("y", said)])
    proto.opset_import[0].version = opset
    proto.graph.value_info.append(tensor("t", said))
    np.testing.assert_array_equal(run(proto, x=X)[0], X)


@pytest.mark.parametrize("said", [[0], [-1], [None], None])
def test_shapes_that_subgraphs_leave_open(said: list[int] | None) -> None:
    branches = {
        f"{name}_branch": graph([node(op, ["x"], ["v"])], [], [tensor("v", said)])
        for name, op in (("then", "Neg"), ("else", "Abs"))
    }
    proto = model([node("If", ["c"], ["y"], **branches)], [tensor("x", [3]), tensor("c", [], TensorProto.BOOL)], ["y"])
    np.testing.assert_array_equal(run(proto, x=X, c=np.array(True))[0], -X)


@pytest.mark.parametrize("said", [["n"], [-1], [7], None])
def test_initializer_that_is_also_an_input_is_a_constant_whatever_the_input_says(said: list[int | str] | None) -> None:
    inputs = [tensor("x", [3]), tensor("w", said)]
    proto = model([node("Add", ["x", "w"], ["y"])], inputs, ["y"], {"w": X})
    assert load_model(proto).inputs == ("x",)
    np.testing.assert_array_equal(run(proto, x=X)[0], 2 * X)


# --- files that crash onnx, or never end -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opset", "text", "message"),
    [
        (9, "(float[1,1,2,2] x) => (y) <float[4] s = {1., 1., 2., 2.}> { y = Upsample <mode = 1> (x, s) }", "a string"),
        (20, f"(float[{LARGEST}] x) => (y) {{ y = Neg(x) }}", "more elements than"),
        (20, f"(float[{2**31},{2**31}] x) => (y) {{ y = Neg(x) }}", "more elements than"),
        (20, f"(float[{LARGEST},0] x) => (y) {{ y = Flatten(x) }}", "more elements than"),
        (20, "(float[3,4] x) => (y) <int64[2] r = {1000000, 1000000000}> { y = Tile(x, r) }", "more elements than"),
        (
            20,
            f"(float[2,3] x, float[3] w) => (y) {{ y = LayerNormalization <axis = {LARGEST}> (x, w) }}",
            "axis 9.*out",
        ),
        (20, "(float[4] x) => (y) { y = Split <num_outputs = 2> (x) }", "num_outputs is 2, but it has 1"),
        (20, f"(float[4] x) => (y) {{ y = Split <num_outputs = {2**31}> (x) }}", "num_outputs is 2147483648"),
        (20, '(float[3,5,5] x) => (y) { y = Einsum <equation = "...ii>...i"> (x) }', "is not an equation"),
        (20, "(float[2,3] x, int64[1,1] i) => (y) { y = GatherND <batch_dims = -10> (x, i) }", "batch_dims -10"),
        (20, f"(float[2] x, int64[{2**40}] s) => (y) {{ y = Expand(x, s) }}", "numbers"),
    ],
)
def test_what_crashes_onnx_is_refused(opset: int, text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_model(parsed(text, opset))


def test_converter_that_crashes_is_an_error() -> None:
    proto = parsed("(float[1,1,2,2] x) => (y) <float[4] s = {1., 1., 2., 2.}> { y = Upsample(x, s) }", 9)
    proto.graph.node[0].output.append("extra")  # refused before the converter sees it
    with pytest.raises(ModelError, match="it has 2 outputs"):
        load_model(proto)
    proto = parsed("(float[2] x) => (y) { y = Neg(x) }", 0)
    with pytest.raises(TilewrightError, match="Neg"):
        load_model(proto)


# --- attributes and data ---------------------------------------------------------------------------------------------

IMAGE = "(float[1,4,5,5] x, float[4,4,3,3] w) => (y)"


@pytest.mark.parametrize(
    "text",
    [
        f"{IMAGE} {{ y = Conv <group = 0> (x, w) }}",
        f"{IMAGE} {{ y = Conv <group = -1> (x, w) }}",
        f"{IMAGE} {{ y = Conv <strides = [0, 1]> (x, w) }}",
        f"{IMAGE} {{ y = Conv <strides = [1]> (x, w) }}",
        f"{IMAGE} {{ y = Conv <dilations = [1, 0]> (x, w) }}",
        f"{IMAGE} {{ y = Conv <pads = [1, 1]> (x, w) }}",
        f"{IMAGE} {{ y = Conv <pads = [{LARGEST}, 0, 0, 0]> (x, w) }}",
        f"{IMAGE} {{ y = ConvTranspose <group = 0> (x, w) }}",
        f"{IMAGE} {{ y = ConvTranspose <strides = [0, 0]> (x, w) }}",
        f"{IMAGE} {{ y = ConvTranspose <output_padding = [1]> (x, w) }}",
        f"{IMAGE} {{ y = MaxPool <kernel_shape = [0, 2]> (x) }}",
        f"{IMAGE} {{ y = MaxPool <kernel_shape = [2]> (x) }}",
        f"{IMAGE} {{ y = AveragePool <kernel_shape = [2, 2], strides = [-1, 1]> (x) }}",
        "(float x) => (y) { y = GlobalAveragePool(x) }",
        "(float[3] x, int64[3] t) => (y) { y = SoftmaxCrossEntropyLoss(x, t) }",
        f"{IMAGE} {{ y = LpPool <kernel_shape = [2, 2], p = 0> (x) }}",
        "(uint8[1,1,3,3] x, uint8[2,1,2,2] w, uint8 z) => (y) { y = ConvInteger(x, w, z, x) }",
        "(float[2,3] x, float[5] s) => (y) { y = QuantizeLinear <axis = 1> (x, s) }",
        "(float[3] x) => (y) <float[1] a = {1.}> { y = Neg <alpha = 1.0> (x) }",
        "(float[3] x) => (y) { y = Concat <axis = 1.0> (x, x) }",
        "(float[3] x) => (y) { y = Add <axis = 0> (x, x) }",
    ],
)
def test_attributes_without_a_meaning(text: str) -> None:
    with pytest.raises(ModelError, match=r"node .*; correct"):
        load_model(parsed(text))


@pytest.mark.parametrize(
    ("image", "angles", "attributes"),
    [
        ("1,4,3,8", "1,3,2", ""),
        ("1,4,3,8", "1,2,4", ""),
        ("1,4,3,9", "1,3,4", ""),
        ("1,3,10", "1,3,4", "<num_heads = 3>"),
        ("1,4,3,8", "1,3,4", "<rotary_embedding_dim = -8>"),
    ],
)
def test_rotation_by_angles_that_do_not_fit(image: str, angles: str, attributes: str) -> None:
    text = f"(float[{image}] x, float[{angles}] a) => (y) {{ y = RotaryEmbedding {attributes} (x, a, a) }}"
    with pytest.raises(ModelError, match=r"it rotates|its angles"):
        load_model(parsed(text, 23))


@pytest.mark.parametrize("scale", [np.nan, np.inf, -np.inf, 0.0, -1.0])
def test_scales_without_a_meaning(scale: float) -> None:
    proto = parsed("(float[1,1,2,2] x) => (y) { y = Resize(x, , s) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 1, scale, 1], np.float32), "s"))
    with pytest.raises(TilewrightError):
        run(proto, x=np.ones((1, 1, 2, 2), np.float32))


def test_attribute_that_is_there_twice() -> None:
    proto = parsed("(float[3] x) => (y) { y = Concat <axis = 0> (x, x) }")
    proto.graph.node[0].attribute.append(proto.graph.node[0].attribute[0])
    with pytest.raises(ModelError, match="axis is there twice"):
        load_model(proto)


def test_constant_without_a_value() -> None:
    with pytest.raises(ModelError, match=r"\(Constant\) has 0 values"):
        load_model(parsed("() => (y) { y = Constant() }"))


def test_any_byte_of_a_boolean_but_zero_is_true() -> None:
    proto = parsed("(float[3] x) => (y) { y = Where(c, x, z) z = Neg(x) }")
    proto.graph.initializer.add(name="c", data_type=TensorProto.BOOL, dims=[3], raw_data=bytes([0, 2, 255]))
    np.testing.assert_array_equal(run(proto, x=X)[0], [-1, -2, 3])


def test_old_scales_whose_data_does_not_fit_their_shape() -> None:
    proto = parsed("(float[1,1,2,2] x) => (y) <float[4] s = {1., 1., 2., 2.}> { y = Upsample(x, s) }", 9)
    proto.graph.initializer[0].dims[:] = [2**32]
    with pytest.raises(ModelError, match="the constant s of the model does not hold the data it should"):
        load_model(proto)


@pytest.mark.parametrize(("dims", "data"), [([-1], b"1234"), ([2], b"1234"), ([2**62], b""), ([2**20, 2**20], b"")])
def test_constant_whose_data_does_not_fit_its_shape(dims: list[int], data: bytes) -> None:
    proto = parsed("(float[3] x) => (y) { y = Add(x, w) }")
    proto.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=data)
    with pytest.raises(ModelError, match="the constant w of the model .*; "):
        load_model(proto)


@pytest.mark.parametrize(
    ("dims", "places"),
    [([2, 3], [1, 6]), ([2, 3], [-1, 0]), ([2, 3], [1]), ([-2, 3], [0, 1]), ([2**30, 2**30], [0, 1])],
)
def test_sparse_constant_whose_places_do_not_fit_its_shape(dims: list[int], places: list[int]) -> None:
    proto = parsed("(float[2,3] x) => (y) { y = Add(x, s) }")
    values = onnx.helper.make_tensor("s", TensorProto.FLOAT, [2], [5.0, 7.0])
    indices = onnx.helper.make_tensor("i", TensorProto.INT64, [len(places)], places)
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, dims))
    with pytest.raises(ModelError, match="the sparse constant s"):
        load_model(proto)


@pytest.mark.parametrize(
    "entries",
    [
        {"location": "../weights.bin"},
        {"location": "/etc/passwd"},
        {"location": "missing.bin"},
        {"location": "weights.bin", "offset": "1000"},
        {"location": "weights.bin", "length": "1000"},
        {"location": "weights.bin", "offset": "-4"},
        {"location": "weights.bin", "offset": "many"},
        {"location": "weights.bin", "length": "8"},
        {},
    ],
)
def test_external_data_that_cannot_be_read(tmp_path: Path, entries: dict[str, str]) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for place in (tmp_path, folder):
        (place / "weights.bin").write_bytes(bytes(12))
    proto = parsed("(float[3] x) => (y) { y = Add(x, w) }")
    weights = proto.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[3])
    weights.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        weights.external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match=r"; (put it next|export)"):
        load_model(path)


def model_of_weights(folder: Path) -> Path:
    """A model that keeps its weights in weights.bin, which is still to be written."""
    proto = parsed("(float[3] x) => (y) { y = Add(x, w) }")
    weights = proto.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[3])
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="weights.bin")
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_a_link_does_not_lead_out_of_the_folder_of_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "others.bin").write_bytes(bytes(12))
    (folder / "weights.bin").symlink_to(tmp_path / "others.bin")
    with pytest.raises(ModelError, match=r"a link to .*others\.bin, .*; put it next to the model"):
        load_model(model_of_weights(folder))


def test_weights_that_are_no_file_do_not_keep_the_reader_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "weights.bin")
    with pytest.raises(ModelError, match=r"which is no file; put it next to the model"):
        load_model(model_of_weights(tmp_path))


def test_a_link_that_leads_to_itself(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").symlink_to("weights.bin")
    with pytest.raises(ModelError, match=r"cannot be read: .*links.*; put it next to the model"):
        load_model(model_of_weights(tmp_path))


def test_network_that_does_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    session = InferenceSession(compile_network(parsed("(float[3] x) => (y) { y = Neg(x) }"), threads=1))

    def no_memory(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("tilewright.deploy.program.aligned_empty", no_memory)
    with pytest.raises(ModelError, match="does not fit into the memory .*; compile it for smaller inputs"):
        session.run(None, {"x": X})
    with pytest.raises(ModelError, match="does not fit into the memory"):
        session.profile({"x": X})


@pytest.mark.parametrize(
    ("call", "functions"),
    [
        ("y = l.f(x)", ["f (v) => (w) { w = l.f(v) }"]),
        ("y = l.f(x)", ["f (v) => (w) { w = l.g(v) }", "g (v) => (w) { w = l.f(v) }"]),
        ("y = l.f(x, x, x)", ["f (v) => (w) { w = Neg(v) }"]),
        ("y, z = l.f(x)", ["f (v) => (w) { w = Neg(v) }"]),
        ("y = l.f(x)", ["f (v) => (w) { w = Neg(u) }"]),
        ("y = l.f(x)", ["f <a> (v) => (w) { w = Concat <axis: int = @a> (v, v) }"]),
        ("y = l.f(x)", ["f (v, v) => (w, w) { w = Neg(v) w = Neg(v) }"]),
    ],
)
def test_functions_without_a_meaning(call: str, functions: list[str]) -> None:
    texts = [f'<domain: "l", opset_import: ["" : 18, "l" : 1]> {function}' for function in functions]
    net = f'<ir_version: 8, opset_import: ["" : 18, "l" : 1]> net (float[3] x) => (y) {{ {call} }}'
    with pytest.raises(ModelError, match=r"; (export|correct|the model is incomplete|ONNX has no recursion)"):
        load_model(onnx.parser.parse_model("\n".join([net, *texts])))
