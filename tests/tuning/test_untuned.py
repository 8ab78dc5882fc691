"""The program of a task that was never tuned: always there, right, the same each time, and better than a plain one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.tuning.write_default_programs import pinned
from tilewright import te
from tilewright.cost_model.analytical import score_schedule
from tilewright.features import Hardware
from tilewright.records import Record
from tilewright.schedule import Trace
from tilewright.space import SpaceOptions, derive, plain_schedule
from tilewright.target import Target
from tilewright.te import Task
from tilewright.testing.check import check_program
from tilewright.testing.programs import FAMILIES, random_task
from tilewright.tuning.untuned import best_trace, default_trace, search_untuned
from tilewright.workloads import parse

NATIVE = Target.native()


def transposed() -> Task:
    x = te.placeholder((6, 5, 4), name="X")
    return Task([x], te.compute((4, 6, 5), lambda i, j, k: x[j, k, i], name="T"))


def scalar() -> Task:
    x = te.placeholder((7,), name="X")
    k = te.reduce_axis(7, name="k")
    return Task([x], te.compute((), lambda: te.max(x[k], axis=k), name="M"))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_any_task_has_one_that_computes_it(family: str, threads: int) -> None:
    rng = np.random.default_rng(1)
    task = random_task(family, rng)
    check_program(task, default_trace(task, NATIVE, threads).apply(task), rng, threads)


@pytest.mark.parametrize("task", [transposed(), scalar(), parse("c2d:1x7x7x8,8,3x3,s2,p1"), parse("sfm:1x5x9")])
def test_tasks_with_hardly_any_choice_have_one_too(task: Task) -> None:
    rng = np.random.default_rng(0)
    check_program(task, default_trace(task, NATIVE, 2).apply(task), rng, 2)


def test_it_is_the_same_each_time() -> None:
    target = Target.parse("llvm -mcpu=haswell")
    first, second = (default_trace(parse("c2d:1x14x14x32,32,3x3,s1,p1"), target, 2) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("options", ["-vector-bits=128", "-vector-bits=64 -vector-registers=8"])
def test_vectors_may_be_shorter_than_the_registers(options: str) -> None:
    target, rng = Target.parse(f"llvm -mcpu=native {options}"), np.random.default_rng(0)
    assert target.lanes("float32") < NATIVE.lanes("float32")
    task = parse("c2d:1x9x11x24,20,3x3,s1,p1")
    check_program(task, default_trace(task, target, 2).apply(task), rng, 2, str(target))


@pytest.mark.parametrize(("workload", "target", "program"), pinned())
def test_it_stays_what_it_was(workload: str, target: str, program: str) -> None:
    # A change of the model that is meant to change programs brings a new file, and figures that show why.
    assert str(default_trace(parse(workload), Target.parse(target), threads=2)) == program


def test_it_is_expected_to_be_far_better_than_plain_loops() -> None:
    task, target = parse("gmm:256x256x256"), Target.parse("llvm -mcpu=haswell")
    hardware = Hardware.from_target(target, 2)
    chosen = default_trace(task, target, 2).apply(task)
    gain = score_schedule(chosen, 1, hardware) - score_schedule(plain_schedule(task, target, 2), 1, hardware)
    assert gain[0] > np.log(3)


def test_the_estimate_is_that_of_the_default() -> None:
    task, target = parse("gmm:256x256x256"), Target.parse("llvm -mcpu=haswell")
    estimate_s = search_untuned(derive(task, SpaceOptions(target, 1))).estimate_s
    score = score_schedule(default_trace(task, target, 1).apply(task), 1, Hardware.from_target(target, 1))
    assert estimate_s == pytest.approx(np.exp(-score[0]) / target.core.clock_hz, rel=1e-6)


def test_a_recorded_program_comes_before_the_default() -> None:
    task = parse("gmm:16x16x16")
    record = Record(task.hash, "", str(NATIVE), 2, Trace(), "OK", 1e-3, (1e-3,))
    assert best_trace([record], task, NATIVE, 2) == record.trace
    assert best_trace([record], task, NATIVE, 1) == default_trace(task, NATIVE, 1)
    assert best_trace([replace(record, context="cold-9M")], task, NATIVE, 2) == record.trace
