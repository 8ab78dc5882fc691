"""A space as a template has it: one way to tile, tiles that divide, operands as they come."""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.space import DEFAULT_RULES, Sketch, SketchState, SpaceOptions, derive
from tilewright.space.analysis import fusible_consumer, has_data_reuse
from tilewright.space.rules.tile_structure import TilingRule
from tilewright.space.rules.tiling import tile_alone, tile_fused
from tilewright.target import Target
from tilewright.te import Task

_LEFT_OUT = (
    "inline_padding",
    "compute_location",
    "add_cache_write",
    "multi_level_tiling_with_fusion",
    "multi_level_tiling",
)
DIVIDING = 1.0


class OneTiling(TilingRule):
    """A stage with data reuse is tiled in its consumer's outermost tiles, or by itself; nothing is packed."""

    name = "one_tiling"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return has_data_reuse(stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        consumer = fusible_consumer(state.schedule, stage)
        if consumer is None:
            return [tile_alone(state, stage, self.structure)]
        return [tile_fused(state, stage, consumer, self.structure, level=1)]


def limited_space(task: Task, target: Target, threads: int) -> list[Sketch]:
    """The sketches of the task in this space."""
    rules = [OneTiling(), *(rule for rule in DEFAULT_RULES if rule.name not in _LEFT_OUT)]
    return derive(task, SpaceOptions(target, threads, max_waste=DIVIDING), rules)
