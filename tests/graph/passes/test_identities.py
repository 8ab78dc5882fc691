"""Nodes that give back what they read disappear; the outputs keep their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.graph.onnx_models import model, node, tensor
from tests.graph.passes.checking import ops, run
from tilewright.graph import Graph
from tilewright.graph.passes.identities import drop_identities
from tilewright.operators import Node, TensorType

INTEGERS: dict[str, Any] = {
    "none": np.zeros(6, np.int64),
    "some": np.array([0, 0, 1, 0, 0, -1]),
    "shape": np.array([2, 3, 4]),
    "ones": np.array([1, 1, 1]),
    "start": np.array([0]),
    "end": np.array([100]),
    "axis": np.array([1]),
    "backwards": np.array([-1]),
    "last": np.array([-1]),
    "before": np.array([-100]),
    "no": np.array(False),
    "empty": np.zeros((2, 0, 4), np.float32),
}


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Identity", ["h"], {}),
        ("Dropout", ["h"], {}),
        ("Dropout", ["h", "", "no"], {}),
        ("Cast", ["h"], {"to": TensorProto.FLOAT}),
        ("Transpose", ["h"], {"perm": [0, 1, 2]}),
        ("Reshape", ["h", "shape"], {}),
        ("Expand", ["h", "shape"], {}),
        ("Tile", ["h", "ones"], {}),
        ("Pad", ["h", "none"], {}),
        ("Slice", ["h", "start", "end", "axis"], {}),
        ("Concat", ["h"], {"axis": 1}),
        ("Concat", ["empty", "h"], {"axis": 1}),
        ("Split", ["h"], {"axis": 0, "num_outputs": 1}),
        ("Sum", ["h"], {}),
        ("Max", ["h"], {}),
    ],
)
def test_node_that_changes_nothing_goes(op: str, inputs: list[str], attributes: dict[str, Any]) -> None:
    nodes = [node("Exp", ["x"], ["h"]), node(op, inputs, ["i"], **attributes), node("Neg", ["i"], ["y"])]
    assert ops(run(model(nodes, [tensor("x", [2, 3, 4])], ["y"], INTEGERS), [drop_identities])) == ["Exp", "Neg"]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Cast", ["h"], {"to": TensorProto.DOUBLE}),
        ("Transpose", ["h"], {"perm": [0, 2, 1]}),
        ("Pad", ["h", "some"], {}),
        ("Slice", ["h", "last", "before", "axis", "backwards"], {}),
        ("Concat", ["h", "h"], {"axis": 1}),
    ],
)
def test_node_that_changes_something_stays(op: str, inputs: list[str], attributes: dict[str, Any]) -> None:
    nodes = [node("Exp", ["x"], ["h"]), node(op, inputs, ["i"], **attributes), node("Neg", ["i"], ["y"])]
    assert ops(run(model(nodes, [tensor("x", [2, 3, 3])], ["y"], INTEGERS), [drop_identities])) == ["Exp", op, "Neg"]


def test_dropout_whose_mask_is_an_output_stays() -> None:
    proto = model([node("Dropout", ["x"], ["y", "mask"])], [tensor("x", [3])], ["y", "mask"])
    assert ops(run(proto)) == ["Dropout"]


def test_dropout_whose_mask_nobody_reads_goes() -> None:
    nodes = [node("Dropout", ["x"], ["h", "mask"]), node("Neg", ["h"], ["y"])]
    assert ops(run(model(nodes, [tensor("x", [3])], ["y"]))) == ["Neg"]


def test_outputs_keep_their_names() -> None:
    nodes = [
        node("Exp", ["x"], ["h"]),
        node("Identity", ["h"], ["y"]),
        node("Identity", ["h"], ["z"]),
        node("Identity", ["x"], ["w"]),
        node("Identity", ["c"], ["k"]),
    ]
    graph = run(
        model(nodes, [tensor("x", [3])], ["y", "z", "w", "k"], {"c": np.ones(2, np.float32)}), [drop_identities]
    )
    assert graph.outputs == ("y", "z", "w", "k")
    assert ops(graph) == ["Exp", "Identity", "Identity"]
    assert "k" in graph.constants


def test_parts_that_are_empty_along_another_axis_count() -> None:
    """Where the other part is known only when the network runs."""
    concat = Node("Concat", ("n", "rows"), ("y",), {"axis": 0}, opset=20)
    rows = np.zeros((2, 0), np.int64)
    types = {"n": None, "rows": TensorType("int64", (2, 0)), "y": None}
    network = Graph("net", ("n",), ("y",), [concat], {"rows": rows}, types)
    assert drop_identities(network).nodes[-1].inputs == ("n", "rows")
