"""Sums of products whose results do not fill a vector along their last axis, such as three colours of an image.

The lanes of their vectors run along the reduction: each is a sum of its own until the end, when they are added up.
"""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.schedule.steps import ComputeAtStep, ReorderStep, RFactorStep, SplitStep, UnrollStep, VectorizeStep
from tilewright.space.analysis import fusible_consumer, has_data_reuse, longer
from tilewright.space.knob import Decision, TileKnob
from tilewright.space.parallel_loops import on_threads, once_first
from tilewright.space.rules.packing import pack_variants
from tilewright.space.rules.rule import Rule
from tilewright.space.sketch_state import SketchState, open_split
from tilewright.space.tile_tables import divisors
from tilewright.te import Axis, Read, memory_step

_MAX_ROWS = 8


class SumsInLanes(Rule):
    """A stage with data reuse whose last axis does not fill half a vector: vectors run along the reduction."""

    name = "sums_in_lanes"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return _summed_axis(state, stage) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        over = _summed_axis(state, stage)
        assert over is not None, "it matches"
        tiled = _tiled(state, stage, over)
        return pack_variants(tiled, tiled.newest.name)


def _summed_axis(state: SketchState, stage: Stage) -> Axis | None:
    """The reduction axis for the lanes: operands lie side by side along it, or can be packed so ahead of time."""
    if not has_data_reuse(stage) or stage.reduction is None or stage.leaves != stage.root_loops:
        return None
    spatial = longer(stage.axes)
    lanes = state.options.target.lanes(stage.tensor.dtype)
    if stage.reduction.op != "sum" or len(spatial) < 2 or 2 * spatial[-1].extent >= lanes:
        return None
    for axis in reversed(stage.reduce_axes):
        steps = [memory_step(read, axis) for read in stage.reads if not _is_constant(state, read)]
        if axis.extent % lanes == 0 and 1 in steps and all(step in (0, 1) for step in steps):
            return axis
    return None


def _is_constant(state: SketchState, read: Read) -> bool:
    source = state.stage(read.tensor.name)
    return source.is_placeholder and source.tensor.is_constant


def _tiled(state: SketchState, stage: Stage, over: Axis) -> SketchState:
    """Tiles of some rows by the whole last axis, each result a vector of partial sums along `over`."""
    name, lanes = stage.name, state.options.target.lanes(stage.tensor.dtype)
    consumer = fusible_consumer(state.schedule, stage)
    host = consumer or stage
    *outer, rows, last = longer(host.axes)
    sizes = [size for size in divisors(rows.extent) if size <= _MAX_ROWS]
    knob = TileKnob(f"{name}.{rows.name}", sizes)
    in_lanes = f"{over.name}.1"
    state = state.add(
        SplitStep(name, over.name, (lanes,)),
        RFactorStep(name, in_lanes),
        *once_first(host),
        open_split(host.name, rows.name, Decision(knob)),
        *on_threads(host.name, [axis.name for axis in outer] or [f"{rows.name}.0"]),
        UnrollStep(host.name, f"{rows.name}.1"),
    )
    tile = f"{rows.name}.0"
    if consumer is None:
        state = state.add(UnrollStep(name, last.name), VectorizeStep(name, in_lanes))
    else:
        state = state.add(VectorizeStep(host.name, last.name), ComputeAtStep(name, host.name, tile))
        state = _register_tile(state, name, in_lanes)
    partial = state.newest.name
    return _register_tile(state.add(ComputeAtStep(partial, host.name, tile)), partial, in_lanes)


def _register_tile(state: SketchState, name: str, in_lanes: str) -> SketchState:
    """The results of a tile unrolled inside the rest of the reduction, in vectors of partial sums."""
    stage = state.stage(name)
    spatial = [loop.name for loop in stage.leaves if not loop.is_reduce and loop.name != in_lanes]
    reduced = [loop.name for loop in stage.leaves if loop.is_reduce and loop.name != in_lanes]
    return state.add(
        ReorderStep(name, (*reduced, *spatial, in_lanes)),
        *(UnrollStep(name, loop) for loop in spatial),
        VectorizeStep(name, in_lanes),
    )
