"""A second product of a consumer that has tiles already, for a first one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.schedule import Loop, Stage
from tilewright.schedule.steps import ComputeAtStep, SplitStep
from tilewright.space.analysis import elementwise_consumer, has_data_reuse
from tilewright.space.knob import Decision, TileKnob
from tilewright.space.rules.packing import pack_variants
from tilewright.space.rules.tile_structure import TileStructure, TilingRule
from tilewright.space.rules.tiling import tile_steps
from tilewright.space.sketch_state import SketchState
from tilewright.te import Axis


class JoinTiles(TilingRule):
    """Compute a stage with data reuse inside the tiles that its consumer has for another, in tiles of those sizes."""

    name = "join_tiles"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return has_data_reuse(stage) and _tiles_of_consumer(state, stage, self.structure) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        tiles = _tiles_of_consumer(state, stage, self.structure)
        assert tiles is not None, "it matches"
        attach = ComputeAtStep(stage.name, tiles.loop.stage.name, tiles.loop.name)
        joined = state.add(attach, *tile_steps(stage, self.structure, tiles.knobs, tiles.level))
        return pack_variants(joined, stage.name)


@dataclass(frozen=True, slots=True)
class _Tiles:
    """The tiles of a consumer that one of its producers was fused into: others of its shape can join.

    They are computed inside `loop`, which is the last of the consumer's first `level` levels.
    """

    loop: Loop
    level: int
    knobs: dict[Axis, TileKnob]


def _tiles_of_consumer(state: SketchState, stage: Stage, structure: TileStructure) -> _Tiles | None:
    """The tiles that a stage of the same shape was fused into with `tile_fused`; None where there are none."""
    host = elementwise_consumer(state.schedule, stage)
    if host is None or stage.leaves != stage.root_loops:
        return None
    loop = next((loop for loop in host.leaves if state.schedule.attached_at(loop)), None)
    splits = {step.loop: step for step in state.steps if isinstance(step, SplitStep) and step.stage == host.name}
    knobs: dict[Axis, TileKnob] = {}
    levels: set[int] = set()
    for own, axis in zip(stage.axes, host.axes, strict=True):
        if axis.extent > 1:
            found = _tiling(splits.get(axis.name), structure)
            if found is None:
                return None
            knobs[own] = found[0]
            levels.add(found[1])
    return _Tiles(loop, levels.pop(), knobs) if loop is not None and len(levels) == 1 else None


def _tiling(split: SplitStep | None, structure: TileStructure) -> tuple[TileKnob, int] | None:
    """The knob of an axis of tiles and how many levels they have, if this is how `tile_fused` splits it."""
    factors: Sequence[object] = () if split is None else split.factors
    decisions = [factor for factor in factors if isinstance(factor, Decision)]
    columns = tuple(decision.columns for decision in decisions)
    for level in structure.fusion_levels:
        knob = decisions[0].knob if columns == structure.columns_of_host(level) else None
        if isinstance(knob, TileKnob):
            return knob, level
    return None
