"""Stages in which each place of a small tile has a formula of its own, as the transforms of Winograd's convolution."""

from __future__ import annotations

from tilewright.schedule import Stage, Step
from tilewright.schedule.steps import ComputeAtStep, ReorderStep, UnrollStep, VectorizeStep
from tilewright.space.analysis import is_untouched
from tilewright.space.knob import Decision
from tilewright.space.parallel_loops import on_threads
from tilewright.space.rules.rule import Rule
from tilewright.space.sketch_state import SketchState, open_split
from tilewright.space.vector_loops import lane_knob
from tilewright.te import Axis
from tilewright.te.algorithms import choice_axis


class TransformTiles(Rule):
    """A tile of results at a time, all its formulas written out, and the stages before it, of the same kind, inside.

    What the formulas share is computed once, and what lies between the stages stays in registers or near.
    """

    name = "transform_tiles"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return stage.packs is None and _choice(stage) is not None and is_untouched(stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        inner = _tile_axes(state, stage)
        *outer, lane = [axis for axis in stage.axes if axis not in inner]
        knob = lane_knob(stage, lane, state.options)
        vectors = (f"{lane.name}.0", f"{lane.name}.1")
        rows = [axis.name for axis in outer]
        steps: list[Step] = [
            open_split(stage.name, lane.name, Decision(knob)),
            ReorderStep(stage.name, (*rows, vectors[0], *(axis.name for axis in inner), vectors[1])),
            *(UnrollStep(stage.name, axis.name) for axis in inner),
            VectorizeStep(stage.name, vectors[1]),
            *_parallel(state, stage, outer),
        ]
        state = state.add(*steps)
        before = _before(state, stage)
        for producer in before:
            state = state.add(
                ComputeAtStep(producer.name, stage.name, vectors[0]),
                *(UnrollStep(producer.name, loop.name) for loop in producer.leaves[:-1]),
                VectorizeStep(producer.name, producer.leaves[-1].name),
            )
        return [state.add(done=[producer.name for producer in before])]


def _choice(stage: Stage) -> Axis | None:
    return choice_axis(stage.body, stage.axes)


def _before(state: SketchState, stage: Stage) -> list[Stage]:
    """The stages of this kind from which the stage is made, one after the other, the nearest first."""
    found: list[Stage] = []
    while True:
        sources = {read.tensor.name for read in (found[-1] if found else stage).reads}
        made = [state.stage(name) for name in sources]
        made = [source for source in made if not source.is_placeholder and _choice(source) is not None]
        if len(made) != 1 or len(state.schedule.consumers(made[0])) != 1:
            return found
        found.append(made[0])


def _tile_axes(state: SketchState, stage: Stage) -> list[Axis]:
    """The axes within a tile: along which formulas differ, in this stage or in one before it."""
    own = _choice(stage)
    inner = {own}
    for producer in _before(state, stage):
        chosen = _choice(producer)
        position = producer.axes.index(chosen) if chosen is not None else 0
        inner |= {index for read in stage.reads if read.tensor is producer.tensor for index in [read.indices[position]]}
    return [axis for axis in stage.axes if axis in inner]


def _parallel(state: SketchState, stage: Stage, outer: list[Axis]) -> list[Step]:
    """The rows of tiles on threads, or all tiles where the rows are few."""
    names: list[str] = []
    num_iterations = 1
    for axis in outer:
        if num_iterations >= 4 * state.options.threads:
            break
        names.append(axis.name)
        num_iterations *= axis.extent
    return on_threads(stage.name, names) if num_iterations > 1 else []
