"""The schedule that a template works on: its steps have decisions where a knob is left open."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from tilewright.errors import UsageError
from tilewright.schedule import Schedule, Step
from tilewright.schedule.steps import Made, ReorderStep
from tilewright.space.knob import Decision, decisions_in, resolve


class OpenSchedule(Schedule):
    """As any schedule; open decisions are applied as a population of two: the first and the last choice of each knob.

    The structure is the same with any. `loop.extent` is an int where no knob decides it, and an array of two else: what
    a template decides by it is an error in Python already, and never the structure of the middle of a space.
    """

    def decided(self, step: Step) -> Step:
        values = {f.name: getattr(step, f.name) for f in fields(step)}
        for name, value in values.items():
            if any(isinstance(part, np.ndarray) for part in (value if isinstance(value, tuple) else (value,))):
                raise UsageError(
                    f"{name} of {step.name} is made of the extent of a loop that a knob decides, which is open; "
                    "take what knobs.split gives, or a product of it"
                )
        opened = {name: resolve(value, _first_and_last) for name, value in values.items() if decisions_in(value)}
        return replace(step, **opened) if opened else step

    def apply(self, step: Step) -> Made:
        """As any schedule, but an order that is there already is no step."""
        before = {stage: stage.leaves for stage in self}
        made = super().apply(step)
        if isinstance(step, ReorderStep) and all(stage.leaves == leaves for stage, leaves in before.items()):
            self.steps = self.steps[:-1]
        return made


def _first_and_last(decision: Decision) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return decision.values(np.asarray([0, decision.knob.cardinality - 1]))
