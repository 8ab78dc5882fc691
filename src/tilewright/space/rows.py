"""Stages without data reuse: computed row by row inside their consumer, or as partial results in parallel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.schedule import Loop, Split, Stage, Step
from tilewright.schedule.steps import ComputeAtStep, FuseStep, ParallelStep, RFactorStep, VectorizeStep
from tilewright.space.analysis import lane_axis, longer
from tilewright.space.annotation import vector_steps
from tilewright.space.builder import SketchState, open_split
from tilewright.space.columns import column_partials
from tilewright.space.knob import Decision, TileKnob, VectorKnob
from tilewright.te import Axis, Expr

_ROWS_IN_A_BLOCK = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Rows:
    """Where a stage is computed row by row: `host` runs over the rows with its first `num_axes` axes.

    `loop` is the host's loop over rows, once it has been made.
    """

    host: Stage
    num_axes: int
    loop: Loop | None


def rows_of(state: SketchState, stage: Stage) -> Rows | None:
    """The rows in which all consumers read this stage, each at its own; None where there are none."""
    if stage.is_output or stage.is_placeholder or stage.is_inlined or not stage.axes:
        return None
    hosts: set[Stage] = set()
    common = len(stage.axes)
    for consumer in state.schedule.consumers(stage):
        if consumer.reduction is not None and consumer.attach_loop is None:
            return None
        hosts.add(consumer.attach_loop.stage if consumer.attach_loop is not None else consumer)
        for read in consumer.reads:
            if read.tensor is stage.tensor:
                common = min(common, _common_prefix(read.indices, consumer.axes))
    if len(hosts) != 1:
        return None
    host = hosts.pop()
    if stage.reduction is None:  # of a stage without a reduction, a row has to be more than one element
        common = min(common, len(host.axes) - 1)
    lane = lane_axis(stage, state.options.target)
    if lane is not None:  # whose vectors are within a row
        common = min(common, stage.axes.index(lane))
    return _rows(state, host, common) if common else None


def _common_prefix(indices: Sequence[Expr], axes: Sequence[Axis]) -> int:
    length = 0
    for index, axis in zip(indices, axes, strict=False):
        if index is not axis:
            break
        length += 1
    return length


def _rows(state: SketchState, host: Stage, common: int) -> Rows | None:
    if host.reduction is not None or host.packed_by:
        return None
    made = next((loop for loop in host.leaves if state.schedule.attached_at(loop)), None)
    if made is None:
        is_plain = host.leaves == host.root_loops and math.prod(axis.extent for axis in host.axes[:common]) > 1
        return Rows(host, common, None) if is_plain else None
    blocks = [r for r in host.relations if isinstance(r, Split) and (r.outer, r.inner) == (host.leaves[0], made)]
    if not blocks:  # the loops of a tiled stage
        return None
    outer = {host.leaves[0], made}
    num_axes = sum(outer.issuperset(host.leaves_of(host.loop_of_axis[axis])) for axis in host.axes)
    return Rows(host, num_axes, made) if num_axes <= common else None


def fuse_rows(state: SketchState, name: str) -> SketchState:
    """Compute the stage inside the host's loop over rows; the first stage makes that loop, in blocks of rows."""
    rows = rows_of(state, state.stage(name))
    assert rows is not None
    host, loop = rows.host, rows.loop
    if loop is None:
        state, row = _make_row_loop(state, host, rows.num_axes)
    else:
        row = loop.name
    state = state.add(ComputeAtStep(name, host.name, row))
    return state.add(*vector_steps(state, state.stage(name)))


def _make_row_loop(state: SketchState, host: Stage, num_axes: int) -> tuple[SketchState, str]:
    names = tuple(axis.name for axis in host.axes[:num_axes])
    num_rows = math.prod(axis.extent for axis in host.axes[:num_axes])
    sizes = [size for size in _ROWS_IN_A_BLOCK if size == 1 or size * state.options.threads <= num_rows]
    knob = TileKnob(f"{host.name}.rows", sizes)
    fused = "@".join(names)
    steps: list[Step] = [FuseStep(host.name, names)] if num_axes > 1 else []
    state = state.add(*steps, open_split(host.name, fused, Decision(knob)))
    return state, f"{fused}.1"


def parallel_partials(state: SketchState, name: str) -> SketchState:
    """The outermost reduction loop as an axis of partial results, shared among threads."""
    stage = state.stage(name)
    lane = lane_axis(stage, state.options.target)
    if lane is not None:
        return column_partials(state, name, lane)
    over, *others = longer(stage.reduce_axes)
    if not others:
        return _partials_of_one_axis(state, stage, over)
    factored = state.add(RFactorStep(name, over.name))
    partial = factored.stage(f"{name}.rf")
    in_lanes = lane_axis(partial, state.options.target)
    in_vectors = vector_steps(factored, partial)
    if in_lanes is not None and in_lanes.name == over.name:  # it runs along memory: threads share its tiles
        factored = factored.add(*in_vectors, ParallelStep(partial.name, f"{over.name}.0"))
    else:
        factored = factored.add(ParallelStep(partial.name, over.name), *in_vectors)
    return factored.add(*vector_steps(factored, factored.stage(name)))


def _partials_of_one_axis(state: SketchState, stage: Stage, over: Axis) -> SketchState:
    lanes = state.options.target.lanes(stage.tensor.dtype)
    loop = over.name
    widths = [w for w in (lanes, 2 * lanes, 4 * lanes) if w <= over.extent] or [1]
    knob = VectorKnob(f"{stage.name}.{loop}", widths)
    split = open_split(stage.name, loop, Decision(knob))
    factored = state.add(split, RFactorStep(stage.name, f"{loop}.1"))
    partial = factored.stage(f"{stage.name}.rf")
    return factored.add(VectorizeStep(partial.name, f"{loop}.1"))
