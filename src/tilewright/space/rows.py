"""Stages without data reuse: computed row by row inside their consumer, or as partial results in parallel."""

from __future__ import annotations

import numpy as np

from tilewright.schedule import Stage, Step
from tilewright.schedule.steps import ComputeAtStep, ParallelStep, RFactorStep, VectorizeStep
from tilewright.space.builder import SketchState, open_split
from tilewright.space.knob import VECTOR, Choice, Knob
from tilewright.te import Axis


def row_host(state: SketchState, stage: Stage) -> Stage | None:
    """The stage whose outermost loop all consumers run in, each reading this stage at its own row."""
    if stage.is_output or stage.is_placeholder or stage.is_inlined or not stage.axes:
        return None
    hosts: set[Stage] = set()
    for consumer in state.schedule.consumers(stage):
        if not consumer.axes or (consumer.reduction is not None and consumer.attach_loop is None):
            return None
        for read in consumer.reads:
            if read.tensor is stage.tensor and read.indices[0] is not consumer.axes[0]:
                return None
        hosts.add(consumer.attach_loop.stage if consumer.attach_loop is not None else consumer)
    if len(hosts) != 1:
        return None
    host = hosts.pop()
    is_plain = host.axes[0].extent > 1 and host.reduction is None and host.leaves[0] is host.loop_of_axis[host.axes[0]]
    return host if is_plain and not host.packed_by else None


def fuse_rows(state: SketchState, name: str) -> SketchState:
    stage = state.stage(name)
    host = row_host(state, stage)
    assert host is not None
    return state.add(ComputeAtStep(name, host.name, host.leaves[0].name), *vector_steps(state, stage))


def vector_steps(state: SketchState, stage: Stage) -> list[Step]:
    """The innermost loop in vectors; a reduction in several at a time, so that their latencies overlap."""
    loops = [loop for loop in stage.leaves if _extent(stage, loop.name) > 1]
    if not loops:
        return []
    last = loops[-1]
    if not last.is_reduce:
        return [VectorizeStep(stage.name, last.name)] if len(loops) > 1 else []
    lanes = state.options.target.lanes(stage.tensor.dtype)
    widths = [lanes * n for n in (1, 2, 4) if lanes * n <= _extent(stage, last.name)]
    if not widths:
        return []
    knob = Knob(f"{stage.name}.{last.name}", VECTOR, np.asarray(widths, np.int64)[:, None])
    split = open_split(stage.name, last.name, Choice(knob, (0,)))
    return [split, VectorizeStep(stage.name, f"{last.name}.1")]


def _extent(stage: Stage, name: str) -> int:
    axis: Axis = next(axis for axis, loop in stage.loop_of_axis.items() if loop.name == name)
    return axis.extent


def parallel_partials(state: SketchState, name: str) -> SketchState:
    """The outermost reduction loop as an axis of partial results, shared among threads."""
    stage = state.stage(name)
    loop = next(leaf for leaf in stage.leaves if leaf.is_reduce)
    if len(stage.reduce_axes) == 1:
        return _partials_of_one_axis(state, stage, loop.name)
    factored = state.add(RFactorStep(name, loop.name))
    partial = factored.stage(f"{name}.rf")
    factored = factored.add(ParallelStep(partial.name, partial.leaves[len(stage.axes)].name))
    factored = factored.add(*vector_steps(factored, factored.stage(partial.name)))
    return factored.add(*vector_steps(factored, factored.stage(name)))


def _partials_of_one_axis(state: SketchState, stage: Stage, loop: str) -> SketchState:
    lanes = state.options.target.lanes(stage.tensor.dtype)
    extent = stage.reduce_axes[0].extent
    widths = [w for w in (lanes, 2 * lanes, 4 * lanes) if w <= extent] or [1]
    knob = Knob(f"{stage.name}.{loop}", VECTOR, np.asarray(widths, np.int64)[:, None])
    split = open_split(stage.name, loop, Choice(knob, (0,)))
    factored = state.add(split, RFactorStep(stage.name, f"{loop}.1"))
    partial = factored.stage(f"{stage.name}.rf")
    return factored.add(VectorizeStep(partial.name, f"{loop}.1"))
