"""Operands in the order in which the register tiles read them."""

from __future__ import annotations

from tilewright.schedule import Stage, places
from tilewright.schedule.steps import ComputeAtStep, ComputeInlineStep, PackStep, VectorizeStep
from tilewright.space.analysis import is_strictly_inlinable, longer, reused_axes
from tilewright.space.sketch_state import SketchState
from tilewright.te import collect_reads


def pack_variants(state: SketchState, name: str) -> list[SketchState]:
    """The tiled stage with its constants packed ahead of time; and with the other operand packed, or not."""
    state = _inline_operands(state, name)
    for step in packable(state.stage(name), ahead_of_time=True):
        state = state.add(step)
    variants = [state]
    for step in packable(state.stage(name), ahead_of_time=False):
        packed = state.add(step)
        panel = packed.newest
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
        inlinable = [source for source in sources.values() if is_strictly_inlinable(source)]
        if not inlinable:
            return state
        state = state.add(*(ComputeInlineStep(source.name) for source in inlinable))


def packable(stage: Stage, ahead_of_time: bool) -> list[PackStep]:
    """Packs of inputs where the vector lanes run along them and they are read again for other axes.

    Only a constant of which nothing else is read can be packed ahead of time.
    """
    if not longer(stage.axes):
        return []
    *_, lane = longer(stage.axes)
    found = []
    for tensor in dict.fromkeys(read.tensor for read in stage.reads):
        is_constant = tensor.is_constant or stage.schedule.is_prepacked(stage.schedule[tensor.name])
        if not tensor.is_placeholder and not is_constant:
            continue
        reads = [in_place[0] for in_place in places(stage, tensor)]
        if ahead_of_time != (is_constant and len(reads) == 1):
            continue
        for place, read in enumerate(reads):
            reused = reused_axes(stage, read)
            if reused and lane not in reused and not any(map(collect_reads, read.indices)):
                found.append(PackStep(tensor.name, stage.name, place if len(reads) > 1 else None))
    return found


def _panel_loop(stage: Stage) -> str:
    """The last of the outer reduction loops: one panel is packed for each of its iterations."""
    before = [n for n, loop in enumerate(stage.leaves) if loop.is_reduce and n + 1 < len(stage.leaves)]
    outer = [n for n in before if not stage.leaves[n + 1].is_reduce]
    return stage.leaves[outer[0] if outer else before[0]].name
