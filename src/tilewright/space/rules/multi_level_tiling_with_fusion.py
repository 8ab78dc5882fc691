"""A stage with data reuse tiled inside the tiles of its consumer."""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.space.analysis import fusible_consumer, has_data_reuse
from tilewright.space.rules.packing import pack_variants
from tilewright.space.rules.tile_structure import TilingRule
from tilewright.space.rules.tiling import tile_fused
from tilewright.space.sketch_state import SketchState


class MultiLevelTilingWithFusion(TilingRule):
    """Tile a stage with data reuse inside the tiles of its consumer, at each level around the reduction."""

    name = "multi_level_tiling_with_fusion"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return has_data_reuse(stage) and fusible_consumer(state.schedule, stage) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        consumer = fusible_consumer(state.schedule, stage)
        assert consumer is not None, "it matches"
        tiled = [tile_fused(state, stage, consumer, self.structure, n) for n in self.structure.fusion_levels]
        return [packed for following in tiled for packed in pack_variants(following, stage.name)]
