"""Reductions whose last axis does not fill a vector: vectors along the reduction, alone and in a consumer."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, workloads
from tilewright.schedule import VECTORIZE
from tilewright.space import Candidate, Sketch, SpaceOptions, derive
from tilewright.te import Task, assert_matches, evaluate, random_inputs, reduction_size
from tilewright.tuning.untuned import default_trace

NATIVE = tw.Target.native()
AVX2 = tw.Target.parse("llvm -mcpu=haswell")  # 8 floats in a vector


def image(channels: int = 32, colours: int = 3, constant: bool = True, with_bias: bool = False) -> Task:
    """A product of 6x8 places, with few results each."""
    X = te.placeholder((6, 8, channels), name="X")
    W = te.placeholder((channels, colours), name="W", constant=constant)
    c = te.reduce_axis(channels, name="c")
    Y = te.compute((6, 8, colours), lambda y, x, f: te.sum(X[y, x, c] * W[c, f], axis=c), name="Y")
    if not with_bias:
        return Task([X, W], Y)
    bias = te.placeholder((colours,), name="bias", constant=True)
    return Task([X, W, bias], te.compute((6, 8, colours), lambda y, x, f: te.tanh(Y[y, x, f] + bias[f]), name="Z"))


def in_lanes(task: Task, target: tw.Target) -> list[Sketch]:
    """The sketches of the rule."""
    sketches = derive(task, SpaceOptions(target, threads=2))
    return [s for s in sketches if any(step.name == "rfactor" for step in s.steps)]


def test_partial_sums_run_along_the_lanes() -> None:
    sketch, *_ = in_lanes(image(), AVX2)
    schedule = Candidate(sketch, (0,) * len(sketch.knobs)).trace.apply(image())
    partial = schedule["Y.rf"]
    assert [loop.name for loop in partial.leaves if loop.annotation == VECTORIZE] == ["c.1"]
    assert partial.loops[-1].extent == 8
    assert schedule.is_prepacked(schedule["W.pack"]), "along the lanes, ahead of time"


@pytest.mark.parametrize(
    ("task", "why"),
    [
        (image(colours=4), "half a vector is filled"),
        (image(channels=36), "lanes would be left over"),
        (image(constant=False), "weights lie apart, and are not known ahead"),
    ],
)
def test_where_the_rule_does_not_match(task: Task, why: str) -> None:
    assert not in_lanes(task, AVX2), why


@pytest.mark.parametrize(
    "task",
    [image(), image(with_bias=True), image(channels=64, colours=1), workloads.parse("t2d:2x4x4x32,3,4x4,s2,p1")],
    ids=["alone", "in a consumer", "one colour", "transposed convolution"],
)
def test_the_result_is_that_of_the_expression(task: Task) -> None:
    arrays = random_inputs(task, np.random.default_rng(3))
    expected = evaluate(task, *arrays)[0]
    for sketch in derive(task, SpaceOptions(NATIVE, threads=2)):
        population = sketch.sample(np.random.default_rng(0), 12)
        for candidate in population[population.legal(NATIVE)][:3]:
            kernel = tw.build(candidate.trace.apply(task), threads=2)
            assert_matches(kernel(*arrays), expected, "float32", reduction_size(task))


def test_such_a_transposed_convolution_runs_so_without_a_trial() -> None:
    task = workloads.parse("t2d:1x32x32x64,3,4x4,s2,p1")
    assert "rfactor" in str(default_trace(task, tw.Target.parse("llvm -mcpu=skylake-avx512"), threads=2))
