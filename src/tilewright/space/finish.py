"""The last annotations of a sketch: plain stages get parallel outer loops and vector inner loops."""

from __future__ import annotations

from tilewright.schedule import PARALLEL, Stage
from tilewright.schedule.steps import ComputeAtStep, FuseStep, ParallelStep, VectorizeStep
from tilewright.space.builder import SketchState
from tilewright.space.rows import vector_steps


def finish(state: SketchState) -> SketchState:
    """Annotate every stage that no rule has."""
    for stage in list(state.schedule.active_stages):
        if stage.annotations or stage.packs is not None:
            continue
        if stage.attach_loop is None:
            state = _annotate_root(state, stage)
        else:
            state = state.add(*vector_steps(state, stage))
    return state


def _annotate_root(state: SketchState, stage: Stage) -> SketchState:
    spatial = [loop for loop in stage.leaves if not loop.is_reduce]
    inner = vector_steps(state, stage)
    vectorized = {step.loop for step in inner if isinstance(step, VectorizeStep)}
    state = state.add(*inner)
    outer = [loop for loop in spatial if loop.name not in vectorized][:2]
    busy = any(s.attach_loop is loop for loop in outer for s in state.schedule.active_stages)
    if not outer:
        return state
    if len(outer) == 2 and not busy and outer[0].extent == 1:
        names = tuple(loop.name for loop in outer)
        return state.add(FuseStep(stage.name, names), ParallelStep(stage.name, "@".join(names)))
    return state.add(ParallelStep(stage.name, outer[0].name))


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
