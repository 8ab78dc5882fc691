"""What every derivation rule must do. A rule's tests subclass `RuleChecks` and say how to make the rule.

```python
class TestMyRule(RuleChecks):
    def make(self) -> Rule:
        return MyRule()

    def own_tasks(self) -> list[Task]:
        return [...]  # what the rule is for, where random programs do not have it
```
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from tilewright.schedule import Stage
from tilewright.space import DEFAULT_RULES, Rule, Sketch, SketchState, SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task
from tilewright.testing.check import check_program
from tilewright.testing.programs import FAMILIES, random_task

_NUM_TASKS = 2
_NUM_SKETCHES = 2
_NUM_CANDIDATES = 16


class RuleChecks(ABC):
    """The conformance checks; `make` gives a new rule each time, always the same. It is tried before all others."""

    threads = 2

    @abstractmethod
    def make(self) -> Rule: ...

    def own_tasks(self) -> list[Task]:
        """Tasks that the rule is for, beside the random ones."""
        return []

    @pytest.fixture(autouse=True)
    def nothing_is_dropped(self, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
        """A rule that fails, and a sketch that cannot be applied, are dropped with a message: here they are errors."""
        caplog.set_level(logging.DEBUG, logger="tilewright.space.derivation")
        yield
        assert not [record.getMessage() for record in caplog.get_records("call")]

    def test_it_has_a_name(self) -> None:
        assert self.make().name

    @pytest.mark.parametrize("family", FAMILIES)
    def test_its_programs_compute_what_numpy_computes(self, family: str) -> None:
        for task in _random_tasks(family):
            self._check_programs(task)

    def test_its_own_programs_compute_what_numpy_computes(self) -> None:
        for task in self.own_tasks():
            self._check_programs(task)

    def test_it_has_something_to_say(self) -> None:
        assert any(self._derived(task).rule.given for task in self._tasks()), "it matches no stage of any task"

    def test_it_changes_no_state_that_it_is_given(self) -> None:
        for task in self._tasks():
            assert not self._derived(task).rule.changed

    def test_it_gives_the_same_for_the_same_task(self) -> None:
        for task in self._tasks():
            assert _in_full(self._derive(task).sketches) == _in_full(self._derived(task).sketches)

    def test_a_trace_leads_back_to_its_candidate(self) -> None:
        for task in self._tasks():
            for sketch in self._derived(task).sketches:
                trace = sketch.sample(np.random.default_rng(0), 1).trace(0)
                found = sketch.candidate_of(trace)
                assert found is not None
                assert found.trace == trace

    def _tasks(self) -> list[Task]:
        return [*(_random_tasks(family)[0] for family in FAMILIES), *self.own_tasks()]

    def _derived(self, task: Task) -> _Derived:
        """The same as `_derive`, once for each task."""
        known = _DERIVED.setdefault(type(self), {})
        if task not in known:
            known[task] = self._derive(task)
        return known[task]

    def _derive(self, task: Task) -> _Derived:
        rule = _Watched(self.make())
        others = [other for other in DEFAULT_RULES if other.name != rule.name]
        sketches = derive(task, SpaceOptions(Target.native(), self.threads), [rule, *others])
        begun = {state.steps for state in rule.given}
        touched = [s for s in sketches if any(s.steps[: len(steps)] == steps for steps in begun)]
        return _Derived(rule, touched)

    def _check_programs(self, task: Task) -> None:
        rng = np.random.default_rng(0)
        sketches = self._derived(task).sketches
        for sketch in sketches[:: max(1, len(sketches) // _NUM_SKETCHES)]:
            population = sketch.sample(rng, _NUM_CANDIDATES)
            for candidate in population[population.legal(Target.native())][:1]:
                check_program(task, candidate.trace.apply(task), rng, self.threads)


class _Watched(Rule):
    """A rule, the states that it gave, and the names of the stages at which it changed the state that it was given."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.name = rule.name
        self.is_exclusive = rule.is_exclusive
        self.given: list[SketchState] = []
        self.changed: list[str] = []

    def matches(self, state: SketchState, stage: Stage) -> bool:
        before = _shown(state)
        matched = self.rule.matches(state, stage)
        self._compare(before, state, stage)
        return matched

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        before = _shown(state)
        found = self.rule.apply(state, stage)
        self._compare(before, state, stage)
        self.given += found
        return found

    def _compare(self, before: tuple[object, ...], state: SketchState, stage: Stage) -> None:
        if _shown(state) != before:
            self.changed.append(stage.name)


@dataclass(frozen=True, slots=True)
class _Derived:
    """The rule as it was used for one task, and the sketches that it had a part in."""

    rule: _Watched
    sketches: list[Sketch]


_DERIVED: dict[type[RuleChecks], dict[Task, _Derived]] = {}


def _shown(state: SketchState) -> tuple[object, ...]:
    return state.steps, state.done, str(state.schedule)


def _in_full(sketches: list[Sketch]) -> list[object]:
    """The steps, and the tables of what they leave open."""
    return [([*map(str, s.steps)], [(k.name, type(k), k.table.tolist()) for k in s.knobs]) for s in sketches]


@cache
def _random_tasks(family: str) -> list[Task]:
    rng = np.random.default_rng(31)
    return [random_task(family, rng) for _ in range(_NUM_TASKS)]
