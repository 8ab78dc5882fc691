"""Padding that is stored: once for the whole tensor, or again for each tile that reads it."""

from __future__ import annotations

from tilewright.schedule import PARALLEL, Stage
from tilewright.schedule.steps import ComputeAtStep
from tilewright.space.analysis import is_padding
from tilewright.space.rules.rule import Rule
from tilewright.space.sketch_state import SketchState
from tilewright.space.vector_loops import vector_steps


class ComputeLocation(Rule):
    """Padding in a buffer of its own: for the whole tensor, or for each tile of the consumer."""

    name = "compute_location"
    is_exclusive = True

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return is_padding(stage)

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        return [state, *_in_tiles_of_consumer(state, stage.name)]


def _in_tiles_of_consumer(state: SketchState, name: str) -> list[SketchState]:
    """The stage computed inside the parallel loop of its one consumer's tiles."""
    consumers = state.schedule.consumers(state.stage(name))
    if len(consumers) != 1:
        return []
    consumer = consumers[0]
    host = consumer.attach_loop.stage if consumer.attach_loop is not None else consumer
    loop = next((loop for loop in host.leaves if loop.annotation == PARALLEL), None)
    if loop is None:
        return []
    located = state.add(ComputeAtStep(name, host.name, loop.name))
    return [located.add(*vector_steps(located, located.stage(name)))]
