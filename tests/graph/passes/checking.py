"""Runs passes on a model and checks that they keep what it computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto

from tilewright.graph import Graph
from tilewright.graph.onnx import load_model
from tilewright.graph.passes import Pass, optimize
from tilewright.graph.verify import verify
from tilewright.operators import OWN
from tilewright.testing.graph_reference import evaluate


def run(proto: ModelProto, passes: Sequence[Pass] = (optimize,), rtol: float = 1e-4) -> Graph:
    """The graph of a model after these passes, which computes the same as before for a random input."""
    before = load_model(proto)
    after = before
    for each in passes:
        after = each(after)
        verify(after)
    rng = np.random.default_rng(0)
    inputs = {}
    for name in before.inputs:
        known = before.types[name]
        assert known is not None
        inputs[name] = rng.standard_normal(known.shape).astype(known.dtype)
    expected, got = evaluate(before, inputs), evaluate(after, inputs)
    for name in before.outputs:
        np.testing.assert_allclose(got[name], expected[name], rtol=rtol, atol=1e-5)
        assert got[name].dtype == expected[name].dtype
    return after


def ops(graph: Graph) -> list[str]:
    """The operators in order; those on channels-last data with a star."""
    return [f"{node.op}*" if node.domain == OWN else node.op for node in graph.nodes]
