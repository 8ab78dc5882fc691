"""Rules that fail: each costs its own sketches, and the plain program is always there."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.errors import ScheduleError
from tilewright.schedule import Stage
from tilewright.schedule.steps import UnrollStep, VectorizeStep
from tilewright.space import (
    DEFAULT_RULES,
    Population,
    Rule,
    SketchState,
    SpaceOptions,
    derive,
    open_split,
    plain_schedule,
)
from tilewright.space.knob import Decision, TileKnob
from tilewright.te import Task
from tilewright.tuning.untuned import default_trace

OPTIONS = SpaceOptions(tw.Target.parse("haswell"), threads=2)


def scaled(rows: int = 8, columns: int = 4096) -> Task:
    x = te.placeholder((rows, columns), name="X")
    return Task([x], te.compute((rows, columns), lambda i, j: x[i, j] * 2.0, "Y"))


def chain(num_products: int, size: int = 32) -> Task:
    """Matrices multiplied one after the other, with a function in between."""
    value = te.placeholder((size, size), name="X")
    inputs = [value]
    for n in range(num_products):
        inputs.append(te.placeholder((size, size), name=f"W{n}"))
        value = next_layer(value, inputs[-1], n)
    return Task(inputs, value)


def next_layer(x: te.Tensor, w: te.Tensor, number: int) -> te.Tensor:
    k = te.reduce_axis(w.shape[0], name="k")
    product = te.compute(w.shape, lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), f"P{number}")
    return te.compute(w.shape, lambda i, j: te.tanh(product[i, j]), f"T{number}")


class Failing(Rule):
    """Matches everything, and fails in one of the ways in which rules do."""

    name = "failing"
    is_exclusive = True

    def __init__(self, error: Exception) -> None:
        self.error = error

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return True

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        raise self.error


class UnrollsTooMuch(Rule):
    """Gives a sketch whose middle choice is legal and whose others are not."""

    name = "unrolls_too_much"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return True

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        split = open_split(stage.name, "j", Decision(TileKnob("j", [4096, 8, 4096])))
        return [state.add(split, UnrollStep(stage.name, "j.1"))]


class VectorizesOuter(Rule):
    """Gives a state that cannot be finished."""

    name = "vectorizes_outer"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return True

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        broken = state.add()
        broken.steps = (VectorizeStep(stage.name, "nowhere"),)
        return [broken]


def steps_of(task: Task, *rules: Rule) -> list[tuple[str, ...]]:
    return [tuple(map(str, sketch.steps)) for sketch in derive(task, OPTIONS, rules)]


@pytest.mark.parametrize(
    "rule",
    [
        Failing(ScheduleError("no such loop")),
        Failing(AssertionError()),
        Failing(IndexError("list index out of range")),
        VectorizesOuter(),
    ],
)
def test_a_rule_that_fails_costs_its_own_sketches_alone(rule: Rule, caplog: pytest.LogCaptureFixture) -> None:
    task = scaled()
    assert steps_of(task, rule, *DEFAULT_RULES) == steps_of(task, *DEFAULT_RULES)
    assert len(caplog.records) == 1, "those who look for it are told"
    caplog.clear()


def test_a_sketch_that_is_illegal_for_some_rows_costs_these_rows() -> None:
    (sketch,) = derive(scaled(), OPTIONS, [UnrollsTooMuch()])
    rows = Population(sketch, np.arange(3)[:, None])
    assert rows.legal(OPTIONS.target).tolist() == [False, True, False]


def test_a_task_whose_rules_all_fail_has_the_plain_program(caplog: pytest.LogCaptureFixture) -> None:
    task = scaled()
    plain = tuple(map(str, plain_schedule(task, OPTIONS.target, OPTIONS.threads).steps))
    assert steps_of(task, Failing(ScheduleError("no such loop"))) == [plain]
    caplog.clear()


def test_the_default_of_a_task_whose_rules_all_fail_is_the_plain_program(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task = scaled()
    rules = [Failing(ScheduleError("no such loop"))]
    monkeypatch.setattr("tilewright.tuning.untuned.derive", lambda task, options: derive(task, options, rules))
    plain = plain_schedule(task, OPTIONS.target, OPTIONS.threads)
    assert default_trace(task, OPTIONS.target, OPTIONS.threads) == plain.trace
    caplog.clear()


def test_other_errors_of_a_users_rule_are_raised() -> None:
    with pytest.raises(TypeError, match="a typing error"):
        derive(scaled(), OPTIONS, [Failing(TypeError("a typing error")), *DEFAULT_RULES])


@pytest.mark.parametrize(("num_products", "num_sketches"), [(1, 4), (2, 16), (4, 32)])
def test_the_number_of_sketches_is_bounded(num_products: int, num_sketches: int) -> None:
    sketches = derive(chain(num_products), OPTIONS)
    assert len({tuple(map(str, sketch.steps)) for sketch in sketches}) == num_sketches
    for number in range(num_products):  # every choice at every stage is among them
        packed = {f's["W{number}"].pack("P{number}")' in map(str, sketch.steps) for sketch in sketches}
        assert packed == {False, True}
