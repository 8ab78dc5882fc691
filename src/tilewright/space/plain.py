"""The program that every task has: the last resort of derivation, and what computes references."""

from __future__ import annotations

from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.te import Task


def plain_schedule(task: Task, target: Target, threads: int) -> Schedule:
    """Every stage on its own, its loops in order but for the innermost spatial one, which is vectorized inside."""
    schedule = Schedule(task)
    for stage in schedule.active_stages:
        spatial = [loop for loop in stage.loops if not loop.is_reduce]
        reduced = [loop for loop in stage.loops if loop.is_reduce]
        if not spatial:
            continue
        lanes = target.lanes(stage.tensor.dtype)
        last = spatial.pop()
        if stage.tensor.shape[-1] > lanes:
            outer, last = stage.split(last, lanes)
            spatial.append(outer)
        stage.reorder(*spatial, *reduced, last)
        stage.vectorize(last)
        wide = next((loop for loop in spatial if isinstance(loop.extent, int) and loop.extent > 1), None)
        if wide is not None and threads > 1:
            stage.parallel(wide)
    return schedule
