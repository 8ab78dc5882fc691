"""Multi-level tiling on CPU: the structure S S R S R S, for one stage alone or fused into its consumer.

Spatial loops are cut into four levels and reduction loops into two. The innermost spatial level is the register tile:
its last axis in vector lanes, the others unrolled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.schedule import Loop, Stage, Step
from tilewright.schedule.steps import ComputeAtStep, ReorderStep, SplitStep, UnrollStep, VectorizeStep
from tilewright.space.analysis import elementwise_consumer, longer, reused_axes
from tilewright.space.annotation import on_threads, once_first
from tilewright.space.builder import SketchState, open_pragma, open_split
from tilewright.space.knob import Decision, TileKnob, UnrollKnob
from tilewright.space.tile_tables import divisors, exact_tilings, tilings
from tilewright.te import DTYPES, Axis

_HEAVY = 2  # an axis is light where what it selects from is smaller by this
UNROLL_STEPS = (0, 16, 64)
# Which columns of a tiling, the extents of its three inner levels, make the consumer's loops, by the level of fusion.
_HOST_LEVELS: dict[int, tuple[tuple[int, ...], ...]] = {1: ((0, 1, 2),), 2: ((0,), (1, 2))}
_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)


def spatial_knobs(state: SketchState, stage: Stage) -> dict[Axis, TileKnob]:
    """The tiling of each spatial axis longer than one: the extents of its three inner levels."""
    lanes = state.options.target.lanes(stage.tensor.dtype)
    axes = longer(stage.axes)
    row_axis = _row_axis(stage, axes)
    knobs: dict[Axis, TileKnob] = {}
    for axis in axes:
        if axis is axes[-1]:
            sizes: tuple[int, ...] = tuple(n * lanes for n in (1, 2, 3, 4) if n * lanes <= axis.extent)
            sizes = sizes or (axis.extent,)
        elif axis is row_axis:
            sizes = _ROWS
        else:
            sizes = (1, 2, axis.extent) if axis.extent <= 4 else (1, 2)
        table = tilings(axis.extent, 3, sizes, state.options.max_waste)
        if not len(table):
            table = tilings(axis.extent, 3, (d for d in divisors(axis.extent) if d <= max(sizes)))
        knobs[axis] = TileKnob(f"{stage.name}.{axis.name}", table)
    return knobs


def _row_axis(stage: Stage, axes: list[Axis]) -> Axis | None:
    """The axis of the register tile's rows: the last one along which a vector of an operand serves again."""
    if len(axes) < 2:
        return None
    lane = axes[-1]
    served = [reused for reused in (reused_axes(stage, read) for read in stage.reads) if lane not in reused]
    rows = [axis for axis in axes[:-1] if any(axis in reused for reused in served)]
    return rows[-1] if rows else axes[-2]


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


def reduce_knobs(stage: Stage) -> dict[Axis, TileKnob]:
    """The tiling of each reduction axis longer than one: the extent of its inner level."""
    knobs: dict[Axis, TileKnob] = {}
    for axis in longer(stage.reduce_axes):
        knobs[axis] = TileKnob(f"{stage.name}.{axis.name}", exact_tilings(axis.extent, 1))
    return knobs


def unroll_knob(stage: Stage) -> UnrollKnob:
    return UnrollKnob(f"{stage.name}.unroll", UNROLL_STEPS)


def tile_alone(state: SketchState, name: str) -> SketchState:
    """S S R S R S of one stage that nothing is fused with."""
    stage = state.stage(name)
    spatial, reduce = spatial_knobs(state, stage), reduce_knobs(stage)
    steps = once_first(stage)
    for axis, knob in spatial.items():
        steps.append(open_split(name, axis.name, *(Decision(knob, (n,)) for n in range(3))))
    for axis, knob in reduce.items():
        steps.append(open_split(name, axis.name, Decision(knob, (0,))))
    outer = heavy_first(stage, list(spatial))
    level = [[f"{axis.name}.{n}" for axis in outer] for n in range(3)]
    level.append([f"{axis.name}.3" for axis in spatial])
    outer_r, inner_r = ([f"{axis.name}.{n}" for axis in reduce] for n in range(2))
    steps.append(ReorderStep(name, (*level[0], *level[1], *outer_r, *level[2], *inner_r, *level[3])))
    steps += on_threads(name, level[0])
    steps += _register_tile(name, level[3])
    if outer_r:
        steps.append(open_pragma(name, outer_r[-1], Decision(unroll_knob(stage), (0,))))
    return state.add(*steps)


def tile_fused(state: SketchState, name: str, consumer: str, at_level: int) -> SketchState:
    """S S R S R S with the two (or one) outer spatial levels in the consumer's loops."""
    stage, host = state.stage(name), state.stage(consumer)
    spatial = spatial_knobs(state, stage)
    host_axes = dict(zip(stage.axes, host.axes, strict=True))
    steps = once_first(host)
    for axis, knob in spatial.items():
        factors = tuple(Decision(knob, columns) for columns in _HOST_LEVELS[at_level])
        steps.append(open_split(consumer, host_axes[axis].name, *factors))
    outer = heavy_first(stage, list(spatial))
    levels = [[f"{host_axes[axis].name}.{n}" for axis in outer] for n in range(at_level)]
    levels.append([f"{host_axes[axis].name}.{at_level}" for axis in spatial])
    steps.append(ReorderStep(consumer, tuple(loop for level in levels for loop in level)))
    steps += on_threads(consumer, levels[0])
    attach = levels[at_level - 1][-1] if at_level > 1 else "@".join(levels[0])
    steps.append(ComputeAtStep(name, consumer, attach))
    steps.append(VectorizeStep(consumer, levels[at_level][-1]))
    steps += _inside_of_tile(stage, spatial, at_level)
    return state.add(*steps, done=(consumer,))


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of a consumer that one of its producers was fused into: others of its shape can join."""

    loop: Loop
    at_level: int
    knobs: dict[Axis, TileKnob]


def tiles_of_consumer(state: SketchState, stage: Stage) -> Tiles | None:
    """The tiles that a stage of the same shape was fused into with `tile_fused`; None where there are none."""
    host = elementwise_consumer(state.schedule, stage)
    if host is None or stage.leaves != stage.root_loops:
        return None
    loop = next((loop for loop in host.leaves if state.schedule.attached_at(loop)), None)
    host_splits = [step for step in state.steps if isinstance(step, SplitStep) and step.stage == host.name]
    splits = {step.loop: step.factors for step in host_splits}
    knobs: dict[Axis, TileKnob] = {}
    levels: set[int | None] = set()
    for own, axis in zip(stage.axes, host.axes, strict=True):
        if axis.extent > 1:
            choices = [factor for factor in splits.get(axis.name, ()) if isinstance(factor, Decision)]
            columns = tuple(choice.columns for choice in choices)
            levels.add(next((level for level, known in _HOST_LEVELS.items() if known == columns), None))
            knobs.update((own, choice.knob) for choice in choices if isinstance(choice.knob, TileKnob))
    at_level = levels.pop() if len(levels) == 1 else None
    return None if loop is None or at_level is None else Tiles(loop, at_level, knobs)


def tile_joined(state: SketchState, name: str, tiles: Tiles) -> SketchState:
    """S S R S R S in tiles that the consumer has already, of the same sizes down to the register tile."""
    attach = ComputeAtStep(name, tiles.loop.stage.name, tiles.loop.name)
    return state.add(attach, *_inside_of_tile(state.stage(name), tiles.knobs, tiles.at_level))


def _inside_of_tile(stage: Stage, spatial: dict[Axis, TileKnob], at_level: int) -> list[Step]:
    """The levels of a stage that the consumer's loops do not have."""
    name, reduce = stage.name, reduce_knobs(stage)
    num_levels = 4 - at_level
    steps: list[Step] = []
    for axis, knob in spatial.items():
        steps.append(open_split(name, axis.name, *(Decision(knob, (n,)) for n in range(at_level, 3))))
    for axis, knob in reduce.items():
        steps.append(open_split(name, axis.name, Decision(knob, (0,))))
    outer = heavy_first(stage, list(spatial))
    parts = [[f"{axis.name}.{n}" for axis in outer] for n in range(num_levels - 1)]
    parts.append([f"{axis.name}.{num_levels - 1}" for axis in spatial])
    outer_r, inner_r = ([f"{axis.name}.{n}" for axis in reduce] for n in range(2))
    before = parts[0] if num_levels == 3 else []
    steps.append(ReorderStep(name, (*before, *outer_r, *parts[-2], *inner_r, *parts[-1])))
    steps += _register_tile(name, parts[-1])
    if outer_r:
        steps.append(open_pragma(name, outer_r[-1], Decision(unroll_knob(stage), (0,))))
    return steps


def _register_tile(name: str, loops: list[str]) -> list[Step]:
    return [*(UnrollStep(name, loop) for loop in loops[:-1]), VectorizeStep(name, loops[-1])]
