"""A stage with data reuse tiled by itself."""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.space.analysis import has_data_reuse
from tilewright.space.rules.packing import pack_variants
from tilewright.space.rules.tile_structure import TilingRule
from tilewright.space.rules.tiling import tile_alone
from tilewright.space.sketch_state import SketchState


class MultiLevelTiling(TilingRule):
    """Tile a stage with data reuse by itself."""

    name = "multi_level_tiling"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return has_data_reuse(stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return pack_variants(tile_alone(state, stage, self.structure), stage.name)
