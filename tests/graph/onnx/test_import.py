"""Import of ONNX: static shapes, folded constants, inlined branches and functions, and the same results as before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto

from tests.graph.onnx_models import anything, graph, model, node, random, reference, tensor
from tilewright.errors import ModelError
from tilewright.graph import Graph
from tilewright.graph.onnx import load_model
from tilewright.graph.onnx.conversion import at_opset
from tilewright.operators import TensorType, has_expression
from tilewright.testing.graph_reference import evaluate


def ops(network: Graph) -> list[str]:
    return [n.op for n in network.nodes]


def check(proto: ModelProto, inputs: dict[str, Any], network: Graph | None = None) -> None:
    """The imported graph computes what the model computes."""
    network = load_model(proto) if network is None else network
    got = evaluate(network, inputs)
    for name, expected in reference(proto, inputs).items():
        np.testing.assert_allclose(got[name], expected, rtol=1e-5, atol=1e-6)
        assert got[name].dtype == expected.dtype


def two_layers() -> ModelProto:
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Neg", ["h"], ["r"]), node("Add", ["r", "b"], ["y"])]
    return model(nodes, [tensor("x", [2, 3])], ["y"], {"w": random((3, 4)), "b": random((4,), 1)})


def test_import_gives_nodes_constants_and_types() -> None:
    network = load_model(two_layers())
    assert network.inputs == ("x",)
    assert network.outputs == ("y",)
    assert ops(network) == ["MatMul", "Neg", "Add"]
    assert set(network.constants) == {"w", "b"}
    assert network.types["x"] == TensorType("float32", (2, 3))
    assert network.types["y"] == TensorType("float32", (2, 4))
    assert network.types["w"] == TensorType("float32", (3, 4))


def test_import_from_path_bytes_and_message_is_the_same(tmp_path: Path) -> None:
    proto = two_layers()
    path = tmp_path / "two_layers.onnx"
    onnx.save(proto, path)
    sources = [str(path), path, path.read_bytes(), proto]
    assert len({tuple(map(str, load_model(source).nodes)) for source in sources}) == 1


def test_external_data_is_read_beside_the_model(tmp_path: Path) -> None:
    proto = two_layers()
    expected = reference(proto, {"x": random((2, 3), 2)})
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    got = evaluate(load_model(path), {"x": random((2, 3), 2)})
    np.testing.assert_allclose(got["y"], expected["y"], rtol=1e-6)


def hub_cache(folder: Path, model: Path, weights: Path) -> Path:
    """As Hugging Face keeps what it has downloaded: names are links to files that are named by their content."""
    files, names = folder / "blobs", folder / "snapshots" / "main"
    files.mkdir()
    names.mkdir(parents=True)
    for number, path in enumerate((model, weights)):
        path.rename(files / str(number))
        (names / path.name).symlink_to(Path("..", "..", "blobs", str(number)))
    return names / model.name


def hard_links(folder: Path, model: Path, weights: Path) -> Path:
    (folder / "again.bin").hardlink_to(weights)
    return model


def link_beside_the_model(folder: Path, model: Path, weights: Path) -> Path:
    weights.rename(folder / "others.bin")
    weights.symlink_to("others.bin")
    return model


def link_to_the_folder(folder: Path, model: Path, weights: Path) -> Path:
    (folder / "link").symlink_to(model.parent)
    return folder / "link" / model.name


@pytest.mark.parametrize("moved", [hub_cache, hard_links, link_beside_the_model, link_to_the_folder])
def test_external_data_may_be_a_link(moved: Callable[[Path, Path, Path], Path], tmp_path: Path) -> None:
    proto = two_layers()
    expected = reference(proto, {"x": random((2, 3), 2)})
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    path = moved(tmp_path, path, tmp_path / "weights.bin")
    got = evaluate(load_model(path), {"x": random((2, 3), 2)})
    np.testing.assert_allclose(got["y"], expected["y"], rtol=1e-6)


def test_external_data_of_a_constant_in_a_function(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17, "local" : 1]> net (float[2] x) => (float[2] y) { y = local.f(x) }
        <domain: "local", opset_import: ["" : 17]> f (x) => (y) { y = Add(x, x) }
    """)
    (tmp_path / "weights.bin").write_bytes(random((2,), 1).tobytes())
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="weights.bin")
    constant = node("Constant", [], ["w"], value=weights)
    proto.functions[0].node.insert(0, constant)
    proto.functions[0].node[1].input[1] = "w"
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    got = evaluate(load_model(path), {"x": random((2,))})
    np.testing.assert_allclose(got["y"], random((2,)) + random((2,), 1))


def test_initializer_that_is_also_an_input_is_a_constant() -> None:
    proto = model([node("Add", ["x", "b"], ["y"])], [tensor("x", [4]), tensor("b", [4])], ["y"], {"b": random((4,))})
    assert load_model(proto).inputs == ("x",)


def test_sparse_initializer_becomes_dense() -> None:
    proto = model([node("Add", ["x", "s"], ["y"])], [tensor("x", [2, 3])], ["y"])
    values = onnx.helper.make_tensor("s", TensorProto.FLOAT, [2], [5.0, 7.0])
    indices = onnx.helper.make_tensor("indices", TensorProto.INT64, [2], [1, 5])
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2, 3]))
    np.testing.assert_array_equal(load_model(proto).constants["s"], [[0, 5, 0], [0, 0, 7]])


class TestShapes:
    def test_open_dimensions_are_given(self) -> None:
        proto = model([node("Neg", ["x"], ["y"])], [tensor("x", ["batch", 3, None])], ["y"])
        assert load_model(proto, {"x": (2, 3, 8)}).types["y"] == TensorType("float32", (2, 3, 8))

    def test_named_dimension_is_fixed_for_all_inputs(self) -> None:
        proto = model([node("Add", ["x", "z"], ["y"])], [tensor("x", ["n", 3]), tensor("z", ["n", 3])], ["y"])
        assert load_model(proto, {"z": (5, 3)}).types["x"] == TensorType("float32", (5, 3))

    def test_input_without_a_rank_is_given(self) -> None:
        proto = model([node("Neg", ["x"], ["y"])], [tensor("x", None)], ["y"])
        assert load_model(proto, {"x": (7,)}).types["y"] == TensorType("float32", (7,))

    def test_scalar_input_is_fixed(self) -> None:
        proto = model([node("Neg", ["x"], ["y"])], [tensor("x", [])], ["y"])
        assert load_model(proto).types["y"] == TensorType("float32", ())

    def test_shape_arithmetic_disappears(self) -> None:
        nodes = [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["batch"], axis=0),
            node("Unsqueeze", ["batch", "zero1"], ["batch1"]),
            node("Size", ["x"], ["count"]),
            node("Div", ["count", "batch"], ["rest"]),
            node("Unsqueeze", ["rest", "zero1"], ["rest1"]),
            node("Concat", ["batch1", "rest1"], ["shape"], axis=0),
            node("Reshape", ["x", "shape"], ["y"]),
        ]
        constants = {"zero": np.int64(0), "zero1": np.array([0])}
        proto = model(nodes, [tensor("x", ["n", 3, 4])], ["y"], constants)
        network = load_model(proto, {"x": (2, 3, 4)})
        assert ops(network) == ["Reshape"]
        assert network.types["y"] == TensorType("float32", (2, 12))
        check(proto, {"x": random((2, 3, 4))}, network)

    def test_shape_with_start_and_end(self) -> None:
        nodes = [node("Shape", ["x"], ["y"], start=-2, end=10), node("Shape", ["x"], ["z"], end=-1)]
        network = load_model(model(nodes, [tensor("x", [2, 3, 4])], ["y", "z"]))
        assert network.constants["y"].tolist() == [3, 4]
        assert network.constants["z"].tolist() == [2, 3]

    def test_type_that_only_a_run_tells_is_none(self) -> None:
        nodes = [node("NonZero", ["x"], ["i"]), node("Transpose", ["i"], ["y"], perm=[1, 0])]
        network = load_model(model(nodes, [tensor("x", [4])], ["y"]))
        assert network.types["i"] is None
        assert network.types["y"] is None
        check(model(nodes, [tensor("x", [4])], ["y"]), {"x": np.array([0, 1, 0, 2], np.float32)}, network)

    def test_shape_known_again_after_one_that_is_not(self) -> None:
        nodes = [
            node("SequenceConstruct", ["x", "x"], ["s"]),
            node("SequenceAt", ["s", "one"], ["item"]),
            node("Neg", ["item"], ["y"]),
        ]
        network = load_model(model(nodes, [tensor("x", [4])], ["y"], {"one": np.int64(1)}))
        assert network.types["s"] is None
        assert network.types["y"] == TensorType("float32", (4,))


class TestFolding:
    def test_what_depends_on_no_input_is_computed(self) -> None:
        nodes = [
            node("Constant", [], ["a"], value_floats=[1.0, 2.0]),
            node("Exp", ["a"], ["e"]),
            node("Mul", ["e", "a"], ["m"]),
            node("Add", ["x", "m"], ["y"]),
        ]
        network = load_model(model(nodes, [tensor("x", [2])], ["y"]))
        assert ops(network) == ["Add"]
        np.testing.assert_allclose(
            network.constants["m"].astype(np.float64), np.exp([1.0, 2.0]) * [1.0, 2.0], rtol=1e-6
        )

    @pytest.mark.parametrize(
        ("attributes", "expected"),
        [
            ({"value_int": 3}, np.array(3)),
            ({"value_ints": [3, 4]}, np.array([3, 4])),
            ({"value_float": 0.5}, np.array(0.5, np.float32)),
            ({"value_strings": ["a", "b"]}, np.array(["a", "b"], object)),
            ({"value_string": "a"}, np.array("a", object)),
        ],
    )
    def test_constant_nodes(self, attributes: dict[str, Any], expected: np.ndarray) -> None:
        found = load_model(model([node("Constant", [], ["y"], **attributes)], [], ["y"])).constants["y"]
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype

    @pytest.mark.parametrize(("size", "is_folded"), [(16, True), (2**25, False)])
    def test_large_expansion_is_left_to_the_run(self, size: int, is_folded: bool) -> None:
        nodes = [node("ConstantOfShape", ["shape"], ["c"]), node("ReduceSum", ["c"], ["s"], keepdims=0)]
        network = load_model(model(nodes, [], ["c"], {"shape": np.array([size])}))
        assert ("c" in network.constants) == is_folded
        assert network.types["c"] == TensorType("float32", (size,))

    def test_random_values_are_not_folded(self) -> None:
        nodes = [node("RandomNormal", [], ["r"], shape=[4]), node("Neg", ["r"], ["y"])]
        assert "RandomNormal" in ops(load_model(model(nodes, [], ["y"])))

    def test_value_without_elements_is_a_constant(self) -> None:
        nodes = [node("Neg", ["x"], ["r"]), node("MatMul", ["r", "w"], ["y"])]
        network = load_model(model(nodes, [tensor("x", [0, 3])], ["y"], {"w": random((3, 4))}))
        assert ops(network) == []
        assert network.constants["y"].shape == (0, 4)

    def test_cast_like_is_a_cast(self) -> None:
        nodes = [node("CastLike", ["c", "x"], ["one"]), node("Add", ["x", "one"], ["y"])]
        network = load_model(model(nodes, [tensor("x", [2], TensorProto.DOUBLE)], ["y"], {"c": np.array([1])}))
        assert network.constants["one"].dtype == np.float64


class TestControlFlow:
    @pytest.mark.parametrize("is_taken", [True, False])
    def test_branch_known_ahead_takes_the_place_of_if(self, is_taken: bool) -> None:
        # Both branches use the same names; one gives back an outer value, its own constant, and the same value twice.
        then_branch = graph([node("Mul", ["h", "k"], ["t"])], [], ["t", "h", "k", "t"], {"k": random((4,), 3)})
        else_branch = graph([node("Add", ["h", "k"], ["t"])], [], ["h", "t", "t", "h"], {"k": random((4,), 4)})
        nodes = [
            node("Neg", ["x"], ["h"]),
            node("If", ["c"], ["a", "b", "d", "e"], then_branch=then_branch, else_branch=else_branch),
            node("Neg", ["a"], ["t"]),
        ]
        proto = model(nodes, [tensor("x", [2, 4])], ["a", "b", "d", "e", "t"], {"c": np.array(is_taken)})
        network = load_model(proto)
        assert "If" not in ops(network)
        check(proto, {"x": random((2, 4))}, network)

    def test_nested_branches_are_taken_apart(self) -> None:
        inner = graph([node("Exp", ["h"], ["i"])], [], ["i"])
        outer = graph(
            [node("Neg", ["x"], ["h"]), node("If", ["c"], ["o"], then_branch=inner, else_branch=inner)], [], ["o"]
        )
        proto = model(
            [node("If", ["c"], ["y"], then_branch=outer, else_branch=outer)],
            [tensor("x", [3])],
            ["y"],
            {"c": np.array(True)},
        )
        assert ops(load_model(proto)) == ["Neg", "Exp"]
        check(proto, {"x": random((3,))})

    @pytest.mark.parametrize("condition", [True, False])
    def test_other_if_counts_what_its_branches_read_as_inputs(self, condition: bool) -> None:
        deep = graph([node("Add", ["p", "w"], ["q"])], [], ["q"])
        then_branch = graph([node("If", ["c"], ["r"], then_branch=deep, else_branch=deep)], [], ["r"])
        else_branch = graph([node("Sub", ["x", "w"], ["s"])], [], ["s"])
        nodes = [
            node("If", ["c"], ["y"], then_branch=then_branch, else_branch=else_branch),
            node("Neg", ["x"], ["p"]),
        ]
        # The model has its nodes in the wrong order; only the captured value p shows that.
        proto = model(nodes, [tensor("x", [3]), tensor("c", [], TensorProto.BOOL)], ["y"], {"w": random((3,), 5)})
        network = load_model(proto)
        assert ops(network) == ["Neg", "If"]
        assert set(network.nodes[1].inputs) == {"c", "p", "w", "x"}
        assert network.types["y"] == TensorType("float32", (3,))
        x = random((3,))
        got = evaluate(network, {"x": x, "c": np.array(condition)})["y"]
        weights = network.constants["w"]
        np.testing.assert_allclose(got, -x + weights if condition else x - weights)

    def test_loop_stacks_what_its_iterations_give(self) -> None:
        body = graph(
            [
                node("Identity", ["go"], ["go_on"]),
                node("Add", ["state", "x"], ["next"]),
                node("Identity", ["next"], ["copy"]),
            ],
            [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL), tensor("state", [2, 3])],
            ["go_on", "next", "copy"],
        )
        proto = model(
            [node("Loop", ["count", "", "start"], ["last", "all"], body=body)],
            [tensor("x", [2, 3])],
            ["last", "all"],
            {"count": np.array(3), "start": np.zeros((2, 3), np.float32)},
        )
        x = random((2, 3))
        got = evaluate(load_model(proto), {"x": x})
        np.testing.assert_allclose(got["last"], 3 * x, rtol=1e-6)
        np.testing.assert_allclose(got["all"], np.stack([x, 2 * x, 3 * x]), rtol=1e-6)

    def test_loop_without_iterations_gives_nothing(self) -> None:
        body = graph(
            [node("Identity", ["go"], ["go_on"]), node("Neg", ["x"], ["n"])],
            [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL)],
            ["go_on", tensor("n", [2])],
        )
        proto = model(
            [node("Loop", ["count", ""], ["all"], body=body)], [tensor("x", [2])], ["all"], {"count": np.array(0)}
        )
        assert evaluate(load_model(proto), {"x": random((2,))})["all"].shape == (0, 2)

    def test_scan_goes_along_any_axis_in_both_directions(self) -> None:
        body = graph(
            [node("Add", ["state", "slice"], ["sum"]), node("Identity", ["sum"], ["copy"])],
            [tensor("state", [2]), tensor("slice", [2])],
            [tensor("sum", [2]), tensor("copy", [2])],
        )
        attributes = {
            "num_scan_inputs": 1,
            "scan_input_axes": [1],
            "scan_input_directions": [1],
            "scan_output_axes": [1],
            "scan_output_directions": [1],
        }
        proto = model(
            [node("Scan", ["start", "x"], ["last", "all"], body=body, **attributes)],
            [tensor("x", [2, 4])],
            ["last", "all"],
            {"start": np.zeros(2, np.float32)},
        )
        x = random((2, 4))
        got = evaluate(load_model(proto), {"x": x})
        np.testing.assert_allclose(got["last"], x.sum(axis=1), rtol=1e-5)
        np.testing.assert_allclose(got["all"], np.cumsum(x[:, ::-1], axis=1)[:, ::-1], rtol=1e-5, atol=1e-6)


class TestFunctions:
    def test_function_of_the_model_is_inlined(self) -> None:
        body = [
            node("Mul", ["a", "a"], ["square"]),
            node("Mul", ["a", "square"], ["cube"]),
            node("LeakyRelu", ["cube"], ["b"]),
        ]
        body[2].attribute.append(
            onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
        )
        opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("local", 1)]
        function = onnx.helper.make_function("local", "Cube", ["a"], ["b"], body, opsets[:1], ["slope"])
        nodes = [
            onnx.helper.make_node("Cube", ["x"], ["h"], domain="local", slope=0.5),
            onnx.helper.make_node("Cube", ["h"], ["y"], domain="local", slope=0.25),
        ]
        proto = model(nodes, [tensor("x", [3])], ["y"], opset_imports=opsets, functions=[function])
        network = load_model(proto)
        assert all(n.domain == "" for n in network.nodes)
        x = random((3,))
        h = np.where(x < 0, 0.5, 1) * x**3
        expected = np.where(h < 0, 0.25, 1) * h**3
        np.testing.assert_allclose(evaluate(network, {"x": x})["y"], expected, rtol=1e-5)

    def test_operator_that_onnx_defines_by_others_is_taken_apart_for_kernels(self) -> None:
        proto = model([node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2])], [tensor("x", [2, 3, 4])], ["y"])
        network = load_model(proto)
        assert all(has_expression(n) for n in network.nodes)
        check(proto, {"x": random((2, 3, 4))}, network)


def test_sizes_that_were_quantized_are_known() -> None:
    """As onnxruntime's quantizer leaves sizes that were computed in floats."""
    nodes = [
        node("Shape", ["x"], ["sizes"]),
        node("Gather", ["sizes", "first"], ["size"]),
        node("Cast", ["size"], ["float"], to=TensorProto.FLOAT),
        node("QuantizeLinear", ["float", "scale", "zero"], ["byte"]),
        node("DequantizeLinear", ["byte", "scale", "zero"], ["again"]),
        node("Mul", ["again", "again"], ["square"]),
        node("Cast", ["square"], ["whole"], to=TensorProto.INT64),
        node("Reshape", ["whole", "row"], ["shape"]),
        node("ConstantOfShape", ["shape"], ["zeros"]),
        node("MatMul", ["x", "zeros"], ["y"]),
    ]
    constants = {
        "first": np.array(0),
        "scale": np.array(0.5, np.float32),
        "zero": np.array(3, np.uint8),
        "row": np.array([1]),
    }
    assert ops(load_model(model(nodes, [tensor("x", [4, 16])], ["y"], constants))) == ["MatMul"]


def test_old_operator_set_is_converted() -> None:
    nodes = [node("Slice", ["x"], ["s"], axes=[1], starts=[1], ends=[3]), node("Clip", ["s"], ["y"], min=0.0, max=0.5)]
    proto = model(nodes, [tensor("x", [2, 4])], [tensor("y", [2, 2])], opset=9)
    x = random((2, 4))
    network = load_model(proto)
    assert all(n.opset >= 11 for n in network.nodes)
    np.testing.assert_allclose(evaluate(network, {"x": x})["y"], np.clip(x[:, 1:3], 0, 0.5))


@pytest.mark.parametrize("encoder", ["LabelEncoder", "DictVectorizer"])
def test_old_operator_set_with_an_encoder_of_what_has_no_type(encoder: str) -> None:
    """Trees of the first version say no type; the paths of scikit-learn's trees are encoded behind them."""
    attributes: dict[str, Any] = {"LabelEncoder": {"keys_floats": [2.0], "values_strings": ["a"]}}.get(encoder, {})
    trees = node("TreeEnsembleRegressor", ["x"], ["leaf"], domain="ai.onnx.ml")
    encoded = node(encoder, ["leaf"], ["y"], domain="ai.onnx.ml", **attributes)
    proto = model([trees, encoded], [tensor("x", [3, 2])], ["y"], opset=9)
    proto.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 2))
    converted = at_opset(proto, 11)
    assert [(n.domain, n.op_type) for n in converted.graph.node] == [(n.domain, n.op_type) for n in proto.graph.node]
    assert {entry.domain: entry.version for entry in converted.opset_import} == {"": 11, "ai.onnx.ml": 2}


@pytest.mark.parametrize("is_input", [False, True])
def test_old_constants_need_not_be_inputs(is_input: bool) -> None:
    """They had to be, before version 4 of the format; other runtimes never minded."""
    inputs = [tensor("x", [2, 4]), *([tensor("w", [4, 3])] if is_input else [])]
    w = random((4, 3), 1)
    proto = model([node("MatMul", ["x", "w"], ["y"])], inputs, [tensor("y", [2, 3])], {"w": w}, opset=7, ir_version=3)
    network = load_model(proto)
    assert network.inputs == ("x",)
    np.testing.assert_allclose(evaluate(network, {"x": random((2, 4))})["y"], random((2, 4)) @ w, rtol=1e-5)


@pytest.mark.parametrize("opset", [1, 5, 6])
@pytest.mark.parametrize(("axis", "shape"), [(0, (2, 1, 4)), (1, (3,)), (1, (3, 4)), (-1, (4, 5)), (None, (4, 5))])
def test_before_opset_7_an_operand_may_begin_at_an_axis_of_the_other(
    opset: int, axis: int | None, shape: tuple[int, ...]
) -> None:
    """The first operand is computed, so that the model does not say its shape."""
    x, b = random((2, 3, 4, 5)), random(shape, 1)
    at = {} if axis is None else {"axis": axis}
    nodes = [
        node("Mul", ["x", "one"], ["h"], broadcast=1),
        node("Sub", ["h", "b"], ["i"], broadcast=1, **at),
        node("Max", ["i", "h"], ["y"]),
    ]
    inputs = [tensor("x", x.shape), tensor("one", [1]), tensor("b", shape)]
    constants = {"one": np.ones(1, np.float32), "b": b}
    proto = model(nodes, inputs, [tensor("y", x.shape)], constants, opset=opset)
    behind = b.reshape(*shape, *[1] * (4 - len(shape) - axis)) if axis is not None and axis >= 0 else b
    np.testing.assert_allclose(evaluate(load_model(proto), {"x": x})["y"], np.maximum(x - behind, x), rtol=1e-6)


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        (node("Cast", ["x"], ["y"], to="INT32"), lambda x: x.astype(np.int32)),
        (
            node("Pad", ["x"], ["y"], paddings=[0, 1, 2, 0], value=1.5),
            lambda x: np.pad(x, [(0, 2), (1, 0)], constant_values=1.5),
        ),
        (
            node("Pad", ["x"], ["y"], paddings=[0, 1, 1, 0], mode="edge"),
            lambda x: np.pad(x, [(0, 1), (1, 0)], mode="edge"),
        ),
        (node("Split", ["x"], ["y", "z"], axis=1, split=[1, 3]), lambda x: x[:, :1]),
        (node("Gemm", ["x", "w", "c"], ["y"], broadcast=1, alpha=0.5), lambda x: 0.5 * x @ np.ones((4, 3)) + 2),
        (node("Tile", ["x", "two", "one"], ["y"]), lambda x: np.tile(x, [1, 2])),
    ],
    ids=["Cast", "Pad", "Pad with edges", "Split", "Gemm", "Tile"],
)
def test_operators_of_opset_1(old: onnx.NodeProto, expected: Callable[[np.ndarray], np.ndarray]) -> None:
    x = random((2, 4)) * 5
    constants = {"w": np.ones((4, 3), np.float32), "c": np.full(3, 2, np.float32)}
    constants |= {"one": np.ones(1, np.float32), "two": np.full(1, 2, np.float32)}
    inputs = [tensor("x", [2, 4]), tensor("w", [4, 3]), tensor("c", [3]), tensor("one", [1]), tensor("two", [1])]
    network = load_model(model([old], inputs, ["y"], constants, opset=1))
    np.testing.assert_allclose(evaluate(network, {"x": x})["y"], expected(x), rtol=1e-5)


@pytest.mark.parametrize(("op", "num_gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
@pytest.mark.parametrize("opset", [1, 6])
def test_recurrent_operators_of_before_opset_7(op: str, num_gates: int, opset: int) -> None:
    constants = {"w": random((1, 3 * num_gates, 5)), "r": random((1, 3 * num_gates, 3), 1)}
    inputs = [tensor("x", [4, 2, 5]), *(tensor(name, value.shape) for name, value in constants.items())]
    x = random((4, 2, 5), 2)

    def last(**attributes: Any) -> Any:
        made = node(op, ["x", "w", "r"], ["", "y"], hidden_size=3, **attributes)
        version = opset if attributes else 14
        return evaluate(load_model(model([made], inputs, ["y"], constants, opset=version)), {"x": x})["y"]

    np.testing.assert_array_equal(last(output_sequence=0), last())


def test_a_cast_of_opset_1_to_a_type_that_there_is_not() -> None:
    proto = model([node("Cast", ["x"], ["y"], to="QUARTER")], [tensor("x", [2])], ["y"], opset=1)
    with pytest.raises(ModelError, match="does not have: QUARTER"):
        load_model(proto)


def test_old_batch_normalization_uses_its_statistics() -> None:
    constants = {name: np.abs(random((3,), seed)) for seed, name in enumerate(("scale", "bias", "mean", "variance"))}
    nodes = [node("BatchNormalization", ["x", *constants], ["y"], epsilon=0.1, momentum=0.5)]
    x = random((2, 3, 4))
    got = evaluate(load_model(model(nodes, [tensor("x", [2, 3, 4])], ["y"], constants, opset=11)), {"x": x})["y"]
    scale, bias, mean, variance = (value[:, None] for value in constants.values())
    np.testing.assert_allclose(got, (x - mean) / np.sqrt(variance + 0.1) * scale + bias, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("read", [["y"], ["y", "m", "v"], ["y", "saved_m", "saved_v"]])
def test_old_batch_normalization_with_more_outputs_uses_those_of_the_batch(read: list[str]) -> None:
    """As models that are exported while they train have it, which read the first output alone."""
    constants = {name: np.abs(random((3,), seed)) for seed, name in enumerate(("scale", "bias", "mean", "variance"))}
    outputs = ["y", "m", "v", "saved_m", "saved_v"]
    nodes = [node("BatchNormalization", ["x", *constants], outputs, epsilon=0.1, momentum=0.75)]
    x = random((2, 3, 4))
    network = load_model(model(nodes, [tensor("x", [2, 3, 4])], read, constants, opset=12))
    assert all(has_expression(n) for n in network.nodes)
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    factor = constants["scale"] / np.sqrt(variance + 0.1)
    y = (x - mean[:, None]) * factor[:, None] + constants["bias"][:, None]
    running = [0.75 * constants["mean"] + 0.25 * mean, 0.75 * constants["variance"] + 0.25 * variance]
    expected = dict(zip(outputs, [y, *running, mean, variance], strict=True))
    for name, got in evaluate(network, {"x": x}).items():
        np.testing.assert_allclose(got, expected[name], rtol=1e-5, atol=1e-6)


def test_nodes_in_any_order_are_sorted() -> None:
    proto = model([node("Neg", ["h"], ["y"]), node("Exp", ["x"], ["h"])], [tensor("x", [3])], [anything("y")])
    assert ops(load_model(proto)) == ["Exp", "Neg"]


def test_model_is_not_changed_by_its_import() -> None:
    proto = two_layers()
    before = proto.SerializeToString(deterministic=True)
    load_model(proto)
    assert proto.SerializeToString(deterministic=True) == before
