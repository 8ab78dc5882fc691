"""A stage that is left as it is."""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.space.analysis import is_strictly_inlinable
from tilewright.space.rules.rule import Rule
from tilewright.space.sketch_state import SketchState


class SkipStage(Rule):
    """Leave the stage as it is: the annotation gives it plain parallel and vector loops."""

    name = "skip_stage"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return not is_strictly_inlinable(stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [state]
