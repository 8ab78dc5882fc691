"""The last annotations of a sketch: plain stages get parallel outer loops and vector inner loops."""

from __future__ import annotations

from tilewright.schedule import PARALLEL, Stage
from tilewright.schedule.steps import ComputeAtStep, FuseStep, ParallelStep, VectorizeStep
from tilewright.space.builder import SketchState
from tilewright.space.rows import vector_steps


def finish(state: SketchState) -> SketchState:
    """Annotate every stage that no rule has."""
    for name in [stage.name for stage in state.schedule.active_stages]:
        stage = state.stage(name)
        if stage.annotations or stage.packs is not None:
            continue
        if stage.attach_loop is None:
            state = _annotate_root(state, stage)
        else:
            state = state.add(*vector_steps(state, stage))
    return state


def _annotate_root(state: SketchState, stage: Stage) -> SketchState:
    inner = vector_steps(state, stage)
    vectorized = {step.loop for step in inner if isinstance(step, VectorizeStep)}
    outer = [loop for loop in stage.leaves if not loop.is_reduce and loop.name not in vectorized][:2]
    is_free = not any(state.schedule.attached_at(loop) for loop in outer)
    state = state.add(*inner)
    if len(outer) == 2 and is_free and outer[0].extent == 1:
        names = tuple(loop.name for loop in outer)
        return state.add(FuseStep(stage.name, names), ParallelStep(stage.name, "@".join(names)))
    return state.add(ParallelStep(stage.name, outer[0].name)) if outer else state


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
