"""A template that knows nothing of its task, on tasks of all kinds: its legal rows compute what NumPy computes."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.features import create_encoder
from tilewright.space import Knobs, SpaceOptions
from tilewright.te import assert_matches, evaluate, random_inputs, reduction_size
from tilewright.testing.programs import FAMILIES, random_task

OPTIONS = SpaceOptions(tw.Target.native(), threads=2)


@tw.template
def tiled(s: tw.Schedule, knobs: Knobs) -> None:
    """Every loop of every stage is cut, and the last ones are run in some way."""
    for stage in s.active_stages:
        inner = []
        for loop in stage.loops:
            inner.append(stage.split(loop, knobs.split(f"{stage.name}.{loop.name}", loop, 2, policy="any"))[1])
        stage.reorder(*(loop for loop in stage.loops if loop not in inner), *inner)
    if inner:
        knobs.annotate("how", inner[-1:], among=("none", "unroll", "vectorize"))


@pytest.mark.parametrize("family", FAMILIES)
def test_legal_rows_compute_what_numpy_computes(family: str) -> None:
    rng = np.random.default_rng(3)
    task = random_task(family, rng, max_points=20_000)
    inputs = random_inputs(task, rng)
    expected = evaluate(task, *inputs)
    for sketch in tiled.sketches(task, OPTIONS)[-1:]:
        population = sketch.sample(rng, 64)
        legal = population[population.legal(OPTIONS.target)]
        assert np.isfinite(create_encoder("statements").encode(legal)).all()
        results = tw.build(legal[0].trace.apply(task), OPTIONS.target, OPTIONS.threads)(*inputs)
        for tensor, found, wanted in zip(task.outputs, _listed(results), expected, strict=True):
            assert_matches(found, wanted, tensor.dtype, reduction_size(task))


def _listed(results: object) -> list[np.ndarray]:
    return list(results) if isinstance(results, tuple) else [results]  # type: ignore[list-item]
