"""Models that cannot be imported: each error names the node, the operator and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from tests.graph.onnx_models import graph, model, node, random, tensor
from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.onnx import load_model


def small() -> ModelProto:
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"])]
    return model(nodes, [tensor("x", [2, 3])], ["y"], {"w": random((3, 4))})


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nothing\.onnx cannot be read: No such file"):
        load_model(tmp_path / "nothing.onnx")


@pytest.mark.parametrize("data", [b"", b"\x00" * 64, b"this is not a model", bytes(range(256)) * 4])
def test_garbage(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "garbage.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"garbage\.onnx .*again"):
        load_model(path)


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    whole = small().SerializeToString()
    path = tmp_path / "cut.onnx"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError):
            load_model(path)


def test_every_changed_byte_is_imported_or_refused() -> None:
    whole = small().SerializeToString()
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 0x55
        try:
            load_model(bytes(changed))
        except (ModelError, UnsupportedOperatorError):
            continue


def test_missing_external_data(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(small(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(ModelError, match=r"weights\.bin.*next to the model"):
        load_model(path)


def test_external_data_of_bytes(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(small(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    with pytest.raises(ModelError, match="the weights w .*give the path"):
        load_model(path.read_bytes())


def test_cycle() -> None:
    nodes = [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Neg", ["b"], ["y"])]
    with pytest.raises(ModelError, match=r"cycle: .*\(Add\).* -> .*\(Relu\)"):
        load_model(model(nodes, [tensor("x", [3])], ["y"]))


def test_input_that_nothing_gives() -> None:
    with pytest.raises(ModelError, match=r"Add_y \(Add\) reads ghost, which no node"):
        load_model(model([node("Add", ["x", "ghost"], ["y"])], [tensor("x", [3])], ["y"]))


def test_output_that_nothing_gives() -> None:
    with pytest.raises(ModelError, match="output ghost is computed by no node"):
        load_model(model([node("Relu", ["x"], ["y"])], [tensor("x", [3])], ["ghost"]))


@pytest.mark.parametrize("second", ["y", "x"])
def test_value_with_a_name_that_is_taken(second: str) -> None:
    nodes = [node("Relu", ["x"], ["y"]), node("Neg", ["x"], [second])]
    with pytest.raises(ModelError, match=rf"\(Neg\) computes {second}, which .* gives already"):
        load_model(model(nodes, [tensor("x", [3])], ["y"]))


def test_operator_of_a_foreign_domain() -> None:
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("com.example", 1)]
    strange = onnx.helper.make_node("Frobnicate", ["x"], ["y"], name="strange", domain="com.example")
    with pytest.raises(UnsupportedOperatorError, match=r"node strange \(Frobnicate\).* of domain com\.example; export"):
        load_model(model([strange], [tensor("x", [3])], ["y"], opset_imports=opsets))


def test_operator_that_does_not_exist() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"no operator Frobnicate of ONNX's opset 20"):
        load_model(model([node("Frobnicate", ["x"], ["y"])], [tensor("x", [3])], ["y"]))


def test_operator_that_is_withdrawn() -> None:
    proto = model([node("Upsample", ["x", "s"], ["y"])], [tensor("x", [3])], ["y"], {"s": np.ones(1, np.float32)})
    with pytest.raises(UnsupportedOperatorError, match="withdrawn the operator Upsample"):
        load_model(proto)


def test_operator_set_newer_than_onnx_knows() -> None:
    proto = small()
    proto.opset_import[0].version = 999
    with pytest.raises(ModelError, match="opset 999.*upgrade onnx"):
        load_model(proto)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (node("Relu", ["x", "x"], ["y"]), r"Relu_y \(Relu\) is not a valid node"),
        (node("Concat", ["x", "x"], ["y"]), "its attribute axis is missing"),
        (node("Relu", ["x"], ["y"], slope=1.0), "an attribute slope, which the operator does not know"),
        (
            node("MatMul", ["x", "w"], ["y"]),
            r"\(MatMul\) does not fit its inputs x: float32\[2, 3\], w: float32\[4, 5\]",
        ),
        (node("Add", ["x", "n"], ["y"]), r"\(Add\) does not fit its inputs x: float32\[2, 3\], n: int64\[3\]"),
    ],
)
def test_node_that_is_not_valid(bad: onnx.NodeProto, message: str) -> None:
    constants = {"w": random((4, 5)), "n": np.arange(3)}
    with pytest.raises(ModelError, match=message):
        load_model(model([bad], [tensor("x", [2, 3])], ["y"], constants))


def test_branch_that_is_missing() -> None:
    proto = model(
        [node("If", ["c"], ["y"], then_branch=graph([], [], ["x"]))], [tensor("x", [3])], ["y"], {"c": np.array(True)}
    )
    with pytest.raises(ModelError, match=r"If_y \(If\) is not a valid node: its attribute else_branch is missing"):
        load_model(proto)


def test_constant_with_too_little_data() -> None:
    proto = small()
    proto.graph.initializer[0].raw_data = proto.graph.initializer[0].raw_data[:8]
    with pytest.raises(ModelError, match="the constant w of the model does not hold the data it should"):
        load_model(proto)
