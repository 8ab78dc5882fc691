"""Random graphs run as onnxruntime runs them, or the reference evaluator of onnx where that is not installed."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.testing.fuzz import graphs, harness
from tilewright.testing.fuzz.harness import Limits
from tilewright.testing.random_graphs import random_graph

NUM_CASES = 60


def test_random_graphs_compute_the_same() -> None:
    tally = harness.run(graphs.Graphs(), 1, Limits(seconds=600, num_cases=NUM_CASES))
    assert tally.num_cases == NUM_CASES
    assert not tally.failures, harness.describe(tally, "graphs", str)


def test_a_wrong_result_is_a_failure_that_shows_the_smallest_part(monkeypatch: pytest.MonkeyPatch) -> None:
    right = graphs.run_compiled
    monkeypatch.setattr(graphs, "run_compiled", lambda graph, seed: [_wrong(x) for x in right(graph, seed)])
    seed = next(n for n in range(100) if len(random_graph(n).model.graph.node) > 3)
    with pytest.raises(graphs.DifferenceError) as caught:
        graphs.Graphs().run(seed)
    assert "the smallest part that fails so" in caught.value.__notes__[0]


def _wrong(x: np.ndarray) -> np.ndarray:
    return ~x if x.dtype == bool else (x + x.dtype.type(3)).astype(x.dtype)


@pytest.mark.parametrize(("got", "expected"), [([1.0], [1.0 + 1e-6]), ([np.nan, np.inf], [np.nan, np.inf])])
def test_last_digits_do_not_count(got: list[float], expected: list[float]) -> None:
    assert graphs.is_close(np.array(got, np.float32), np.array(expected, np.float32))


@pytest.mark.parametrize(
    ("got", "expected"), [([1.0], [1.001]), ([np.nan], [1.0]), ([np.inf], [-np.inf]), ([1.0, 1.0], [1.0])]
)
def test_what_is_different(got: list[float], expected: list[float]) -> None:
    assert not graphs.is_close(np.array(got, np.float32), np.array(expected, np.float32))


def test_without_onnxruntime_the_reference_evaluator_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "has_onnxruntime", lambda: False)
    assert graphs.Graphs().run(2) == "same as the reference evaluator"
