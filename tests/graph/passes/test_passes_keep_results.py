"""No pass changes what a network computes: random networks before and after, and the types of every value."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph import Graph
from tilewright.graph.onnx import load_model
from tilewright.graph.passes import PASSES, Pass, optimize
from tilewright.graph.protos import array_type
from tilewright.graph.verify import verify
from tilewright.testing.graph_reference import evaluate_all
from tilewright.testing.random_graphs.networks import random_network

NUM_NETWORKS = 160


def check(graph: Graph, inputs: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    verify(graph)
    values = evaluate_all(graph, inputs)
    for name, type_ in graph.types.items():
        assert type_ is None or array_type(values[name]) == type_, f"{name} is not of the type that the graph says"
    for name in graph.outputs:
        scale = max(1.0, float(np.abs(expected[name]).max(initial=0)))
        np.testing.assert_allclose(values[name], expected[name], rtol=2e-4, atol=2e-5 * scale, err_msg=name)


@pytest.mark.parametrize("seed", range(NUM_NETWORKS))
def test_optimized_network_computes_the_same(seed: int) -> None:
    draft = random_network(seed)
    check(optimize(load_model(draft.model())), draft.inputs, draft.values)


@pytest.mark.parametrize("seed", range(NUM_NETWORKS, NUM_NETWORKS + 12))
def test_network_computes_the_same_after_each_pass(seed: int) -> None:
    draft = random_network(seed)
    graph = load_model(draft.model())
    check(graph, draft.inputs, draft.values)
    for run in PASSES:
        before = [str(node) for node in graph.nodes]
        after = run(graph)
        assert [str(node) for node in graph.nodes] == before, f"{run.__name__} has changed the graph it was given"
        graph = after
        check(graph, draft.inputs, draft.values)


@pytest.mark.parametrize("run", dict.fromkeys(PASSES), ids=lambda run: run.__name__)
def test_every_pass_works_on_an_imported_network(run: Pass) -> None:
    for seed in range(NUM_NETWORKS + 20, NUM_NETWORKS + 26):
        draft = random_network(seed, 8)
        check(run(load_model(draft.model())), draft.inputs, draft.values)
