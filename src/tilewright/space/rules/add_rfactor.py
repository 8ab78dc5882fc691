"""Few results from many elements: partial results, made in parallel or in vector lanes, are added up at the end."""

from __future__ import annotations

import math

from tilewright.schedule import Stage
from tilewright.schedule.steps import ParallelStep, ReorderStep, RFactorStep, SplitStep, VectorizeStep
from tilewright.space.analysis import lane_axis, longer
from tilewright.space.knob import Decision, VectorKnob
from tilewright.space.rules.rule import Rule
from tilewright.space.sketch_state import SketchState, open_split
from tilewright.space.vector_loops import lane_knob, vector_steps
from tilewright.te import Axis

# Fewer results than this for each thread are few.
_MAX_RESULTS_OF_A_THREAD = 16
_PIECES_OF_A_THREAD = 4
_VECTORS_AT_A_TIME = (1, 2, 4)


class AddRfactor(Rule):
    """Partial results in parallel, where only the reduction has work for all cores."""

    name = "add_rfactor"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        if stage.reduction is None or stage.reduction.op.startswith("arg") or stage.packs is not None:
            return False
        num_results = math.prod(axis.extent for axis in stage.axes)
        num_elements = math.prod(axis.extent for axis in stage.reduce_axes)
        few = min(num_elements, _MAX_RESULTS_OF_A_THREAD * state.options.threads)
        return num_elements > 1 and num_results <= few

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        lane = lane_axis(stage, state.options.target)
        if lane is not None:
            return [_partial_columns(state, stage, lane)]
        if len(longer(stage.reduce_axes)) == 1:
            return [_partial_lanes(state, stage)]
        return [_partial_outer(state, stage)]


def _partial_outer(state: SketchState, stage: Stage) -> SketchState:
    """The outermost reduction loop as an axis of partial results, which threads share."""
    over = longer(stage.reduce_axes)[0]
    factored = state.add(RFactorStep(stage.name, over.name))
    partial = factored.newest
    in_lanes = lane_axis(partial, state.options.target)
    in_vectors = vector_steps(factored, partial)
    if in_lanes is not None and in_lanes.name == over.name:  # it runs along memory: threads share its tiles
        factored = factored.add(*in_vectors, ParallelStep(partial.name, f"{over.name}.0"))
    else:
        factored = factored.add(ParallelStep(partial.name, over.name), *in_vectors)
    return factored.add(*vector_steps(factored, factored.stage(stage.name)))


def _partial_lanes(state: SketchState, stage: Stage) -> SketchState:
    """The only reduction loop in vectors of partial results."""
    over = longer(stage.reduce_axes)[0]
    lanes = state.options.target.lanes(stage.tensor.dtype)
    widths = [lanes * n for n in _VECTORS_AT_A_TIME if lanes * n <= over.extent] or [1]
    split = open_split(stage.name, over.name, Decision(VectorKnob(f"{stage.name}.{over.name}", widths)))
    factored = state.add(split, RFactorStep(stage.name, f"{over.name}.1"))
    return factored.add(VectorizeStep(factored.newest.name, f"{over.name}.1"))


def _partial_columns(state: SketchState, stage: Stage, lane: Axis) -> SketchState:
    """Partial results of pieces of the outermost reduction loop, side by side in vectors; threads share the pieces."""
    over, *others = longer(stage.reduce_axes)
    piece = over.name
    if not others:
        num_pieces = _num_pieces(over.extent, state.options.threads)
        state = state.add(SplitStep(stage.name, over.name, (-(-over.extent // num_pieces),)))
        piece = f"{over.name}.0"
    state = state.add(RFactorStep(stage.name, piece))
    partial = state.newest
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
