"""The sketches of Winograd's convolution."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tilewright as tw
from tests.te.algorithms.convolutions import in_double, layer
from tilewright import te
from tilewright.codegen import compile_schedule
from tilewright.cost_model import shipped
from tilewright.features.primitives import primitives_of
from tilewright.schedule import UNROLL, VECTORIZE, Trace
from tilewright.space import Sketch, SpaceOptions, derive, sketches_from_json, sketches_to_json
from tilewright.te import Task, assert_matches, reduction_size
from tilewright.workloads import parse

NATIVE = tw.Target.native()
OPTIONS = SpaceOptions(NATIVE, threads=2, exact=False)
TASK = layer(12, 16, 32)


@cache
def sketches_of(task: Task) -> list[Sketch]:
    return derive(task, OPTIONS)


def by_winograd(task: Task = TASK) -> list[Sketch]:
    return [sketch for sketch in sketches_of(task) if not sketch.is_exact]


def test_they_come_after_the_direct_ones_which_stay_as_they_are() -> None:
    exact = derive(TASK, SpaceOptions(NATIVE, threads=2))
    assert all(sketch.is_exact for sketch in exact)
    assert [sketch.steps[0].name for sketch in sketches_of(TASK)[len(exact) :]] == ["algorithm"] * 3
    plain = [[str(step) for step in sketch.trace([0] * len(sketch.knobs)).steps] for sketch in exact]
    again = sketches_of(TASK)[: len(exact)]
    assert [[str(step) for step in sketch.trace([0] * len(sketch.knobs)).steps] for sketch in again] == plain


def test_a_transform_has_its_formulas_written_out_and_those_before_it_inside() -> None:
    sketch = by_winograd()[1]
    schedule = sketch.sample(np.random.default_rng(0), 1).trace(0).apply(TASK)
    last, first = schedule["conv.data1"], schedule["conv.data0"]
    assert [loop.name for loop in last.leaves] == ["n@t0@t1", "c.0", "p0", "p1", "c.1"]
    assert [loop.annotation for loop in last.leaves[2:]] == [UNROLL, UNROLL, VECTORIZE]
    assert first.attach_loop is last.leaves[1]
    assert {loop.annotation for loop in first.leaves[:-1]} == {UNROLL}
    assert schedule["conv"].is_inlined
    assert schedule["padded"].attach_loop is None
    assert schedule.is_argument(schedule["conv.weights1.pack"])


@pytest.mark.parametrize("task", [TASK, layer(7, 17, 20), layer(15, 16, 16, padding=0, batch=2)], ids=str)
def test_candidates_compute_what_they_should(task: Task) -> None:
    rng = np.random.default_rng(3)
    arrays = te.random_inputs(task, rng)
    size = {3: 1, 2: 0}[len(task.stages)]
    expected = in_double(arrays, padding=size).astype(np.float32)
    for sketch in by_winograd(task):
        population = sketch.sample(rng, 40)
        for candidate in population[population.legal(NATIVE)][:2]:
            kernel = tw.build(candidate.trace.apply(task), threads=2).bind(W=arrays[1])
            growth = candidate.trace.error_growth
            assert_matches(kernel(arrays[0], *arrays[2:]), expected, "float32", reduction_size(task), growth)


STRIDED = parse("c2d:2x21x23x16,32,3x3,s2,p1+relu")
DILATED = parse("dil:2x15x17x16,32,3x3,s1,p1,d2+bias+relu")
IN_GROUPS = parse("dil:1x21x18x32,32,3x3,s1,p3,d3,g2")


@pytest.mark.parametrize(
    ("task", "names"),
    [
        (STRIDED, {"winograd2s2", "winograd4s2"}),
        (DILATED, {"winograd2", "winograd4"}),
        (IN_GROUPS, {"winograd2", "winograd4", "winograd6"}),
    ],
    ids=["strided", "dilated", "in groups"],
)
def test_candidates_with_strides_and_dilations_compute_what_they_should(task: Task, names: set[str]) -> None:
    rng = np.random.default_rng(4)
    arrays = te.random_inputs(task, rng)
    (expected,) = te.evaluate(task, *arrays)
    used: list[str] = []
    for sketch in by_winograd(task):
        population = sketch.sample(rng, 60)
        for candidate in population[population.legal(NATIVE)][:3]:
            assert sketch.candidate_of(Trace.from_json(candidate.trace.to_json())) is not None
            found = tw.build(candidate.trace.apply(task), threads=2)(*arrays)
            growth = candidate.trace.error_growth
            assert_matches(found, expected, "float32", reduction_size(task), growth)
            used += candidate.trace.algorithms
        assert np.isfinite(shipped().predict(population)).all()
    assert set(used) == names


@pytest.mark.parametrize("task", [STRIDED, DILATED], ids=str)
@pytest.mark.parametrize("target", ["haswell", "nehalem", "cortex-a72"])
def test_these_compile_for_other_targets(task: Task, target: str) -> None:
    options = SpaceOptions(tw.Target.parse(target), threads=2, exact=False)
    for sketch in derive(task, options):
        if not sketch.is_exact:
            population = sketch.sample(np.random.default_rng(0), 60)
            candidate = population[population.legal(options.target)][0]
            assert compile_schedule(candidate.trace.apply(task), options.target, 2).object_code


def test_exact_spaces_have_none_of_dilated_ones() -> None:
    assert all(sketch.is_exact for sketch in derive(DILATED, SpaceOptions(NATIVE, threads=2, exact=True)))


def test_a_trace_leads_back_to_its_row_and_sketches_go_through_json() -> None:
    again = sketches_from_json(sketches_to_json(by_winograd()), TASK, OPTIONS)
    for sketch, written in zip(by_winograd(), again, strict=True):
        for candidate in sketch.sample(np.random.default_rng(1), 5):
            assert sketch.candidate_of(candidate.trace) is not None
            assert written.candidate_of(candidate.trace) is not None


def test_models_see_them() -> None:
    for sketch in by_winograd():
        population = sketch.sample(np.random.default_rng(2), 6)
        assert np.isfinite(shipped().predict(population)).all()
        first = primitives_of(population)[0]
        assert (first.kind, first.names) == ("algorithm", ("S1", *sketch.steps[0].arguments()))


def test_a_convolution_that_is_the_output_is_taken_out_of_its_tiles() -> None:
    full = layer(12, 16, 32)
    conv = full.stages[-2]
    task = Task(full.inputs[:2], conv)
    sketch = by_winograd(task)[0]
    schedule = sketch.sample(np.random.default_rng(0), 1).trace(0).apply(task)
    assert not schedule["conv"].is_inlined
    arrays = te.random_inputs(task, np.random.default_rng(0))
    found = tw.build(schedule, threads=2)(*arrays)
    np.testing.assert_allclose(found, te.evaluate(task, *arrays)[0], rtol=1e-4, atol=1e-4)
