"""The programs of attention: a band of rows at a time, whose scores are never all in memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.operators.attention import attention
from tilewright import te
from tilewright.schedule import PARALLEL
from tilewright.space import Sketch, SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task
from tilewright.testing.check import check_program

NATIVE = Target.native()


def sketch_of(task: Task, threads: int = 2) -> Sketch:
    (found,) = derive(task, SpaceOptions(NATIVE, threads))
    return found


@pytest.mark.parametrize(
    "task",
    [
        attention(1, 1, 33, 64, 16, 16),
        attention(2, 4, 48, 40, 5, 32),
        attention(1, 2, 32, 100, 16, 7, heads_last=False),
        attention(1, 3, 35, 35, 16, 16, is_causal=True),
        attention(1, 2, 34, 48, 16, 16, transposed_keys=True),
        attention(3, 1, 40, 33, 16, 16, shared_values=True),
    ],
    ids=["one head", "odd depth", "odd values", "causal", "keys along the lanes", "shared values"],
)
def test_every_band_computes_what_numpy_computes(task: Task) -> None:
    population = sketch_of(task).sample(np.random.default_rng(1), 8)
    legal = population[population.legal(NATIVE)]
    assert len(legal)
    for candidate in legal[:2]:
        check_program(task, candidate.trace.apply(task), np.random.default_rng(0), 2)


def test_scores_are_of_one_band() -> None:
    task = attention(1, 12, 512, 512, 64, 64)
    schedule = sketch_of(task).sample(np.random.default_rng(0), 1).trace(0).apply(task)
    host = schedule["attention"]
    heads, band = host.leaves[:2]
    assert heads.annotation == PARALLEL
    attached = {stage.name.split("_")[0] for stage in schedule.active_stages if stage.attach_loop is band}
    assert {"scores", "largest", "power", "total", "product"} <= attached


def test_a_trace_leads_back_to_its_candidate() -> None:
    sketch = sketch_of(attention(1, 2, 37, 50, 8, 19))
    trace = sketch.sample(np.random.default_rng(0), 1).trace(0)
    found = sketch.candidate_of(trace)
    assert found is not None
    assert found.trace == trace


@pytest.mark.parametrize("num_queries", [2, 7, 31, 33, 50, 100, 197])
def test_any_number_of_rows_has_legal_bands(num_queries: int) -> None:
    population = sketch_of(attention(1, 2, num_queries, 64, 16, 16)).sample(np.random.default_rng(0), 64)
    assert population.legal(NATIVE).mean() > 0.1


def test_few_heads_share_their_bands_among_threads() -> None:
    task = attention(1, 1, 512, 512, 64, 64)
    schedule = sketch_of(task, threads=8).sample(np.random.default_rng(0), 1).trace(0).apply(task)
    parallel = schedule["attention"].leaves[0]
    assert parallel.annotation == PARALLEL
    assert schedule["scores"].attach_loop is parallel


def test_two_products_without_a_reduction_of_rows_are_tiled_each() -> None:
    a, b, c = te.placeholder((40, 32), name="A"), te.placeholder((32, 48), name="B"), te.placeholder((48, 16), name="C")
    k, q = te.reduce_axis(32, "k"), te.reduce_axis(48, "q")
    hidden = te.compute((40, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="H")
    active = te.compute((40, 48), lambda i, j: te.tanh(hidden[i, j]), name="T")
    out = te.compute((40, 16), lambda i, j: te.sum(active[i, q] * c[q, j], axis=q), name="O")
    last = te.compute((40, 16), lambda i, j: out[i, j] * 2.0, name="L")
    assert len(derive(Task([a, b, c], last), SpaceOptions(NATIVE, 2))) > 1
