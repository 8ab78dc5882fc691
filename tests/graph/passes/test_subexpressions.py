"""Equal nodes and equal constants are there once; what nobody needs is gone."""

from __future__ import annotations

import numpy as np
import onnx

from tests.graph.onnx_models import graph as subgraph
from tests.graph.onnx_models import model, node, random, tensor
from tests.graph.passes.checking import ops, run
from tilewright.graph.onnx import load_model
from tilewright.graph.passes.dead_code import remove_dead_code
from tilewright.graph.passes.subexpressions import share_subexpressions


def test_equal_nodes_become_one() -> None:
    nodes = [
        node("Softmax", ["x"], ["a"], axis=1),
        node("Softmax", ["x"], ["b"], axis=1),
        node("Exp", ["a"], ["c"]),
        node("Exp", ["b"], ["d"]),
        node("Add", ["c", "d"], ["y"]),
    ]
    assert ops(run(model(nodes, [tensor("x", [2, 3])], ["y"]), [share_subexpressions])) == ["Softmax", "Exp", "Add"]


def test_nodes_that_differ_stay() -> None:
    nodes = [
        node("Softmax", ["x"], ["a"], axis=1),
        node("Softmax", ["x"], ["b"], axis=0),
        node("RandomNormalLike", ["x"], ["c"]),
        node("RandomNormalLike", ["x"], ["d"]),
        node("Concat", ["a", "b", "c", "d"], ["y"], axis=0),
    ]
    network = share_subexpressions(load_model(model(nodes, [tensor("x", [2, 3])], ["y"])))
    assert len(network.nodes) == 5


def test_equal_nodes_that_are_outputs_keep_both_names() -> None:
    nodes = [node("Exp", ["x"], ["y"]), node("Exp", ["x"], ["z"])]
    network = run(model(nodes, [tensor("x", [3])], ["y", "z"]), [share_subexpressions])
    assert network.outputs == ("y", "z")
    assert ops(network) == ["Exp", "Identity"]


def test_equal_constants_become_one() -> None:
    constants = {"a": random((3,)), "b": random((3,)), "c": random((3,)).astype(np.float64), "d": -random((3,))}
    nodes = [
        node("Add", ["x", "a"], ["g"]),
        node("Add", ["x", "b"], ["h"]),
        node("Cast", ["c"], ["e"], to=onnx.TensorProto.FLOAT),
        node("Sum", ["g", "h", "d", "e"], ["y"]),
    ]
    network = run(model(nodes, [tensor("x", [3])], ["y"], constants), [share_subexpressions])
    assert len(network.constants) == 2
    assert ops(network) == ["Add", "Sum"]


def test_zeros_of_two_signs_are_two_constants() -> None:
    constants = {"a": np.zeros(2, np.float32), "b": -np.zeros(2, np.float32)}
    nodes = [node("Div", ["x", "a"], ["y"]), node("Div", ["x", "b"], ["z"])]
    network = share_subexpressions(load_model(model(nodes, [tensor("x", [2])], ["y", "z"], constants)))
    assert set(network.constants) == {"a", "b"}


def test_dead_nodes_constants_and_types_go() -> None:
    nodes = [node("Exp", ["x"], ["y"]), node("Add", ["x", "c"], ["dead"]), node("Neg", ["dead"], ["deader"])]
    network = run(
        model(nodes, [tensor("x", [3]), tensor("unused", [2])], ["y"], {"c": random((3,))}), [remove_dead_code]
    )
    assert ops(network) == ["Exp"]
    assert network.constants == {}
    assert set(network.types) == {"x", "y", "unused", ""}  # "" stands for an operand that is left out
    assert network.inputs == ("x", "unused")


def test_value_that_only_a_branch_reads_is_not_dead() -> None:
    branch = subgraph([node("Neg", ["h"], ["n"])], [], ["n"])
    nodes = [node("Exp", ["x"], ["h"]), node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    inputs = [tensor("x", [3]), tensor("c", [], onnx.TensorProto.BOOL)]
    network = run(model(nodes, inputs, ["y"]))
    assert ops(network) == ["Exp", "If"]


def test_value_that_a_branch_reads_may_be_renamed() -> None:
    branch = subgraph([node("Neg", ["i"], ["n"])], [], ["n"])
    nodes = [
        node("Exp", ["x"], ["h"]),
        node("Identity", ["h"], ["i"]),
        node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
    ]
    inputs = [tensor("x", [3]), tensor("c", [], onnx.TensorProto.BOOL)]
    assert ops(run(model(nodes, inputs, ["y"]))) == ["Exp", "If"]
