"""Random graphs: what is among them, what explains a difference, and how a failing one is made smaller."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tilewright.testing.random_graphs import FAMILIES, random_graph
from tilewright.testing.random_graphs.draft import Draft
from tilewright.testing.random_graphs.graph import RandomGraph
from tilewright.testing.random_graphs.rounding import is_within, with_other_roundings
from tilewright.testing.random_graphs.shrinking import shrink, text_of

NUM_GRAPHS = 300


@pytest.fixture(scope="module")
def graphs() -> list[RandomGraph]:
    return [random_graph(seed) for seed in range(NUM_GRAPHS)]


def test_a_seed_gives_one_graph() -> None:
    first, again = random_graph(7), random_graph(7)
    assert first.model.SerializeToString() == again.model.SerializeToString()
    assert all(np.array_equal(first.inputs[name], again.inputs[name]) for name in first.inputs)
    assert first.model.SerializeToString() != random_graph(8).model.SerializeToString()


def test_graphs_have_many_operators(graphs: list[RandomGraph]) -> None:
    assert len({node.op_type for graph in graphs for node in graph.model.graph.node}) >= 100


def test_graphs_have_what_networks_rarely_have(graphs: list[RandomGraph]) -> None:
    models = [graph.model.graph for graph in graphs]
    extents = {size for graph in graphs for value in graph.inputs.values() for size in value.shape}
    dtypes = {value.dtype.name for graph in graphs for value in graph.inputs.values()}
    assert {0, 1, 7, 17, 33} <= extents
    assert {"float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool"} <= dtypes
    assert any(len(graph.output) > 3 for graph in models)
    assert any({value.name for value in graph.input} & {value.name for value in graph.output} for graph in models)
    assert any(len(set(node.input)) < len(node.input) for graph in models for node in graph.node)
    assert any(graph.shapes for graph in graphs)
    assert {opset.version for graph in graphs for opset in graph.model.opset_import} == set(range(11, 24))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_draws_graphs_that_onnx_accepts(family: str) -> None:
    for seed in range(10):
        model = random_graph(seed, family).model
        onnx.checker.check_model(model)
        assert model.graph.output


def rounded_sum() -> RandomGraph:
    """Sums close to whole numbers, rounded down."""
    draft = Draft(0)
    x, y = draft.given(np.array([0.1, 0.2, 0.25], np.float32)), draft.given(np.array([0.9, 0.8, 0.25], np.float32))
    draft.node("Floor", [draft.result("Add", [x, y])])
    return RandomGraph(draft.model(), draft.inputs, {}, draft.values)


def test_a_leap_is_explained_where_rounding_makes_it_and_nowhere_else() -> None:
    graph = rounded_sum()
    expected = graph.values["v1_0"]
    rng = np.random.default_rng(0)
    others = [
        onnx.reference.ReferenceEvaluator(with_other_roundings(graph.model, graph.values, rng)).run(None, graph.inputs)
        for _ in range(8)
    ]
    seen = [outputs[0] for outputs in others]
    assert is_within(np.array([0, 0, 0], np.float32), expected, seen)
    assert is_within(np.array([1, 0, 0], np.float32), expected, seen)
    assert not is_within(np.array([1, 1, 1], np.float32), expected, seen)


def test_a_failing_graph_shrinks_to_the_node_that_fails() -> None:
    draft = Draft(0)
    x = draft.input((3, 4))
    middle = draft.result("Tanh", [draft.result("Relu", [x])])
    draft.node("Exp", [middle])
    draft.node("Neg", [middle])
    graph = RandomGraph(draft.model(), draft.inputs, {}, draft.values)
    small = shrink(graph, lambda part: any(node.op_type == "Exp" for node in part.model.graph.node))
    assert [node.op_type for node in small.model.graph.node] == ["Exp"]
    assert list(small.inputs) == [middle]
    assert "Exp (v1_0)" in text_of(small.model)
