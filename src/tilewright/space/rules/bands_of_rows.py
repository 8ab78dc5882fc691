"""Attention: two products with a softmax between them, a band of rows at a time.

The scores of a band stay in the cache, from the product that computes them to the one that reads them; all of them are
never in memory. Since whole rows are there at once, the softmax is the plain one: first the largest of a row, then its
powers and their sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.schedule import Stage, Step
from tilewright.schedule.steps import ComputeAtStep, ComputeInlineStep, ReorderStep, UnrollStep, VectorizeStep
from tilewright.space.analysis import (
    elementwise_consumer,
    has_data_reuse,
    is_strictly_inlinable,
    is_untouched,
    longer,
    row_axis,
)
from tilewright.space.knob import Decision, TileKnob
from tilewright.space.options import SpaceOptions
from tilewright.space.parallel_loops import on_threads
from tilewright.space.rules.packing import packable
from tilewright.space.rules.rule import Rule
from tilewright.space.rules.tile_knobs import unroll_knob
from tilewright.space.sketch_state import SketchState, open_pragma, open_split
from tilewright.space.vector_loops import lane_knob, vector_steps
from tilewright.space.waste import MAX_AXIS_WASTE, covers_within
from tilewright.te import Axis, memory_step

_ROWS_IN_A_BAND = (8, 16, 24, 32, 48, 64, 96, 128)
_ROWS_IN_A_TILE = (6, 8)
_ROWS_IN_REGISTERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
# With so many pieces of work for each thread, one piece more or less does not matter.
_PIECES_PER_THREAD = 4


class BandsOfRows(Rule):
    """The last product of attention in bands of its rows, and all that comes before it inside a band."""

    name = "bands_of_rows"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return _attention(state, stage) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        found = _attention(state, stage)
        assert found is not None, "it matches"
        return [_in_bands(state, found)]


@dataclass(frozen=True, slots=True)
class _Attention:
    """The last of the `products` sums up rows with weights from the one before, if that is not somewhere else.

    The host, which takes these sums, runs over `outer` axes, such as heads, the `rows`, and `inner` axes, along which
    no weight changes.
    """

    host: Stage
    products: tuple[str, ...]
    outer: tuple[Axis, ...]
    rows: Axis
    inner: tuple[Axis, ...]


def _attention(state: SketchState, host: Stage) -> _Attention | None:
    schedule = state.schedule
    if host.is_placeholder or host.reduction is not None or not host.is_output or not is_untouched(host):
        return None
    computed = [stage for stage in schedule.active_stages if not stage.is_placeholder and stage is not host]
    products = [stage for stage in computed if has_data_reuse(stage)]
    reduces_rows = any(stage.reduction is not None and stage not in products for stage in computed)
    if len(products) not in (1, 2) or not reduces_rows:
        return None
    product = products[-1]
    is_plain = all(is_untouched(stage) and not stage.is_output for stage in computed)
    if not is_plain or elementwise_consumer(schedule, product) is not host:
        return None
    reads = [read for read in product.reads if not schedule[read.tensor.name].is_placeholder]
    if len(reads) != 1 or schedule[reads[0].tensor.name].reduction is not None:
        return None
    rows, *_, lane = row_axis(product), *longer(product.axes)
    if rows not in reads[0].indices or lane in reads[0].indices or rows is lane:
        return None
    of_host = dict(zip(product.axes, host.axes, strict=True))
    outer = tuple(of_host[axis] for axis in product.axes if axis in reads[0].indices and axis is not rows)
    inner = tuple(of_host[axis] for axis in product.axes if axis not in reads[0].indices)
    return _Attention(host, tuple(stage.name for stage in products), outer, of_host[rows], inner)


def _in_bands(state: SketchState, found: _Attention) -> SketchState:
    host, rows = found.host, found.rows
    bands = _band_sizes(rows.extent, state.options)
    names = [axis.name for axis in (*found.outer, *found.inner)]
    place = len(found.outer)
    order = (*names[:place], f"{rows.name}.0", f"{rows.name}.1", *names[place:])
    state = state.add(
        open_split(host.name, rows.name, Decision(TileKnob(f"{host.name}.{rows.name}", bands))),
        ReorderStep(host.name, order),
        VectorizeStep(host.name, order[-1]),
    )
    state, pieces, band = _on_threads(state, found)
    registers = [size for size in _ROWS_IN_REGISTERS if any(_fits(size, band_size) for band_size in bands)]
    before = [stage.name for stage in reversed(state.schedule.active_stages) if not stage.is_placeholder]
    for name in before:
        stage = state.stage(name)
        if stage.is_inlined or name == host.name:
            continue
        if is_strictly_inlinable(stage):
            state = state.add(ComputeInlineStep(name))
            continue
        state = state.add(ComputeAtStep(name, host.name, band))
        stage = state.stage(name)
        if has_data_reuse(stage):
            state = state.add(*_register_tiles(stage, registers, state.options))
        else:
            state = state.add(*vector_steps(state, stage))
    state = _with_panels(state, found, None if pieces == band else pieces)
    return state.add(done=before)


def _band_sizes(extent: int, options: SpaceOptions) -> list[int]:
    """Bands as even as can be, and some rows more where that makes whole register tiles of them."""
    even = {-(-extent // -(-extent // size)) for size in _ROWS_IN_A_BAND}
    sizes = {-(-size // rows) * rows for size in even for rows in (1, *_ROWS_IN_A_TILE)}
    return sorted(size for size in sizes if _fits(size, extent, options.max_waste)) or [extent]


def _fits(size: int, extent: int, max_waste: float = MAX_AXIS_WASTE) -> bool:
    return size <= extent and covers_within(extent, size, max_waste)


def _on_threads(state: SketchState, found: _Attention) -> tuple[SketchState, str, str]:
    """The outer axes on threads, with the bands where those are too few; the loops over pieces of work, and bands."""
    num_pieces = math.prod(axis.extent for axis in found.outer)
    threads = state.options.threads
    outer = [axis.name for axis in found.outer]
    band = f"{found.rows.name}.0"
    if num_pieces >= _PIECES_PER_THREAD * threads or (num_pieces > 1 and num_pieces % threads == 0):
        return state.add(*on_threads(found.host.name, outer)), "@".join(outer), band
    pieces = "@".join((*outer, band))
    return state.add(*on_threads(found.host.name, [*outer, band])), pieces, pieces


def _register_tiles(stage: Stage, sizes: list[int], options: SpaceOptions) -> list[Step]:
    """Tiles of rows and vectors, in which the whole reduction runs."""
    rows, lane = row_axis(stage), longer(stage.axes)[-1]
    assert rows is not None, "there is data reuse"
    name = stage.name
    others = [axis.name for axis in stage.axes if axis not in (rows, lane)]
    over = [axis.name for axis in stage.reduce_axes]
    return [
        open_split(name, rows.name, Decision(TileKnob(f"{name}.{rows.name}", sizes))),
        open_split(name, lane.name, Decision(lane_knob(stage, lane, options))),
        ReorderStep(name, (*others, f"{lane.name}.0", f"{rows.name}.0", *over, f"{rows.name}.1", f"{lane.name}.1")),
        UnrollStep(name, f"{rows.name}.1"),
        VectorizeStep(name, f"{lane.name}.1"),
        open_pragma(name, over[-1], Decision(unroll_knob(stage))),
    ]


def _with_panels(state: SketchState, found: _Attention, pieces: str | None) -> SketchState:
    """Operands that do not lie along the lanes, packed: once for each piece of work, or for each column of tiles.

    Constants are packed ahead of time.
    """
    for name in found.products:
        state = state.add(*packable(state.stage(name), ahead_of_time=True))
        stage = state.stage(name)
        lane = longer(stage.axes)[-1]
        along = {read.tensor.name for read in stage.reads if memory_step(read, lane) == 1}
        for step in packable(stage, ahead_of_time=False):
            if step.stage in along:
                continue
            state = state.add(step)
            panel = state.newest
            host, loop = (name, f"{lane.name}.0") if pieces is None else (found.host.name, pieces)
            state = state.add(ComputeAtStep(panel.name, host, loop), VectorizeStep(panel.name, panel.leaves[-1].name))
    return state
