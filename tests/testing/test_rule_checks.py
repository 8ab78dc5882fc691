"""The checks of rules find what is wrong with a rule."""

from __future__ import annotations

import pytest

from tilewright.errors import ScheduleError
from tilewright.schedule import Stage
from tilewright.schedule.steps import ComputeInlineStep, VectorizeStep
from tilewright.space import Rule, SketchState
from tilewright.testing.rule_checks import RuleChecks


class Inline(Rule):
    """A good rule, as far as it goes."""

    name = "inline"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return stage.reduction is None and not stage.is_output and not stage.is_inlined

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [state.add(ComputeInlineStep(stage.name))]


class Silent(Inline):
    def matches(self, state: SketchState, stage: Stage) -> bool:
        return False


class Meddling(Inline):
    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        found = super().apply(state, stage)
        state.steps = ()
        return found


class Moody(Inline):
    def __init__(self) -> None:
        self.mood = 0

    def matches(self, state: SketchState, stage: Stage) -> bool:
        self.mood += 1
        return self.mood % 2 == 0 and super().matches(state, stage)


class Failing(Inline):
    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [state.add(VectorizeStep(stage.name, "no such loop"))]


def checks_of(rule: Rule) -> RuleChecks:
    class Checks(RuleChecks):
        def make(self) -> Rule:
            return rule

    return Checks()


def test_a_good_rule_passes() -> None:
    checks = checks_of(Inline())
    checks.test_it_has_a_name()
    checks.test_it_has_something_to_say()
    checks.test_it_changes_no_state_that_it_is_given()
    checks.test_it_gives_the_same_for_the_same_task()
    checks.test_a_trace_leads_back_to_its_candidate()
    checks.test_its_programs_compute_what_numpy_computes("elementwise")


def test_a_rule_that_matches_nothing_is_found() -> None:
    with pytest.raises(AssertionError, match="it matches no stage of any task"):
        checks_of(Silent()).test_it_has_something_to_say()


def test_a_rule_that_changes_what_it_is_given_is_found() -> None:
    with pytest.raises(AssertionError):
        checks_of(Meddling()).test_it_changes_no_state_that_it_is_given()


def test_a_rule_that_does_not_repeat_itself_is_found() -> None:
    with pytest.raises(AssertionError):
        checks_of(Moody()).test_it_gives_the_same_for_the_same_task()


def test_a_rule_that_fails_is_found(caplog: pytest.LogCaptureFixture) -> None:
    checks = checks_of(Failing())
    checks.test_its_programs_compute_what_numpy_computes("softmax")
    assert any(ScheduleError.__name__ in record.getMessage() for record in caplog.records), "which fails the test"
    caplog.clear()
