"""A sketch as far as it is derived: what rules look at and add to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tilewright.schedule import Stage, Step
from tilewright.schedule.steps import PragmaStep, SplitStep
from tilewright.space.knob import Decision
from tilewright.space.options import SpaceOptions
from tilewright.space.sketch import Sketch
from tilewright.te import Task


class SketchState:
    """Steps with open decisions. `add` gives a new state.

    `schedule` shows what the steps lead to, with the middle choice of each knob: the structure is the same with any.
    """

    def __init__(
        self, task: Task, options: SpaceOptions, steps: tuple[Step, ...] = (), done: tuple[str, ...] = ()
    ) -> None:
        self.task = task
        self.options = options
        self.steps = steps
        self.done = done  # stages that a rule has dealt with along with another
        sketch = Sketch(task, steps, options)
        self.schedule = sketch.trace([knob.cardinality // 2 for knob in sketch.knobs]).apply(task)

    def add(self, *steps: Step, done: Sequence[str] = ()) -> SketchState:
        """The state with more steps; `done` are stages beside the rule's own that are dealt with as well."""
        return SketchState(self.task, self.options, (*self.steps, *steps), (*self.done, *done))

    def stage(self, name: str) -> Stage:
        return self.schedule[name]

    @property
    def newest(self) -> Stage:
        """The stage that was made last, by a step such as `cache_write`, `pack` or `rfactor`."""
        return list(self.schedule)[-1]


def open_split(stage: str, loop: str, *factors: Decision) -> SplitStep:
    """A split whose factors are left to knobs."""
    return SplitStep(stage, loop, cast(Any, factors))


def open_pragma(stage: str, loop: str, max_step: Decision) -> PragmaStep:
    """An unrolling limit that is left to a knob."""
    return PragmaStep(stage, loop, cast(Any, max_step))
