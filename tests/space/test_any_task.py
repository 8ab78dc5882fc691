"""Any task: its sketches are legal, their features finite, and their candidates compute what NumPy computes.

That no sketch is dropped on the way holds in every test: see `tests/conftest.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import workloads
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
