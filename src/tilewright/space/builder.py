"""Deriving sketches: a state is a trace with open decisions, and rules extend it stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np

from tilewright.schedule import Schedule, Stage, Step
from tilewright.schedule.steps import PragmaStep, SplitStep
from tilewright.space.knob import Decision, IntArray, resolve
from tilewright.space.waste import MAX_AXIS_WASTE
from tilewright.target import Target
from tilewright.te import Task


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """What the space is derived for."""

    target: Target
    threads: int = 1
    max_waste: float = MAX_AXIS_WASTE


class SketchState:
    """A sketch as far as it is derived. `add` gives a new state; `schedule` shows it with the first choices made."""

    def __init__(
        self, task: Task, options: SpaceOptions, steps: tuple[Step, ...] = (), done: tuple[str, ...] = ()
    ) -> None:
        self.task = task
        self.options = options
        self.steps = steps
        self.done = done  # stages that a rule has dealt with along with another
        self.schedule = Schedule(task)
        self.schedule.replay(_first_choice(step) for step in steps)

    def add(self, *steps: Step, done: Sequence[str] = ()) -> SketchState:
        return SketchState(self.task, self.options, (*self.steps, *steps), (*self.done, *done))

    def stage(self, name: str) -> Stage:
        return self.schedule[name]


def open_split(stage: str, loop: str, *factors: Decision) -> SplitStep:
    """A split whose factors are left to knobs."""
    return SplitStep(stage, loop, cast(Any, factors))


def open_pragma(stage: str, loop: str, max_step: Decision) -> PragmaStep:
    """An unrolling limit that is left to a knob."""
    return PragmaStep(stage, loop, cast(Any, max_step))


def _first_choice(step: Step) -> Step:
    """The step with some choice in each open decision: the structure does not depend on which."""
    values = {f.name: _representative(getattr(step, f.name)) for f in fields(step)}
    return replace(step, **values)


def _representative(value: Any) -> Any:
    if isinstance(value, Decision):
        middle: IntArray = np.asarray([value.knob.cardinality // 2], np.int64)
        return int(resolve(value, {value.knob: middle})[0])
    if isinstance(value, tuple):
        return tuple(_representative(v) for v in value)
    return value
