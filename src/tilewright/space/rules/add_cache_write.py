"""A tile to accumulate in, for a stage with data reuse that has nothing to be fused with."""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.schedule.steps import CacheWriteStep
from tilewright.space.analysis import feeds_choices, fusible_consumer, has_data_reuse
from tilewright.space.rules.packing import pack_variants
from tilewright.space.rules.tile_structure import TilingRule
from tilewright.space.rules.tiling import tile_fused
from tilewright.space.sketch_state import SketchState


class AddCacheWrite(TilingRule):
    """Compute the stage into a cache, tiled inside the tiles of the stage that writes it out."""

    name = "add_cache_write"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        is_alone = fusible_consumer(state.schedule, stage) is None and not feeds_choices(state.schedule, stage)
        return has_data_reuse(stage) and is_alone

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        cached = state.add(CacheWriteStep(stage.name))
        cache, writer = cached.newest, cached.stage(stage.name)
        tiled = [tile_fused(cached, cache, writer, self.structure, n) for n in self.structure.fusion_levels]
        return [packed for following in tiled for packed in pack_variants(following, cache.name)]
