"""The knobs of a tiled stage: the tiling of each of its axes, and how far its loops are unrolled."""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.space.analysis import longer, row_axis
from tilewright.space.knob import TileKnob, UnrollKnob
from tilewright.space.options import SpaceOptions
from tilewright.space.tile_tables import divisors, exact_tilings, tilings
from tilewright.te import Axis

_UNROLL_STEPS = (0, 16, 64)
# How long the axes of a register tile are: in vectors of the last, in rows, and of any other that is short.
_VECTORS = (1, 2, 3, 4)
_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
_SHORT = 4


def spatial_knobs(stage: Stage, num_levels: int, options: SpaceOptions) -> dict[Axis, TileKnob]:
    """The tiling of each spatial axis longer than one into so many levels; the innermost is the register tile."""
    knobs: dict[Axis, TileKnob] = {}
    for axis, sizes in _register_tile_sizes(stage, options).items():
        table = tilings(axis.extent, num_levels - 1, sizes, options.max_waste)
        if not len(table):
            dividing = [size for size in divisors(axis.extent) if size <= max(sizes)]
            table = tilings(axis.extent, num_levels - 1, dividing)
        knobs[axis] = TileKnob(f"{stage.name}.{axis.name}", table)
    return knobs


def _register_tile_sizes(stage: Stage, options: SpaceOptions) -> dict[Axis, tuple[int, ...]]:
    """What the innermost tile may be along each axis."""
    *others, last = longer(stage.axes)
    rows = row_axis(stage)
    sizes: dict[Axis, tuple[int, ...]] = {}
    for axis in others:
        few = (1, 2, axis.extent) if axis.extent <= _SHORT else (1, 2)
        sizes[axis] = _ROWS if axis is rows else few
    lanes = options.target.lanes(stage.tensor.dtype)
    sizes[last] = tuple(n * lanes for n in _VECTORS if n * lanes <= last.extent) or (last.extent,)
    return sizes


def reduce_knobs(stage: Stage, num_levels: int) -> dict[Axis, TileKnob]:
    """The tiling of each reduction axis longer than one into so many levels; none where there is only one."""
    if num_levels == 1:
        return {}
    return {
        axis: TileKnob(f"{stage.name}.{axis.name}", exact_tilings(axis.extent, num_levels - 1))
        for axis in longer(stage.reduce_axes)
    }


def unroll_knob(stage: Stage) -> UnrollKnob:
    return UnrollKnob(f"{stage.name}.unroll", _UNROLL_STEPS)
