"""Multi-level tiling of a stage with data reuse: alone, or with its outer levels in the loops of its consumer."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilewright.schedule import Stage, Step
from tilewright.schedule.steps import ComputeAtStep, ReorderStep, UnrollStep, VectorizeStep
from tilewright.space.analysis import longer, reused_axes
from tilewright.space.knob import Decision, TileKnob
from tilewright.space.parallel_loops import on_threads, once_first
from tilewright.space.rules.tile_knobs import reduce_knobs, spatial_knobs, unroll_knob
from tilewright.space.rules.tile_structure import TileStructure, loops_by_level
from tilewright.space.sketch_state import SketchState, open_pragma, open_split
from tilewright.te import DTYPES, Axis

_HEAVY = 2  # an axis is light where what it selects from is smaller by this


def tile_alone(state: SketchState, stage: Stage, structure: TileStructure) -> SketchState:
    """All levels in the stage's own loops."""
    knobs = spatial_knobs(stage, structure.num_spatial, state.options)
    return state.add(*once_first(stage), *tile_steps(stage, structure, knobs, 0))


def tile_fused(state: SketchState, stage: Stage, consumer: Stage, structure: TileStructure, level: int) -> SketchState:
    """The first `level` levels in the loops of the consumer, which takes the stage element by element."""
    knobs = spatial_knobs(stage, structure.num_spatial, state.options)
    axis_of = dict(zip(stage.axes, consumer.axes, strict=True))
    steps = once_first(consumer)
    for axis, knob in knobs.items():
        factors = (Decision(knob, columns) for columns in structure.columns_of_host(level))
        steps.append(open_split(consumer.name, axis_of[axis].name, *factors))
    outer = loops_by_level([axis_of[axis].name for axis in heavy_first(stage, list(knobs))], level + 1)[:level]
    inner = [f"{axis_of[axis].name}.{level}" for axis in knobs]
    steps.append(ReorderStep(consumer.name, (*(loop for loops in outer for loop in loops), *inner)))
    steps += on_threads(consumer.name, outer[0])
    attach = outer[-1][-1] if level > 1 else "@".join(outer[0])
    steps.append(ComputeAtStep(stage.name, consumer.name, attach))
    steps.append(VectorizeStep(consumer.name, inner[-1]))
    return state.add(*steps, *tile_steps(stage, structure, knobs, level), done=(consumer.name,))


def tile_steps(stage: Stage, structure: TileStructure, knobs: Mapping[Axis, TileKnob], level: int) -> list[Step]:
    """Cut, order and annotate the loops of a stage; the first `level` levels of its tiles are loops of a consumer."""
    name = stage.name
    num_own = structure.num_spatial - level
    over, of_reduction = longer(stage.reduce_axes), reduce_knobs(stage, structure.num_reduce)
    steps: list[Step] = []
    if num_own > 1:
        for axis, knob in knobs.items():
            factors = (Decision(knob, (n,)) for n in range(level, structure.num_spatial - 1))
            steps.append(open_split(name, axis.name, *factors))
    for axis, knob in of_reduction.items():
        factors = (Decision(knob, (n,)) for n in range(structure.num_reduce - 1))
        steps.append(open_split(name, axis.name, *factors))
    spatial = loops_by_level([axis.name for axis in heavy_first(stage, list(knobs))], num_own)
    spatial[-1] = loops_by_level([axis.name for axis in knobs], num_own)[-1]
    reduced = loops_by_level([axis.name for axis in over], structure.num_reduce)
    steps.append(ReorderStep(name, structure.order(spatial, reduced)))
    if not level:
        steps += on_threads(name, spatial[0])
    steps += [UnrollStep(name, loop) for loop in spatial[-1][:-1]]
    steps.append(VectorizeStep(name, spatial[-1][-1]))
    steps.append(open_pragma(name, reduced[0][-1], Decision(unroll_knob(stage))))
    return steps


def heavy_first(stage: Stage, axes: list[Axis]) -> list[Axis]:
    """The axes in the order of the outer loops: first those that select from the larger operands.

    What the outermost loop selects from is read once, and by one thread only; the rest is read again for each of its
    iterations.
    """
    bytes_of = dict.fromkeys(axes, 0)
    for read in stage.reads:
        reused = reused_axes(stage, read)
        for axis in axes:
            if axis not in reused:
                bytes_of[axis] += math.prod(read.tensor.shape) * DTYPES[read.tensor.dtype].bytes
    most = max(bytes_of.values(), default=0)
    return sorted(axes, key=lambda axis: bytes_of[axis] * _HEAVY < most)
