"""Reductions along other axes than the one that memory runs along, such as means over the places of an image.

Their vectors are results side by side: columns, each with its own sum.
"""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.schedule.steps import ComputeAtStep, ReorderStep, VectorizeStep
from tilewright.space.analysis import fusible_consumer, has_data_reuse, lane_axis
from tilewright.space.knob import Decision
from tilewright.space.parallel_loops import parallel_steps
from tilewright.space.rules.rule import Rule
from tilewright.space.sketch_state import SketchState, open_split
from tilewright.space.vector_loops import lane_knob
from tilewright.te import Axis


class FuseColumns(Rule):
    """A reduction whose results are computed side by side in vectors: in tiles of its one elementwise consumer."""

    name = "fuse_columns"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        is_plain = not has_data_reuse(stage) and stage.leaves == stage.root_loops
        has_lane = lane_axis(stage, state.options.target) is not None
        return is_plain and has_lane and fusible_consumer(state.schedule, stage) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        host, lane = fusible_consumer(state.schedule, stage), lane_axis(stage, state.options.target)
        assert host is not None, "it matches"
        assert lane is not None, "it matches"
        return [_fused(state, stage, host, lane)]


def _fused(state: SketchState, stage: Stage, host: Stage, lane: Axis) -> SketchState:
    """A tile of columns at a time, computed inside the consumer's loop over such tiles."""
    over = host.axes[stage.axes.index(lane)]
    others = [axis.name for axis in host.axes if axis is not over]
    state = state.add(
        open_split(host.name, over.name, Decision(lane_knob(stage, lane, state.options))),
        ReorderStep(host.name, (*others, f"{over.name}.0", f"{over.name}.1")),
        VectorizeStep(host.name, f"{over.name}.1"),
    )
    state = state.add(*parallel_steps(state, state.stage(host.name)))
    tiles = state.stage(host.name).leaves[-2]  # alone, or with others on threads
    lane_last = (*(loop.name for loop in stage.leaves if loop.name != lane.name), lane.name)
    return state.add(
        ComputeAtStep(stage.name, host.name, tiles.name),
        ReorderStep(stage.name, lane_last),
        VectorizeStep(stage.name, lane.name),
    )
