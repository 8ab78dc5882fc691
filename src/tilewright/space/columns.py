"""Reductions along other axes than the one that memory runs along, such as means over the places of an image.

Their vectors are results side by side: columns, each with its own sum.
"""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.schedule.steps import ComputeAtStep, ParallelStep, ReorderStep, RFactorStep, SplitStep, VectorizeStep
from tilewright.space.analysis import fusible_consumer, has_data_reuse, lane_axis, longer
from tilewright.space.annotation import lane_knob, parallel_steps
from tilewright.space.builder import SketchState, open_split
from tilewright.space.knob import Decision
from tilewright.te import Axis

_PIECES_OF_A_THREAD = 4


def columns_host(state: SketchState, stage: Stage) -> Stage | None:
    """The stage that takes the columns as they are made, if its loops are as they were."""
    lane = lane_axis(stage, state.options.target)
    if lane is None or has_data_reuse(stage) or stage.leaves != stage.root_loops:
        return None
    return fusible_consumer(state.schedule, stage)


def fuse_columns(state: SketchState, name: str) -> SketchState:
    """A tile of columns at a time, computed inside the consumer's loop over such tiles."""
    stage = state.stage(name)
    host, lane = columns_host(state, stage), lane_axis(stage, state.options.target)
    assert host is not None
    assert lane is not None
    over = host.axes[stage.axes.index(lane)]
    others = [axis.name for axis in host.axes if axis is not over]
    state = state.add(
        open_split(host.name, over.name, Decision(lane_knob(stage, lane, state.options))),
        ReorderStep(host.name, (*others, f"{over.name}.0", f"{over.name}.1")),
        VectorizeStep(host.name, f"{over.name}.1"),
    )
    state = state.add(*parallel_steps(state, state.stage(host.name)))
    tiles = state.stage(host.name).leaves[-2]  # alone, or with others on threads
    return state.add(
        ComputeAtStep(name, host.name, tiles.name),
        ReorderStep(name, _with_lane_last(stage, lane)),
        VectorizeStep(name, lane.name),
    )


def _with_lane_last(stage: Stage, lane: Axis) -> tuple[str, ...]:
    return (*(loop.name for loop in stage.leaves if loop.name != lane.name), lane.name)


def column_partials(state: SketchState, name: str, lane: Axis) -> SketchState:
    """Partial results of pieces of the outermost reduction loop, the pieces shared among threads."""
    stage = state.stage(name)
    reduced_axes = longer(stage.reduce_axes)
    over = reduced_axes[0]
    piece = over.name
    if len(reduced_axes) == 1:
        num_pieces = _num_pieces(over.extent, state.options.threads)
        state = state.add(SplitStep(name, over.name, (-(-over.extent // num_pieces),)))
        piece = f"{over.name}.0"
    state = state.add(RFactorStep(name, piece))
    partial = state.stage(f"{name}.rf")
    knob = lane_knob(partial, partial.axes[stage.axes.index(lane)], state.options)
    spatial = [axis.name for axis in stage.axes if axis is not lane]
    reduced = [loop.name for loop in partial.leaves if loop.is_reduce]
    return state.add(
        open_split(partial.name, lane.name, Decision(knob)),
        ReorderStep(partial.name, (piece, *spatial, f"{lane.name}.0", *reduced, f"{lane.name}.1")),
        ParallelStep(partial.name, piece),
        VectorizeStep(partial.name, f"{lane.name}.1"),
    )


def _num_pieces(extent: int, threads: int) -> int:
    """Some pieces for each thread, of one size if possible."""
    wanted = _PIECES_OF_A_THREAD * threads
    near = (*range(wanted, 2 * wanted), *range(wanted - 1, threads - 1, -1))
    return next((n for n in near if extent % n == 0), min(wanted, extent))
