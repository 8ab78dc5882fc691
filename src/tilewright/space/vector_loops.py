"""Loops in vectors, for stages that are not tiled."""

from __future__ import annotations

from tilewright.schedule import MAX_LANES, Loop, Stage, Step
from tilewright.schedule.steps import ReorderStep, VectorizeStep
from tilewright.space.analysis import lane_axis
from tilewright.space.knob import Decision, VectorKnob
from tilewright.space.options import SpaceOptions
from tilewright.space.sketch_state import SketchState, open_split
from tilewright.space.waste import MAX_STAGE_WASTE, covers_within
from tilewright.te import Axis

_VECTORS_AT_A_TIME = (1, 2, 4, 8)


def vector_steps(state: SketchState, stage: Stage) -> list[Step]:
    """The loop that memory runs along in vectors; of a reduction several at a time, so that their latencies overlap."""
    loops = [loop for loop in stage.leaves if _extent(stage, loop) > 1]
    if not loops or state.schedule.attached_at(loops[-1]):
        return []
    last = loops[-1]
    lane = lane_axis(stage, state.options.target)
    if lane is not None and set(stage.leaves) == set(stage.root_loops):
        return _results_in_lanes(stage, lane, lane_knob(stage, lane, state.options))
    if last.is_reduce:
        return _sums_in_lanes(stage, last, state.options)
    if len(loops) > 1:
        return [VectorizeStep(stage.name, last.name)]
    return [] if stage.attach_loop is not None else _only_loop_in_lanes(stage, last, state.options)


def lane_knob(stage: Stage, axis: Axis, options: SpaceOptions) -> VectorKnob:
    """How many elements along the axis are computed at a time: some vectors, or all of a short axis."""
    lanes, longest = options.target.lanes(stage.tensor.dtype), min(axis.extent, MAX_LANES)
    widths = {lanes * n for n in _VECTORS_AT_A_TIME if lanes * n <= longest}
    fitting = {width for width in widths if covers_within(axis.extent, width, options.max_waste)}
    if axis.extent <= MAX_LANES:
        fitting.add(axis.extent)
    return _knob(stage, axis.name, sorted(fitting) or [widest_legal(axis.extent, lanes)])


def widest_legal(extent: int, lanes: int) -> int:
    """As much of a vector as wastes no more than any candidate may."""
    while not covers_within(extent, lanes, MAX_STAGE_WASTE):
        lanes //= 2
    return lanes


def _results_in_lanes(stage: Stage, lane: Axis, knob: VectorKnob) -> list[Step]:
    """Vectors of results, each from a reduction that runs inside the tile of them."""
    spatial = [axis.name for axis in stage.axes if axis is not lane]
    reduced = [axis.name for axis in stage.reduce_axes]
    split = open_split(stage.name, lane.name, Decision(knob))
    order = ReorderStep(stage.name, (*spatial, f"{lane.name}.0", *reduced, f"{lane.name}.1"))
    return [split, order, VectorizeStep(stage.name, f"{lane.name}.1")]


def _sums_in_lanes(stage: Stage, loop: Loop, options: SpaceOptions) -> list[Step]:
    """A reduction loop in vectors, whose lanes are summed at the end."""
    lanes = options.target.lanes(stage.tensor.dtype)
    widths = [lanes * n for n in (1, 2, 4) if lanes * n <= _extent(stage, loop)]
    if not widths:
        return []
    split = open_split(stage.name, loop.name, Decision(_knob(stage, loop.name, widths)))
    return [split, VectorizeStep(stage.name, f"{loop.name}.1")]


def _only_loop_in_lanes(stage: Stage, loop: Loop, options: SpaceOptions) -> list[Step]:
    """The one loop of a stage cut into vectors, so that threads can share what is outside of them."""
    axis = next((axis for axis, whole in stage.loop_of_axis.items() if whole is loop), None)
    if axis is None:
        return []
    split = open_split(stage.name, loop.name, Decision(lane_knob(stage, axis, options)))
    return [split, VectorizeStep(stage.name, f"{loop.name}.1")]


def _knob(stage: Stage, loop: str, widths: list[int]) -> VectorKnob:
    return VectorKnob(f"{stage.name}.{loop}", widths)


def _extent(stage: Stage, loop: Loop) -> int:
    """How often a loop runs that is a whole axis; a loop over a part of one, which a knob decides, counts as longer."""
    return next((axis.extent for axis, whole in stage.loop_of_axis.items() if whole is loop), 2)
