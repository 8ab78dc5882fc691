"""Padding may go into its consumer."""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.schedule.steps import ComputeInlineStep
from tilewright.space.analysis import has_room_in_consumers, is_padding
from tilewright.space.rules.rule import Rule
from tilewright.space.sketch_state import SketchState


class InlinePadding(Rule):
    """Write padding into its consumer, whose loops are then cut where the padding ends."""

    name = "inline_padding"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return is_padding(stage) and has_room_in_consumers(stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [state.add(ComputeInlineStep(stage.name))]
