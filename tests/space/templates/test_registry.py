"""Templates by operator: they join what is derived where they match, and never break it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tilewright as tw
from tests.space.templates.programs import OPTIONS, blocked, product, scaled
from tilewright.errors import UsageError
from tilewright.space import Knobs, derive, space_of
from tilewright.space.templates import registry, x86
from tilewright.te import Task
from tilewright.workloads import parse


@pytest.fixture(autouse=True)
def nothing_registered() -> Iterator[None]:
    before = list(registry._ENTRIES)
    yield
    registry._ENTRIES[:] = before


def names_of_templates(task: Task) -> list[str]:
    """The sketches that the space has beside those that are derived."""
    return [sketch.name for sketch in space_of(task, OPTIONS)[len(derive(task, OPTIONS)) :]]


def test_derived_and_written_sketches_are_one_space_where_the_operator_is_that_of_the_template() -> None:
    tw.register_template("matmul", blocked)
    assert names_of_templates(product()) == ["blocked unroll=False", "blocked unroll=True"]
    assert names_of_templates(scaled(8, 8)) == []
    assert names_of_templates(parse("c2d:1x8x8x4,8,3x3,s1,p1")) == []
    tw.unregister_template("matmul", blocked)
    assert names_of_templates(product()) == []


def test_a_predicate_says_which_tasks_are_meant() -> None:
    tw.register_template("matmul", blocked, matches=lambda task: task.inputs[0].shape[0] > 40)
    assert names_of_templates(product(48)) != []
    assert names_of_templates(product(40)) == []
    tw.register_template(None, x86.matmul, matches=lambda task: task.name == "product")
    assert names_of_templates(product(40)) != []


def test_a_template_that_is_defined_again_replaces_the_one_before() -> None:
    for width in (4, 8):

        @tw.template
        def again(s: tw.Schedule, knobs: Knobs, width: int = width) -> None:
            s["C"].split("j", width)

        tw.register_template("matmul", again)
    (sketch,) = space_of(product(), OPTIONS)[len(derive(product(), OPTIONS)) :]
    assert [str(step) for step in sketch.steps] == ['s["C"].split("j", 8)']


def test_a_template_that_is_illegal_for_a_task_does_not_match_it() -> None:
    @tw.template
    def of_stage_d(s: tw.Schedule, knobs: Knobs) -> None:
        s["D"].vectorize("j")

    tw.register_template("matmul", of_stage_d)
    assert names_of_templates(product()) == []


def test_a_template_that_fails_warns_once_and_is_left_out() -> None:
    @tw.template
    def broken(s: tw.Schedule, knobs: Knobs) -> None:
        raise RuntimeError("of its own")

    tw.register_template("matmul", broken)
    tw.register_template("matmul", blocked)
    with pytest.warns(UserWarning, match="template broken is left out of task product.*raised RuntimeError at"):
        assert len(names_of_templates(product())) == 2
    assert len(names_of_templates(product(8))) == 2, "and no second warning, which would be an error here"


def test_a_predicate_that_fails_warns_too() -> None:
    tw.register_template("matmul", blocked, matches=lambda task: 1 // 0 > 0)
    with pytest.warns(UserWarning, match="matches= raised ZeroDivisionError"):
        assert names_of_templates(product()) == []


def test_wrong_registrations_are_refused() -> None:
    with pytest.raises(UsageError, match="operator is 'gemm'; it must be one of matmul, batch_matmul, conv1d"):
        tw.register_template("gemm", blocked)
    with pytest.raises(UsageError, match="give an operator, or matches="):
        tw.register_template(None, blocked)
    with pytest.raises(UsageError, match="matches is 3; it must be a function"):
        tw.register_template("matmul", blocked, matches=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a template is a function"):
        tw.register_template("matmul", 3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="blocked is not registered for matmul; those that are: none"):
        tw.unregister_template("matmul", blocked)
