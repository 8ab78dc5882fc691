"""The file of a network: other columns, broken parts and hostile networks are refused, and nothing of them runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tilewright import UsageError
from tilewright.cost_model import Examples, load
from tilewright.cost_model.array_file import text_array
from tilewright.cost_model.neural import Lstm, Mlp, Tlp, TreeGru, inference
from tilewright.cost_model.neural.network_checks import MAX_NODES
from tilewright.cost_model.neural.trained import MAX_ROWS
from tilewright.testing.cost_model_checks import sum_structured, sum_structured_examples

Arrays = dict[str, Any]


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of this page gets as far as an engine."""

    def refuse(network: bytes, shapes: inference.Shapes) -> inference.Runner:
        raise AssertionError("a network was run")

    monkeypatch.setattr(inference, "_chosen", refuse)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = Mlp(width=4, epochs=1)
    model.fit_examples(sum_structured_examples(8))
    path = tmp_path_factory.mktemp("models") / "mlp.npz"
    model.save(path)
    return path


def changed(saved: Path, folder: Path, change: Callable[[Arrays], None]) -> Path:
    """The model with other arrays in its file."""
    with np.load(saved) as file:
        arrays: Arrays = dict(file)
    change(arrays)
    np.savez(folder / "changed.npz", **arrays)
    return folder / "changed.npz"


def with_network(change: Callable[[ModelProto], None]) -> Callable[[Arrays], None]:
    def apply(arrays: Arrays) -> None:
        model = onnx.load_model_from_string(arrays["network"].tobytes())
        change(model)
        arrays["network"] = np.frombuffer(model.SerializeToString(), np.uint8)

    return apply


def test_a_file_is_small_and_has_no_weight_twice(saved: Path) -> None:
    with np.load(saved) as file:
        weights = sum(file[name].nbytes for name in file.files if name.startswith("weight:"))
        assert len(file["network"].tobytes()) < 10_000
    assert saved.stat().st_size < weights + 20_000


@pytest.mark.parametrize("cut", [10, 500, 2000])
def test_a_truncated_file_is_refused(cut: int, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "torn.npz").write_bytes(saved.read_bytes()[:-cut])
    with pytest.raises(UsageError, match="is not the file of a cost model"):
        load(tmp_path / "torn.npz")


def test_a_newer_format_is_refused(saved: Path, tmp_path: Path) -> None:
    def change(arrays: Arrays) -> None:
        header = json.loads(arrays["header"].tobytes())
        arrays["header"] = text_array(json.dumps(header | {"version": 2}))

    with pytest.raises(UsageError, match="version 1, got tilewright-cost-model version 2"):
        load(changed(saved, tmp_path, change))


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("num_experts", 8, "options of the cost model mlp are .* got num_experts"),
        ("width", "8", "the option width of the cost model mlp is like 256, which is the default, got '8'"),
        ("width", 10**12, "width is 1000000000000; it must be at most 65536"),
        ("loss", "hinge", "loss of the cost model mlp is one of rank, rank-mixed, mse, got 'hinge'"),
        ("epochs", 0, "epochs is 0; it must be at least 1"),
        ("learning_rate", None, "the option learning_rate of the cost model mlp is like 0.0007, .* got None"),
        ("learning_rate", 0.0, "learning_rate is 0.0; it must be a number above 0"),
        ("validation_share", 1.0, "validation_share is 1.0; it must be a number from 0 to below 1"),
    ],
)
def test_options_that_no_model_has_are_refused(
    option: str, value: object, message: str, saved: Path, tmp_path: Path
) -> None:
    def change(arrays: Arrays) -> None:
        header = json.loads(arrays["header"].tobytes())
        header["options"][option] = value
        arrays["header"] = text_array(json.dumps(header))

    with pytest.raises(UsageError, match=message):
        load(changed(saved, tmp_path, change))


@pytest.mark.parametrize("header", ["[]", '{"format": "tilewright-cost-model", "version": 1, "model": "mlp"}'])
def test_a_header_of_another_form_is_refused(header: str, saved: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the file of a cost model"):
        load(changed(saved, tmp_path, replaced("header", text_array(header))))


def test_a_file_of_other_columns_is_refused(tmp_path: Path) -> None:
    model = Tlp(width=8, num_heads=2, epochs=1)
    values = np.zeros((4, 3, len(model.encoder.columns)), np.float32)
    model.fit_examples(Examples.build(list(values), [1.0] * 4, ["task"] * 4))
    model.save(tmp_path / "tlp.npz")

    def change(arrays: Arrays) -> None:
        columns = json.loads(arrays["columns"].tobytes())
        arrays["columns"] = text_array(json.dumps(["other", *columns[1:]]))

    with pytest.raises(UsageError, match="reads 69 columns of the encoder primitives, and the file is of 69 others"):
        load(changed(tmp_path / "tlp.npz", tmp_path, change))


def without(name: str) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.pop(name)


def replaced(name: str, value: Any) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.update({name: value})


BROKEN: dict[str, tuple[Callable[[Arrays], None], str]] = {
    "no network": (without("network"), "has network, columns and num_rows"),
    "no columns": (without("columns"), "has network, columns and num_rows"),
    "columns that are no text": (replaced("columns", np.array([255], np.uint8)), "has network, columns and num_rows"),
    "columns that are no names": (replaced("columns", text_array("[1, 2]")), "names are a list of texts"),
    "a number of rows below 0": (replaced("num_rows", np.array(-8)), "up to 1024 rows, got -8"),
    "a huge number of rows": (replaced("num_rows", np.array(2**40)), "up to 1024 rows"),
    "rows that are many numbers": (replaced("num_rows", np.zeros(3)), "has network, columns and num_rows"),
    "a missing weight": (without("weight:score.bias"), "each of the file's weights, got another set in .*score.bias"),
    "one weight more": (replaced("weight:more", np.zeros(1, np.float32)), "another set in .*more"),
    "a weight of another shape": (replaced("weight:score.bias", np.zeros(2, np.float32)), "score.bias.*sizes"),
    "a weight that is no number": (replaced("weight:score.bias", np.full(1, np.nan, np.float32)), "finite float32"),
    "a weight of another type": (replaced("weight:score.bias", np.zeros(1)), "finite float32"),
    "bytes that are no network": (replaced("network", np.arange(99, dtype=np.uint8)), "is an ONNX model"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_part_is_refused(case: str, saved: Path, tmp_path: Path) -> None:
    change, message = BROKEN[case]
    with pytest.raises(UsageError, match=message):
        load(changed(saved, tmp_path, change))


def other_input(model: ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))


def other_type(model: ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING


def two_outputs(model: ModelProto) -> None:
    model.graph.output.append(helper.make_tensor_value_info("values", TensorProto.FLOAT, None))


def initializer(model: ModelProto) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32), "hidden"))


def function(model: ModelProto) -> None:
    model.functions.append(helper.make_function("d", "F", [], [], [], []))


def other_domain(model: ModelProto) -> None:
    model.graph.node[-1].domain = "com.example"


def other_opset(model: ModelProto) -> None:
    model.opset_import.append(helper.make_opsetid("com.example", 1))


def loop(model: ModelProto) -> None:
    model.graph.node.append(helper.make_node("Loop", ["", ""], [], body=onnx.GraphProto(name="g")))


def random_numbers(model: ModelProto) -> None:
    model.graph.node.append(helper.make_node("RandomNormal", [], ["r"], shape=[2**20, 2**20]))


def external_data(model: ModelProto) -> None:
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="/etc/passwd")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["e"], value=tensor))


def short_constant(model: ModelProto) -> None:
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[1000], raw_data=b"1234")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=tensor))


def huge_constant(model: ModelProto) -> None:
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[2**40], raw_data=b"1234")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=tensor))


def constant_of_negative_size(model: ModelProto) -> None:
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[-4])
    model.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=tensor))


def strings(model: ModelProto) -> None:
    model.graph.node.append(helper.make_node("Cast", ["mask"], ["text"], to=TensorProto.STRING))


def huge_value(model: ModelProto) -> None:
    shape = numpy_helper.from_array(np.array([2**20, 2**20]), "shape")
    nodes = [helper.make_node("Constant", [], ["s"], value=shape), helper.make_node("ConstantOfShape", ["s"], ["huge"])]
    for node in reversed(nodes):
        model.graph.node.insert(0, node)


def huge_product(model: ModelProto) -> None:
    """In small steps, each of which squares the size."""
    shape = helper.make_node("Constant", [], ["s"], value=numpy_helper.from_array(np.array([-1, 1])))
    grown = [helper.make_node("Reshape", ["score.weight", "s"], ["grown0"])]
    for number in range(4):
        before, after = f"grown{number}", f"grown{number + 1}"
        grown += [
            helper.make_node("Transpose", [before], [f"{after}t"], perm=[1, 0]),
            helper.make_node("Mul", [before, f"{after}t"], [f"{after}m"]),
            helper.make_node("Reshape", [f"{after}m", "s"], [after]),
        ]
    for node in reversed([shape, *grown]):
        model.graph.node.insert(0, node)


def huge_in_rows(model: ModelProto) -> None:
    """Small for a program of a few rows, and not for one of many."""
    shapes = {"s1": [64, -1, 1], "s2": [64, 1, -1]}
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(shape)))
        for name, shape in shapes.items()
    ]
    nodes += [helper.make_node("Reshape", ["values", name], [f"r{name}"]) for name in shapes]
    model.graph.node.extend([*nodes, helper.make_node("MatMul", ["rs1", "rs2"], ["grown"])])


def unknown_size(model: ModelProto) -> None:
    """A size that is computed from weights."""
    nodes = [
        helper.make_node("Cast", ["score.bias"], ["size"], to=TensorProto.INT64),
        helper.make_node("ConstantOfShape", ["size"], ["huge"]),
    ]
    model.graph.node.extend(nodes)


def too_many_nodes(model: ModelProto) -> None:
    model.graph.node.extend([helper.make_node("Relu", ["mask"], [f"n{n}"]) for n in range(MAX_NODES)])


def cycle(model: ModelProto) -> None:
    model.graph.node.insert(0, helper.make_node("Add", ["later", "mask"], ["sooner"]))
    model.graph.node.append(helper.make_node("Relu", ["sooner"], ["later"]))


def nothing_computed(model: ModelProto) -> None:
    del model.graph.node[:]


def one_score_for_all(model: ModelProto) -> None:
    last = model.graph.node[-1].output[0]
    model.graph.node[-1].output[0] = "each"
    model.graph.node.append(helper.make_node("ReduceSum", ["each"], [last], keepdims=1))


HOSTILE: dict[Callable[[ModelProto], None], str] = {
    other_input: "another set in .*more",
    other_type: "as float32",
    two_outputs: "gives scores alone",
    initializer: "has no initializers",
    function: "has no functions",
    other_domain: "operators of",
    other_opset: "operators of ONNX alone",
    loop: "operators of .* got 'Loop'",
    random_numbers: "operators of .* got 'RandomNormal'",
    external_data: "constants in the file",
    short_constant: "constants of the size that they say",
    huge_constant: "values of up to",
    constant_of_negative_size: "values of up to",
    strings: "values of float, int and bool, got the type 8",
    huge_value: "values of up to",
    huge_product: "values of up to",
    huge_in_rows: "values of up to",
    unknown_size: "values of up to",
    too_many_nodes: f"at most {MAX_NODES} nodes",
    cycle: "sizes follow from its inputs|values of up to",
    nothing_computed: "sizes follow from its inputs|gives scores",
    one_score_for_all: "scores for each of 64 programs",
}


@pytest.mark.parametrize("change", HOSTILE, ids=lambda change: change.__name__)
def test_a_hostile_network_is_refused(change: Callable[[ModelProto], None], saved: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=HOSTILE[change]):
        load(changed(saved, tmp_path, with_network(change)))


def test_a_model_with_rows_of_its_own_comes_back(tmp_path: Path) -> None:
    model = Lstm(width=4, epochs=1, length=5)
    values = np.zeros((4, 5, len(model.encoder.columns)), np.float32)
    model.fit_examples(Examples.build(list(values), [1.0] * 4, ["task"] * 4))
    model.save(tmp_path / "lstm.npz")
    loaded = load(tmp_path / "lstm.npz")
    assert isinstance(loaded, Lstm)
    assert loaded.network_ is not None
    assert loaded.network_.num_rows == 8
    assert loaded.encoder == model.encoder


@pytest.mark.parametrize("model", [Lstm(width=4, epochs=1), TreeGru(width=4, epochs=1)], ids=lambda model: model.name)
def test_a_network_of_the_most_rows_has_no_more_nodes_than_a_file_may_have(model: Lstm | TreeGru) -> None:
    num_nodes = []
    for num_rows in (8, 16):
        values = np.zeros((2, num_rows, len(model.encoder.columns)), np.float32)
        model.fit_examples(Examples.build(list(values), [1.0, 2.0], ["task"] * 2))
        assert model.network_ is not None
        num_nodes.append(len(onnx.load_model_from_string(model.network_.onnx).graph.node))
    of_a_row = (num_nodes[1] - num_nodes[0]) / 8
    assert num_nodes[0] + (MAX_ROWS - 8) * of_a_row <= MAX_NODES


def test_of_trees_with_more_nodes_than_a_network_has_rows_the_beginning_is_read() -> None:
    model = TreeGru()
    rows = np.ones((MAX_ROWS + 1, len(model.encoder.columns)), np.float32)
    assert model._exported_rows(Examples.build([rows], [1.0], ["task"])) == MAX_ROWS


def test_features_of_another_number_are_refused(saved: Path) -> None:
    features, _ = sum_structured(3, 2, seed=0)
    with pytest.raises(UsageError, match="has learned from 12 features, got 11; fit it anew"):
        load(saved).score(features[:, :, 1:])
