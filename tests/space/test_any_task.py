"""Any task: its sketches are legal, their features finite, and their candidates compute what NumPy computes.

That no sketch is dropped on the way holds in every test: see `tests/conftest.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, workloads
from tilewright.features import StatementEncoder
from tilewright.space import SpaceOptions, derive
from tilewright.te import assert_matches, evaluate, random_inputs, reduction_size
from tilewright.testing.programs import FAMILIES, random_task

TARGET = tw.Target.native()


@pytest.mark.parametrize("family", list(FAMILIES))
def test_any_task_has_a_space_of_right_programs(family: str) -> None:
    rng = np.random.default_rng(31)
    for _ in range(2):
        task = random_task(family, rng)
        arrays = random_inputs(task, rng)
        expected = evaluate(task, *arrays)
        sketches = derive(task, SpaceOptions(TARGET, 2))
        assert sketches
        for sketch in sketches[:4]:
            population = sketch.sample(rng, 12)
            assert np.isfinite(StatementEncoder().encode(population)).all()
            for candidate in population[population.legal(TARGET)][:1]:
                results = tw.build(candidate.trace.apply(task), TARGET, 2)(*arrays)
                outputs = results if isinstance(results, tuple) else (results,)
                for actual, wanted, tensor in zip(outputs, expected, task.outputs, strict=True):
                    assert_matches(actual, wanted, tensor.dtype, reduction_size(task))


@pytest.mark.parametrize("family", workloads.names())
def test_any_workload_has_a_space(family: str) -> None:
    for workload, task in workloads.suite(1):
        if workload.partition(":")[0] == family:
            assert derive(task, SpaceOptions(TARGET, 2))


def test_a_long_chain_of_stages_is_inlined_as_far_as_expressions_may_be_deep() -> None:
    x = te.placeholder((8,), name="x")
    y = x
    for n in range(24):
        y = te.compute((8,), lambda i, y=y: _deep(y[i], 10), name=f"y{n}")
    task = tw.Task([x], [y])
    arrays = random_inputs(task, np.random.default_rng(0))
    for sketch in derive(task, SpaceOptions(TARGET, 1)):
        schedule = sketch.sample(np.random.default_rng(0), 1).trace(0).apply(task)
        assert [stage.depth <= te.MAX_DEPTH for stage in schedule.active_stages] == [True, True]
        assert_matches(tw.build(schedule, TARGET, 1)(*arrays), evaluate(task, *arrays)[0], "float32")


def _deep(value: te.Expr, num_steps: int) -> te.Expr:
    """An expression that is twice as deep as it has steps."""
    for _ in range(num_steps):
        value = value * 0.5 + 0.25
    return value


def test_an_expression_that_would_be_too_deep_is_not_inlined() -> None:
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: _deep(x[i], 150), name="y")
    s = tw.Schedule(tw.Task([x], [te.compute((8,), lambda i: _deep(y[i], 150), name="z")]))
    with pytest.raises(tw.ScheduleError, match="the expression of z would be 602 deep .*, and 400 at most are allowed"):
        s["y"].compute_inline()
    assert not s["y"].is_inlined
