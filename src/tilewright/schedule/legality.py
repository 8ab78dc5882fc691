"""What every schedule must obey, checked after each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.errors import ScheduleError
from tilewright.schedule.bounds import enclosing_loops
from tilewright.schedule.loop import DONE, MAX_UNROLL, PARALLEL, UNROLL, VECTORIZE, Loop
from tilewright.schedule.stage import Stage
from tilewright.schedule.values import global_values, loop_var
from tilewright.te import Binary, Const, Expr, Unary, Var, children, substitute, visit

if TYPE_CHECKING:
    from tilewright.schedule.schedule import Schedule


def check_legal(schedule: Schedule) -> None:
    for stage in schedule.active_stages:
        if stage.attach_loop is not None:
            _check_attachment(schedule, stage, stage.attach_loop)
    for stage in schedule.active_stages:
        around = enclosing_loops(stage)
        _check_variables(stage, around)
        _check_annotations(around, stage)
        _check_unrolled(stage)
    for stage in schedule.active_stages:
        _check_layout(schedule, stage)


def _check_attachment(schedule: Schedule, stage: Stage, level: Loop) -> None:
    host = level.stage
    if host.is_inlined or level not in host.leaves:
        raise ScheduleError(f"{stage.name} is attached at loop {level.name} of {host.name}, which is gone")
    consumers = schedule.consumers(stage)
    for consumer in consumers:
        if consumer is not host and level not in enclosing_loops(consumer):
            raise ScheduleError(
                f"{consumer.name} reads {stage.name} but is not computed inside loop {level.name} of {host.name}"
            )
    if not consumers:
        raise ScheduleError(f"nothing reads {stage.name}; it cannot be attached")


def _check_variables(stage: Stage, around: list[Loop]) -> None:
    """A packed read names loop variables: those loops must still run around it."""
    if not stage.packed_by:
        return
    known: set[Var] = {*stage.loop_of_axis, *(loop.var for loop in (*around, *stage.leaves))}

    def check(e: object) -> None:
        if isinstance(e, Var) and e not in known:
            raise ScheduleError(f"{stage.name} is packed along loop {e.name}, which no longer runs around it")

    visit(stage.body, check)


def _check_layout(schedule: Schedule, stage: Stage) -> None:
    """The loops that a packed copy follows must still read its source as they did when it was laid out."""
    layout = stage.layout
    if layout is None:
        return
    reader = layout.reader
    values = global_values(schedule, reader, loop_var)
    now = [substitute(index, values) for index in layout.indices]
    is_kept = all(map(_same, now, layout.values)) and all(
        np.array_equal(schedule.extents[loop], axis.extent) for loop, axis in layout.loops
    )
    if not is_kept:
        raise ScheduleError(
            f"the layout of {stage.name} follows the loops around {reader.name}, which this changes; pack after tiling"
        )


def _same(a: Expr, b: Expr) -> bool:
    if a is b:
        return True
    if isinstance(a, Const) and isinstance(b, Const):
        return np.array_equal(a.value, b.value)
    if type(a) is not type(b) or isinstance(a, Var):
        return False
    if isinstance(a, Binary | Unary) and a.op != b.op:  # type: ignore[attr-defined]  # of the same type
        return False
    return all(map(_same, children(a), children(b)))


def _check_annotations(around: list[Loop], stage: Stage) -> None:
    path = [*around, *stage.leaves]
    kinds = [loop.annotation for loop in path]
    for kind in (PARALLEL, VECTORIZE):
        if kinds.count(kind) > 1:
            names = ", ".join(loop.name for loop in path if loop.annotation == kind)
            raise ScheduleError(f"loops {names} are nested and both {DONE[kind]}; only one loop of a nest can be")
    if PARALLEL in kinds:
        outer = kinds[: kinds.index(PARALLEL)]
        for kind in (VECTORIZE, UNROLL):
            if kind in outer:
                raise ScheduleError(f"a parallel loop cannot run inside a loop that is {DONE[kind]}; reorder the loops")
    if VECTORIZE in [loop.annotation for loop in around]:
        raise ScheduleError(f"{stage.name} is attached inside a vectorized loop; attach it further out")


def _check_unrolled(stage: Stage) -> None:
    """A loop is short enough to be written out. Which candidates of a population are, `space/legality.py` says."""
    for loop in stage.leaves:
        if loop.annotation == UNROLL and isinstance(loop.extent, int) and loop.extent > MAX_UNROLL:
            raise ScheduleError(
                f"loop {loop.name} has {loop.extent} iterations; at most {MAX_UNROLL} unroll; split it first"
            )
