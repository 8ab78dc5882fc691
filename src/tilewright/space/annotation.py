"""The last annotations of a sketch: stages that no rule has annotated get parallel outer and vector inner loops."""

from __future__ import annotations

from tilewright.space.parallel_loops import parallel_steps
from tilewright.space.sketch_state import SketchState
from tilewright.space.vector_loops import vector_steps


def annotate(state: SketchState) -> SketchState:
    """Annotate every stage that no rule has."""
    for name in [stage.name for stage in state.schedule.active_stages]:
        stage = state.stage(name)
        if stage.annotations or stage.packs is not None:
            continue
        state = state.add(*vector_steps(state, stage))
        if stage.attach_loop is None:
            state = state.add(*parallel_steps(state, state.stage(name)))
    return state
