"""What the derivation rules ask of a stage."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.schedule import Schedule, Stage, inlined_depth
from tilewright.target import Target
from tilewright.te import (
    COSTLY_FUNCTIONS,
    MAX_DEPTH,
    Axis,
    Binary,
    Const,
    Expr,
    Read,
    Select,
    Unary,
    Var,
    children,
    memory_step,
    visit,
)
from tilewright.te.algorithms import choices


def is_strictly_inlinable(stage: Stage) -> bool:
    """Whether writing the stage into its consumers costs nothing: no reduction, no function, no condition."""
    if stage.is_output or stage.is_placeholder or stage.reduction is not None or stage.packs is not None:
        return False
    cheap = True

    def check(e: Expr) -> None:
        nonlocal cheap
        is_costly = isinstance(e, Unary | Binary) and e.op in COSTLY_FUNCTIONS
        if is_costly or isinstance(e, Select):
            cheap = False

    visit(stage.body, check)
    is_cheap = cheap and all(_is_simple(index) for read in stage.reads for index in read.indices)
    return is_cheap and has_room_in_consumers(stage)


def has_room_in_consumers(stage: Stage) -> bool:
    """Whether the expressions of its consumers stay short enough with that of the stage in them."""
    return all(inlined_depth(consumer, stage) <= MAX_DEPTH for consumer in stage.schedule.consumers(stage))


def _is_simple(index: Expr) -> bool:
    """A variable, plus or minus a constant."""
    if isinstance(index, Binary) and index.op in ("add", "sub"):
        return isinstance(index.a, Var) and isinstance(index.b, Const)
    return isinstance(index, Var | Const)


def is_padding(stage: Stage) -> bool:
    """Whether the stage only moves elements, some of them under a condition."""
    if stage.is_output or stage.is_placeholder or stage.reduction is not None:
        return False
    return isinstance(stage.body, Select) and isinstance(stage.body.a, Read) and isinstance(stage.body.b, Const)


def longer(axes: Iterable[Axis]) -> list[Axis]:
    """The axes that are longer than one: only their loops are worth a decision."""
    return [axis for axis in axes if axis.extent > 1]


def has_data_reuse(stage: Stage) -> bool:
    """A reduction that reads some tensor again for every value of one of its axes."""
    if not longer(stage.reduce_axes):
        return False
    return any(reused_axes(stage, read) for read in stage.reads)


def reused_axes(stage: Stage, read: Read) -> list[Axis]:
    """The axes of the stage, longer than one, that come back to the same element: absent, or only in divisions."""
    used: set[Var] = set()
    for index in read.indices:
        _add_undivided(index, used)
    return [axis for axis in longer(stage.axes) if axis not in used]


def _add_undivided(index: Expr, found: set[Var]) -> None:
    if isinstance(index, Var):
        found.add(index)
    if not (isinstance(index, Binary) and index.op in ("mod", "floordiv")):
        for part in children(index):
            _add_undivided(part, found)


def row_axis(stage: Stage) -> Axis | None:
    """The axis of a register tile's rows: the last one along which a vector of an operand serves again.

    None where no axis but that of the vectors is longer than one.
    """
    if not longer(stage.axes):
        return None
    *others, lane = longer(stage.axes)
    served = [reused for reused in (reused_axes(stage, read) for read in stage.reads) if lane not in reused]
    rows = [axis for axis in others if any(axis in reused for reused in served)]
    return (rows or others)[-1] if others else None


def lane_axis(stage: Stage, target: Target) -> Axis | None:
    """Of a reduction, the spatial axis along which vectors of results read what lies side by side in memory.

    None where there is none, or it is too short to fill half a vector.
    """
    candidates = longer(stage.axes)
    if stage.reduction is None or not candidates:
        return None
    lane = candidates[-1]
    steps = {memory_step(read, lane) for read in stage.reads}
    is_wide = lane.extent * 2 >= target.lanes(stage.tensor.dtype)
    return lane if is_wide and 1 in steps and steps <= {0, 1} else None


def choice_of(stage: Stage) -> Axis | None:
    """The axis each value of which has a formula of its own, as in the transforms of Winograd's convolution."""
    found = choices(stage.body, stage.axes)
    return None if found is None else found[0]


def feeds_choices(schedule: Schedule, stage: Stage) -> bool:
    """Whether a stage of such formulas reads the stage."""
    return any(choice_of(consumer) is not None for consumer in schedule.consumers(stage))


def is_untouched(stage: Stage) -> bool:
    """Whether no rule has decided anything about the loops of the stage, nor where it is computed."""
    return stage.leaves == stage.root_loops and not stage.annotations and stage.attach_loop is None


def fusible_consumer(schedule: Schedule, stage: Stage) -> Stage | None:
    """The one consumer, if it takes the stage element by element, is no reduction, and its loops are as they were."""
    consumer = elementwise_consumer(schedule, stage)
    return consumer if consumer is not None and is_untouched(consumer) else None


def elementwise_consumer(schedule: Schedule, stage: Stage) -> Stage | None:
    """The one consumer, if it takes the stage element by element and is no reduction."""
    consumers = schedule.consumers(stage)
    if len(consumers) != 1 or stage.is_output:
        return None
    consumer = consumers[0]
    if consumer.reduction is not None or consumer.tensor.shape != stage.tensor.shape:
        return None
    reads = [read for read in consumer.reads if read.tensor is stage.tensor]
    matched = all(read.indices == consumer.axes for read in reads)
    return consumer if matched else None
