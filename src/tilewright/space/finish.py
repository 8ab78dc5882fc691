"""The last annotations of a sketch: plain stages get parallel outer loops and vector inner loops."""

from __future__ import annotations

from tilewright.schedule import PARALLEL
from tilewright.schedule.steps import ComputeAtStep
from tilewright.space.annotation import parallel_steps, vector_steps
from tilewright.space.builder import SketchState


def finish(state: SketchState) -> SketchState:
    """Annotate every stage that no rule has."""
    for name in [stage.name for stage in state.schedule.active_stages]:
        stage = state.stage(name)
        if stage.annotations or stage.packs is not None:
            continue
        state = state.add(*vector_steps(state, stage))
        if stage.attach_loop is None:
            state = state.add(*parallel_steps(state, state.stage(name)))
    return state


def locate(state: SketchState, name: str) -> list[SketchState]:
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
