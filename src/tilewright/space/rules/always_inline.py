"""A stage that costs nothing to recompute goes into its consumers."""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.schedule.steps import ComputeInlineStep
from tilewright.space.analysis import is_strictly_inlinable
from tilewright.space.rules.rule import Rule
from tilewright.space.sketch_state import SketchState


class AlwaysInline(Rule):
    """Write a stage without reduction, function or condition into its consumers."""

    name = "always_inline"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return is_strictly_inlinable(stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [state.add(ComputeInlineStep(stage.name))]
