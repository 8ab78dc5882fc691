"""Winograd's convolution by bands of tiles: what lies between its transforms and its products stays near the core."""

from __future__ import annotations

import math

from tilewright.schedule import Stage
from tilewright.schedule.steps import ComputeAtStep, ComputeInlineStep, ReorderStep, UnrollStep, VectorizeStep
from tilewright.space.analysis import choice_of, has_data_reuse, is_padding, is_untouched, longer, reused_axes, row_axis
from tilewright.space.knob import Decision, TileKnob
from tilewright.space.parallel_loops import on_threads
from tilewright.space.rules.packing import packable
from tilewright.space.rules.rule import Rule
from tilewright.space.rules.tile_knobs import spatial_knobs, unroll_knob
from tilewright.space.rules.transform_tiles import only_source, tiles_of, transforms_before, write_out
from tilewright.space.sketch_state import SketchState, open_pragma, open_split
from tilewright.te import DTYPES

# How many rows of tiles are computed at a time.
_BANDS = (1, 2, 4)


class TransformBands(Rule):
    """A band of tiles at a time: its data transformed, multiplied, and the results transformed.

    Only where all of the transformed data together is more than the caches of the cores hold.
    """

    name = "transform_bands"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        if choice_of(stage) is None or not is_untouched(stage) or len(tiles_of(state, stage)) < 2:
            return False
        data = _transformed_data(state, stage)
        target = state.options.target
        return data is not None and _num_bytes(data) > target.l2_bytes * state.options.threads

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        product, data = _product(state, stage), _transformed_data(state, stage)
        assert product is not None, "it matches"
        assert data is not None, "it matches"
        outer = [axis.name for axis in tiles_of(state, stage)]
        over = max(tiles_of(state, stage)[:-1], key=lambda axis: axis.extent)
        knob = TileKnob(f"{stage.name}.{over.name}", [size for size in _BANDS if size <= over.extent])
        before = outer[: outer.index(over.name)]
        parts = [f"{over.name}.0", f"{over.name}.1"]
        state = state.add(open_split(stage.name, over.name, Decision(knob)))
        bands = [*before, parts[0]]
        loops = [*before, *parts, *outer[len(before) + 1 :]]
        state = write_out(state, stage, loops, on_threads(stage.name, bands))
        host = (stage.name, "@".join(bands))
        state = _with_products(state, product, host)
        state = state.add(ComputeAtStep(data.name, *host), done=[data.name])
        state = write_out(state, data, [axis.name for axis in tiles_of(state, data)])
        return [_with_padding(state, data, host)]


def _product(state: SketchState, stage: Stage) -> Stage | None:
    """The products that the transforms up to this stage are made of."""
    source = only_source(state, [stage, *transforms_before(state, stage)][-1])
    return source if source is not None and has_data_reuse(source) and is_untouched(source) else None


def _transformed_data(state: SketchState, stage: Stage) -> Stage | None:
    """The data of these products, if it is transformed for them alone, and the weights are transformed ahead."""
    product = _product(state, stage)
    if product is None or row_axis(product) is None:
        return None
    sources = [state.stage(read.tensor.name) for read in product.reads]
    data = [source for source in sources if not state.schedule.is_prepacked(source)]
    is_fit = len(sources) == 2 and len(data) == 1 and choice_of(data[0]) is not None and is_untouched(data[0])
    return data[0] if is_fit and state.schedule.consumers(data[0]) == [product] else None


def _num_bytes(stage: Stage) -> int:
    return math.prod(stage.tensor.shape) * DTYPES[stage.tensor.dtype].bytes


def _with_products(state: SketchState, product: Stage, host: tuple[str, str]) -> SketchState:
    """The products of a band: those that read one part of the weights together, each a tile of registers at a time."""
    name, rows, lane = product.name, row_axis(product), longer(product.axes)[-1]
    assert rows is not None, "it matches"
    weights = next(r for r in product.reads if state.schedule.is_prepacked(state.stage(r.tensor.name)))
    others = [axis for axis in product.axes if axis not in (rows, lane)]
    again = [axis for axis in others if axis in reused_axes(product, weights)]
    first = [axis.name for axis in others if axis not in again]
    reduced = [axis.name for axis in product.reduce_axes]
    knobs = spatial_knobs(product, 2, state.options)
    tile = (f"{rows.name}.1", f"{lane.name}.1")
    order = [*first, f"{lane.name}.0", *(axis.name for axis in again), f"{rows.name}.0", *reduced, *tile]
    state = state.add(
        ComputeAtStep(name, *host),
        *(open_split(name, axis.name, Decision(knobs[axis])) for axis in (rows, lane)),
        ReorderStep(name, tuple(order)),
        UnrollStep(name, tile[0]),
        VectorizeStep(name, tile[1]),
        open_pragma(name, reduced[-1], Decision(unroll_knob(product))),
        done=[name],
    )
    return state.add(*packable(state.stage(name), ahead_of_time=True))


def _with_padding(state: SketchState, data: Stage, host: tuple[str, str]) -> SketchState:
    """What a band has of data that is padded before it is transformed."""
    first = [data, *transforms_before(state, data)][-1]
    padding = only_source(state, first)
    if padding is None or not is_padding(padding):
        return state
    within = only_source(state, padding)
    if within is not None and is_padding(within):
        state = state.add(ComputeInlineStep(within.name))
    name = padding.name
    return state.add(ComputeAtStep(name, *host), VectorizeStep(name, state.stage(name).leaves[-1].name), done=[name])
