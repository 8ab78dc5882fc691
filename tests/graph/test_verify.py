"""The verifier of graphs: each rule has a graph that breaks it alone, and a broken pass is named."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import parser

from tilewright.graph import Graph
from tilewright.graph.onnx import load_model
from tilewright.graph.passes import PASSES, optimize
from tilewright.graph.verify import GraphError, Verifier, verify, verifying
from tilewright.operators import OWN, Node, TensorType

MATRIX = TensorType("float32", (2, 3))


def small() -> Graph:
    """y = Relu(x + w)."""
    nodes = [
        Node("Add", ("x", "w"), ("h",), name="first", opset=13),
        Node("Relu", ("h",), ("y",), opset=13),
    ]
    constants: dict[str, np.ndarray] = {"w": np.ones(3, np.float32)}
    types = {"x": MATRIX, "w": TensorType("float32", (3,)), "h": MATRIX, "y": MATRIX}
    return Graph("small", ("x",), ("y",), nodes, constants, {**types})


def with_node(position: int, **changes: Any) -> Callable[[Graph], Graph]:
    """The graph with one of its nodes changed."""

    def change(graph: Graph) -> Graph:
        nodes = list(graph.nodes)
        nodes[position] = replace(nodes[position], **changes)
        return replace(graph, nodes=nodes)

    return change


def with_types(**types: TensorType | None) -> Callable[[Graph], Graph]:
    return lambda graph: replace(graph, types={**graph.types, **types})


def without_type(name: str) -> Callable[[Graph], Graph]:
    return lambda graph: replace(graph, types={n: t for n, t in graph.types.items() if n != name})


def with_constant(name: str, value: np.ndarray) -> Callable[[Graph], Graph]:
    return lambda graph: replace(graph, constants={**graph.constants, name: value})


def with_attribute(value: Any) -> Callable[[Graph], Graph]:
    return with_node(1, attributes={"alpha": value})


def test_a_graph_that_holds_together_is_accepted() -> None:
    verify(small())
    verify(with_types(y=None)(small()))  # known only when the network runs
    for value in (1, 0.5, "text", b"\xff", np.zeros(2), (1, 2), (0.5,), ("a", b"b"), (), (np.zeros(1),)):
        verify(with_attribute(value)(small()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        # names
        (with_node(0, inputs=("x", "y")), "h = Add(x, y) reads y, which nothing before it gives"),
        (with_node(0, inputs=("h", "w")), "reads h, which nothing before it gives"),
        (lambda g: replace(g, nodes=g.nodes[::-1]), "Relu(h) reads h, which nothing before it gives"),
        (with_node(1, outputs=("h",)), "h = Relu(h) gives h, which is defined already"),
        (with_node(1, outputs=("y", "y")), "gives y, which is defined already"),
        (with_node(0, outputs=("x",)), "gives x, which is defined already"),
        (with_node(0, outputs=("w",)), "gives w, which is defined already"),
        (lambda g: replace(g, inputs=("x", "x")), "inputs are defined twice, or constants as well: x, x"),
        (lambda g: replace(g, inputs=("x", "w")), "inputs are defined twice, or constants as well: w"),
        (lambda g: replace(g, inputs=("x", "")), "an input or a constant has no name"),
        (lambda g: replace(g, outputs=("y", "z")), "the output z is not defined"),
        (lambda g: replace(g, outputs=("",)), "the output  is not defined"),
        (lambda g: replace(g, nodes=[*g.nodes, Node("Relu", ("y",), ("",), opset=13)]), " = Relu(y) gives nothing"),
        # types
        (without_type("h"), "values without a type: h"),
        (with_types(**{"": MATRIX}), "an operand that is left out has the type None"),
        (with_types(old=MATRIX, older=None), "types of values that are not there: old, older"),
        (with_types(y=TensorType("float31", (2, 3))), "y is a tensor of 'float31', which is no element type of ONNX"),
        (with_types(y=TensorType("float32", (2, -1))), "y has the shape (2, -1), but sizes are whole numbers"),
        (with_types(y=TensorType("float32", (2, np.int64(3)))), "y has the shape"),  # type: ignore[arg-type]
        (with_types(w=TensorType("float32", (4,))), "the constant w is TensorType(dtype='float32', shape=(3,)), but"),
        (with_constant("w", np.ones(3, np.float64)), "the constant w is TensorType(dtype='float64', shape=(3,)), but"),
        (
            with_types(h=TensorType("float32", (3, 2))),
            "but the graph says that h is TensorType(dtype='float32', ",
        ),
        (
            with_types(y=TensorType("float64", (2, 3))),
            "but the graph says that y is TensorType(dtype='float64', ",
        ),
        # nodes
        (with_node(1, op="Relo"), "is of an operator that nobody knows: domain '', opset 13"),
        (with_node(1, domain="com.example"), "is of an operator that nobody knows: domain 'com.example', opset 13"),
        (with_node(1, domain=OWN), "is of an operator that nobody knows: domain 'tilewright', opset 13"),
        (with_node(1, opset=0), "is of an operator that nobody knows: domain '', opset 0"),
        *[
            (with_attribute(value), "as its attribute alpha, but attributes are")
            for value in (None, True, np.float32(1), np.int64(1), [1, 2], {1}, ((1,),), (1, None), (True,))
        ],
    ],
)
def test_a_broken_rule_is_named(change: Callable[[Graph], Graph], message: str) -> None:
    with pytest.raises(GraphError) as caught:
        verify(change(small()))
    assert message in str(caught.value)


def test_operands_that_cannot_fit_are_found() -> None:
    split = Node("Split", ("x", "sizes"), ("a", "b"), {"axis": 1}, opset=13)
    types = {"x": MATRIX, "sizes": TensorType("int64", (2,)), "a": None, "b": None}
    graph = Graph("net", ("x",), ("a", "b"), [split], {"sizes": np.array([1, 1])}, {**types})
    with pytest.raises(GraphError, match="Split cuts 3 elements into parts of"):
        verify(graph)


def test_equal_nodes_with_other_constants_are_told_apart() -> None:
    """What is remembered of a node holds for those with the same values of the constants that decide its type."""

    def reshape(n: int, shape: tuple[int, ...], said: tuple[int, ...]) -> Graph:
        node = Node("Reshape", ("x", "shape"), ("y",), opset=13)
        types = {"x": MATRIX, "shape": TensorType("int64", (2,)), "y": TensorType("float32", said)}
        return Graph(f"net{n}", ("x",), ("y",), [node], {"shape": np.array(shape)}, {**types})

    verifier = Verifier()
    verifier(reshape(0, (3, 2), (3, 2)))
    verifier(reshape(1, (6, 1), (6, 1)))
    with pytest.raises(GraphError, match="by its expression, but the graph says"):
        verifier(reshape(2, (6, 1), (3, 2)))


# --- between passes --------------------------------------------------------------------------------------------------


def forgets_types(graph: Graph) -> Graph:
    return replace(graph, types={})


def test_a_pass_that_breaks_the_graph_is_named() -> None:
    with pytest.raises(GraphError, match="after forgets_types: there are values without a type"):
        optimize(small(), [*PASSES, forgets_types, *PASSES])


def test_graphs_are_verified_only_where_that_is_asked_for() -> None:
    def as_without_tests() -> None:
        assert optimize(small(), [forgets_types]).types == {"": None}
        with verifying(), pytest.raises(GraphError):
            optimize(small(), [forgets_types])
        optimize(small(), [forgets_types])

    Context().run(as_without_tests)


def test_the_import_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.graph.onnx.Graph", lambda **parts: forgets_types(Graph(**parts)))
    text = '<ir_version: 8, opset_import: ["" : 13]> net (float[2] x) => (float[2] y) { y = Relu(x) }'
    with pytest.raises(GraphError, match="after the import: there are values without a type: x, y"):
        load_model(parser.parse_model(text))
