"""The derivation rules: `derivation.py` applies them to the stages of a task, from the last to the first.

A rule is a class with `matches` and `apply`. Where a rule matches it gives the states that go on from there; a rule
that is exclusive keeps those below it from being tried. User rules come first:

    class FuseAll(Rule):
        name = "fuse_all"
        is_exclusive = True
        def matches(self, state, stage): return stage.name == "special"
        def apply(self, state, stage): return [state.add(ComputeInlineStep(stage.name))]

    derive(task, options, rules=[FuseAll(), *DEFAULT_RULES])
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from tilewright.schedule import Stage
from tilewright.schedule.steps import CacheWriteStep, ComputeInlineStep
from tilewright.space import analysis
from tilewright.space.builder import SketchState
from tilewright.space.columns import columns_host, fuse_columns
from tilewright.space.finish import locate
from tilewright.space.packing import pack_variants
from tilewright.space.rows import fuse_rows, parallel_partials, rows_of
from tilewright.space.sums import summed_axis, sums_in_lanes
from tilewright.space.tiling import tile_alone, tile_fused, tile_joined, tiles_of_consumer


class Rule(ABC):
    """One way to derive. `is_exclusive` rules end the search for rules at a stage that they match."""

    name = ""
    is_exclusive = False

    @abstractmethod
    def matches(self, state: SketchState, stage: Stage) -> bool:
        """Whether the rule has something to say about the stage."""

    @abstractmethod
    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        """The states that go on from here."""


class AlwaysInline(Rule):
    """A stage that costs nothing to recompute goes into its consumers."""

    name = "always_inline"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return analysis.is_strictly_inlinable(state.schedule, stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [state.add(ComputeInlineStep(stage.name))]


class InlinePadding(Rule):
    """Padding may go into its consumer, whose loops are then cut where the padding ends."""

    name = "inline_padding"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return analysis.is_padding(stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [state.add(ComputeInlineStep(stage.name))]


class SumsInLanes(Rule):
    """A stage with data reuse whose last axis does not fill a vector: vectors run along the reduction."""

    name = "sums_in_lanes"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return summed_axis(state, stage) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return sums_in_lanes(state, stage.name)


class JoinTiles(Rule):
    """A stage with data reuse whose consumer has tiles already, for another stage: inside them too."""

    name = "join_tiles"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return analysis.has_data_reuse(stage) and tiles_of_consumer(state, stage) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        tiles = tiles_of_consumer(state, stage)
        assert tiles is not None
        return pack_variants(tile_joined(state, stage.name, tiles), stage.name)


class AddCacheStage(Rule):
    """A tile of its own for a stage that has no consumer to be fused with."""

    name = "add_cache_stage"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return analysis.has_data_reuse(stage) and analysis.fusible_consumer(state.schedule, stage) is None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        cached = state.add(CacheWriteStep(stage.name))
        name = f"{stage.name}.cache"
        tiled = [tile_fused(cached, name, stage.name, level) for level in (1, 2)]
        return [packed for following in tiled for packed in pack_variants(following, name)]


class MultiLevelTilingWithFusion(Rule):
    """Tile a stage with data reuse inside the tiles of its consumer."""

    name = "multi_level_tiling_with_fusion"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return analysis.has_data_reuse(stage) and analysis.fusible_consumer(state.schedule, stage) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        consumer = analysis.fusible_consumer(state.schedule, stage)
        assert consumer is not None
        tiled = [tile_fused(state, stage.name, consumer.name, level) for level in (1, 2)]
        return [packed for following in tiled for packed in pack_variants(following, stage.name)]


class MultiLevelTiling(Rule):
    """Tile a stage with data reuse by itself."""

    name = "multi_level_tiling"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return analysis.has_data_reuse(stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return pack_variants(tile_alone(state, stage.name), stage.name)


class ReductionFactorization(Rule):
    """Partial results in parallel, where there are few results from many elements."""

    name = "reduction_factorization"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return analysis.has_more_reduction_parallelism(stage, state.options.threads) and stage.packs is None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [parallel_partials(state, stage.name)]


class FuseRows(Rule):
    """A stage without data reuse is computed row by row inside the consumer that reads it row by row."""

    name = "fuse_rows"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return not analysis.has_data_reuse(stage) and rows_of(state, stage) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [fuse_rows(state, stage.name)]


class FuseColumns(Rule):
    """A reduction whose results are computed side by side in vectors: in tiles of its one elementwise consumer."""

    name = "fuse_columns"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return columns_host(state, stage) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [fuse_columns(state, stage.name)]


class ComputeLocation(Rule):
    """Padding in a buffer of its own: for the whole tensor, or for each tile of the consumer."""

    name = "compute_location"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return analysis.is_padding(stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [state, *locate(state, stage.name)]


class Skip(Rule):
    """Leave the stage as it is: the annotation gives it plain parallel and vector loops."""

    name = "skip"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return not analysis.is_strictly_inlinable(state.schedule, stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [state]


DEFAULT_RULES: tuple[Rule, ...] = (
    AlwaysInline(),
    InlinePadding(),
    ComputeLocation(),
    ReductionFactorization(),
    FuseRows(),
    FuseColumns(),
    SumsInLanes(),
    JoinTiles(),
    AddCacheStage(),
    MultiLevelTilingWithFusion(),
    MultiLevelTiling(),
    Skip(),
)
