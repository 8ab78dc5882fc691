"""Stages in which each place of a small tile has a formula of its own, as the transforms of Winograd's convolution."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule import Stage, Step
from tilewright.schedule.steps import ComputeAtStep, ComputeInlineStep, ReorderStep, UnrollStep, VectorizeStep
from tilewright.space.analysis import choice_of, feeds_choices, is_padding, is_untouched
from tilewright.space.knob import Decision
from tilewright.space.parallel_loops import on_threads
from tilewright.space.rules.rule import Rule
from tilewright.space.sketch_state import SketchState, open_split
from tilewright.space.vector_loops import lane_knob
from tilewright.te import Axis, Expr, Read

# So many pieces of work for each thread, so that one with one piece more has little more to do.
_PIECES_PER_THREAD = 4


class InlineTiles(Rule):
    """Write the stage that takes results out of their tiles into those that read it."""

    name = "inline_tiles"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        if stage.is_output or stage.packs is not None or not isinstance(stage.body, Read):
            return False
        return choice_of(state.stage(stage.body.tensor.name)) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [state.add(ComputeInlineStep(stage.name))]


class StorePadding(Rule):
    """Pad data that is transformed before it is: in the transform there would be a copy of all for each border."""

    name = "store_padding"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return is_padding(stage) and feeds_choices(state.schedule, stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        source = only_source(state, stage)
        is_double = source is not None and is_padding(source)
        return [state.add(ComputeInlineStep(source.name))] if source is not None and is_double else [state]


class TransformTiles(Rule):
    """A tile at a time, all its formulas written out, and the stages before it, of the same kind, inside.

    What formulas share is computed once, and what lies between the stages stays in registers or near.
    """

    name = "transform_tiles"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return choice_of(stage) is not None and is_untouched(stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        outer = tiles_of(state, stage)
        on_threads = _on_threads(stage.name, outer, state.options.threads)
        return [write_out(state, stage, [axis.name for axis in outer], on_threads)]


def tiles_of(state: SketchState, stage: Stage) -> list[Axis]:
    """The axes around the formulas of a transform, without that of the vectors: a tile for each place of them."""
    inner = _axes_within(stage, transforms_before(state, stage))
    return [axis for axis in stage.axes if axis not in inner][:-1]


def write_out(state: SketchState, stage: Stage, outer: list[str], on_threads: Sequence[Step] = ()) -> SketchState:
    """The formulas of a transform written out inside the `outer` loops, and the transforms before it in there."""
    before = transforms_before(state, stage)
    inner = _axes_within(stage, before)
    lane = next(axis for axis in reversed(stage.axes) if axis not in inner)
    tile, lanes = f"{lane.name}.0", f"{lane.name}.1"
    names = [axis.name for axis in inner]
    state = state.add(
        open_split(stage.name, lane.name, Decision(lane_knob(stage, lane, state.options))),
        ReorderStep(stage.name, (*outer, tile, *names, lanes)),
        *(UnrollStep(stage.name, name) for name in names),
        VectorizeStep(stage.name, lanes),
        *on_threads,
    )
    for producer in before:
        state = state.add(
            ComputeAtStep(producer.name, stage.name, tile),
            *(UnrollStep(producer.name, loop.name) for loop in producer.leaves[:-1]),
            VectorizeStep(producer.name, producer.leaves[-1].name),
            done=[producer.name],
        )
    return state


def transforms_before(state: SketchState, stage: Stage) -> list[Stage]:
    """The stages of this kind from which the stage is made, one after the other, the nearest first."""
    found: list[Stage] = []
    while True:
        source = only_source(state, found[-1] if found else stage)
        if source is None or choice_of(source) is None:
            return found
        found.append(source)


def only_source(state: SketchState, stage: Stage) -> Stage | None:
    """The one stage that this one reads, if it is computed, and for this one alone."""
    names = {read.tensor.name for read in stage.reads}
    source = state.stage(names.pop()) if len(names) == 1 else None
    if source is None or source.is_placeholder or source.packs is not None:
        return None
    return source if len(state.schedule.consumers(source)) == 1 else None


def _axes_within(stage: Stage, before: list[Stage]) -> list[Axis]:
    """The axes of the stage along which formulas differ, its own or those of the stages before."""
    inner: set[Expr | None] = {choice_of(stage)}
    reads = stage.reads
    for producer in before:
        chosen = choice_of(producer)
        assert chosen is not None, "it is a transform"
        inner |= {read.indices[producer.axes.index(chosen)] for read in reads}
        reads = producer.reads
    return [axis for axis in stage.axes if axis in inner]


def _on_threads(name: str, outer: list[Axis], threads: int) -> list[Step]:
    """As many of the outer loops on threads as it takes to share the work evenly."""
    names: list[str] = []
    num_pieces = 1
    for axis in outer:
        if num_pieces >= _PIECES_PER_THREAD * threads:
            break
        names.append(axis.name)
        num_pieces *= axis.extent
    return on_threads(name, names) if num_pieces > 1 else []
