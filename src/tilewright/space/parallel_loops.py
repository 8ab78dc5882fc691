"""Loops whose iterations threads share."""

from __future__ import annotations

import math

import numpy as np

from tilewright.schedule import VECTORIZE, Stage, Step
from tilewright.schedule.steps import FuseStep, ParallelStep, ReorderStep
from tilewright.space.analysis import longer
from tilewright.space.sketch_state import SketchState
from tilewright.te import COSTLY_FUNCTIONS, Binary, Expr, Unary, visit

# A task of fewer instructions is done by one thread before others have begun.
_MIN_OPERATIONS = 2048
_COST_OF_A_FUNCTION = 16


def parallel_steps(state: SketchState, stage: Stage) -> list[Step]:
    """The outer loops on threads: as many as it takes to have work for all, and none where there is little to do."""
    if _num_operations(state) < _MIN_OPERATIONS:
        return []
    names: list[str] = []
    num_iterations = 1
    for loop in stage.leaves:
        is_enough = bool(names) and num_iterations >= state.options.threads
        if loop.is_reduce or loop.annotation == VECTORIZE or is_enough:
            break
        if state.schedule.attached_at(loop):  # which is not fused with others
            names = names or [loop.name]
            break
        names.append(loop.name)
        num_iterations *= int(np.max(loop.extent))
    if not names:
        return []
    return on_threads(stage.name, names)


def on_threads(name: str, loops: list[str]) -> list[Step]:
    """Neighbouring loops of a stage as one, whose iterations threads share."""
    fuse: list[Step] = [FuseStep(name, tuple(loops))] if len(loops) > 1 else []
    return [*fuse, ParallelStep(name, "@".join(loops))]


def once_first(stage: Stage) -> list[Step]:
    """Loops that run once and stand between others moved before them, so that those others can be fused."""
    lengths = [axis.extent for axis in stage.axes]
    places = [place for place, length in enumerate(lengths) if length > 1]
    among = stage.axes[places[0] : places[-1]] if places else ()
    once = [axis for axis in among if axis.extent == 1]
    return [ReorderStep(stage.name, tuple(axis.name for axis in (*once, *longer(among))))] if once else []


def _num_operations(state: SketchState) -> float:
    """Instructions of the whole task, roughly, if all is in vectors."""
    target = state.options.target
    return sum(_work(stage) / target.lanes(stage.tensor.dtype) for stage in state.schedule.active_stages)


def _work(stage: Stage) -> float:
    """How much the stage has to compute: its points, one with a function counting as several."""
    functions: list[Expr] = []
    visit(
        stage.body,
        lambda e: functions.append(e) if isinstance(e, Unary | Binary) and e.op in COSTLY_FUNCTIONS else None,
    )
    points = math.prod(axis.extent for axis in (*stage.axes, *stage.reduce_axes))
    return float(points * (1 + _COST_OF_A_FUNCTION * len(functions)))
