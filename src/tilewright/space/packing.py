"""Operands in the order in which the register tiles read them."""

from __future__ import annotations

from tilewright.schedule import Stage
from tilewright.schedule.steps import ComputeAtStep, ComputeInlineStep, PackStep, VectorizeStep
from tilewright.space.analysis import is_strictly_inlinable, reused_axes
from tilewright.space.builder import SketchState


def pack_variants(state: SketchState, name: str) -> list[SketchState]:
    """The tiled stage with its constants packed ahead of time; and with the other operand packed, or not."""
    state = _inline_operands(state, name)
    for constant in _packable(state, name, constant=True):
        state = state.add(PackStep(constant, name))
    variants = [state]
    for operand in _packable(state, name, constant=False):
        packed = state.add(PackStep(operand, name))
        panel = packed.stage(f"{operand}.pack")
        variants.append(
            packed.add(
                ComputeAtStep(panel.name, name, _panel_loop(packed.stage(name))),
                VectorizeStep(panel.name, panel.leaves[-1].name),
            )
        )
    return variants


def _inline_operands(state: SketchState, name: str) -> SketchState:
    """With the stages inlined that would be in any case, so that what is packed is what the tiles read."""
    while True:
        sources = {read.tensor.name: state.stage(read.tensor.name) for read in state.stage(name).reads}
        inlinable = [source for source in sources.values() if is_strictly_inlinable(state.schedule, source)]
        if not inlinable:
            return state
        state = state.add(*(ComputeInlineStep(source.name) for source in inlinable))


def _packable(state: SketchState, name: str, constant: bool) -> list[str]:
    """The inputs that the vector lanes run along and that are read again for other axes."""
    stage = state.stage(name)
    lane = [axis for axis in stage.axes if axis.extent > 1][-1]
    found = []
    for read in stage.reads:
        source = state.stage(read.tensor.name)
        reused = reused_axes(stage, read)
        if source.is_placeholder and source.tensor.is_constant == constant and reused and lane not in reused:
            found.append(source.name)
    return found if len(found) == len(set(found)) else []


def _panel_loop(stage: Stage) -> str:
    """The last of the outer reduction loops: one panel is packed for each of its iterations."""
    before = [n for n, loop in enumerate(stage.leaves) if loop.is_reduce and n + 1 < len(stage.leaves)]
    outer = [n for n in before if not stage.leaves[n + 1].is_reduce]
    return stage.leaves[outer[0] if outer else before[0]].name
