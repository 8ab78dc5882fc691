"""Winograd's convolution by bands of tiles."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as tw
from tests.te.algorithms.convolutions import layer, windows
from tests.te.algorithms.test_winograd import in_groups
from tilewright import te
from tilewright.schedule import PARALLEL
from tilewright.space import Sketch, SpaceOptions, derive
from tilewright.te import Task, assert_matches, reduction_size
from tilewright.workloads import parse

# Caches so small that all data is more than they hold, and others.
SMALL, LARGE = (
    tw.Target.parse(re.sub(r"-l1d=\w+ -l2=\w+", f"-l1d=1K -l2={size}", str(tw.Target.native())))
    for size in ("2K", "1M")
)


def by_bands(task: Task, target: tw.Target = SMALL) -> list[Sketch]:
    sketches = derive(task, SpaceOptions(target, threads=2, exact=False))
    return [s for s in sketches if any(step.name == "compute_at" and step.stage == "conv.product" for step in s.steps)]


def test_a_band_has_its_data_its_products_and_its_results() -> None:
    task = layer(16, 16, 16)
    sketch = by_bands(task)[1]
    schedule = sketch.sample(np.random.default_rng(0), 1).trace(0).apply(task)
    band = schedule["conv.result1"].leaves[0]
    assert band.annotation == PARALLEL
    for name in ("padded", "conv.data1", "conv.product"):
        assert schedule[name].attach_loop is band
    assert schedule.is_argument(schedule["conv.weights1.pack"])


def test_data_that_caches_hold_is_transformed_at_once() -> None:
    assert by_bands(layer(16, 16, 16), LARGE) == []


@pytest.mark.parametrize(
    "task",
    [
        layer(12, 16, 32), layer(13, 17, 20), layer(15, 16, 16, padding=0, batch=3), in_groups(9, 2, 16, 16),
        windows((9,), (3,), 16, 16), windows((3, 9, 10), (3, 3, 3), 16, 16),
        parse("dil:1x27x22x16,16,3x3,s1,p1,d2+relu"), parse("dil:2x19x23x16,16,3x3,s1,p3,d3"),
    ],
    ids=["plain", "odd", "batch", "groups", "one dimension", "three dimensions", "dilation 2", "dilation 3"],
)  # fmt: skip
def test_candidates_compute_what_they_should(task: Task) -> None:
    rng = np.random.default_rng(3)
    arrays = te.random_inputs(task, rng)
    (expected,) = te.evaluate(task, *arrays)
    sketches = by_bands(task)
    assert sketches or len(task.inputs[0].shape) == 3  # tiles of one dimension have no rows
    for sketch in sketches[:3]:
        population = sketch.sample(rng, 8)
        for candidate in population[population.legal(SMALL)][:2]:
            found = tw.build(candidate.trace.apply(task), SMALL, threads=2)(*arrays)
            assert_matches(found, expected, "float32", reduction_size(task), candidate.trace.error_growth)
