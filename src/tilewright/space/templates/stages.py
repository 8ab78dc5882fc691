"""What a template finds in the schedule of any task of its operator, whatever the stages are called."""

from __future__ import annotations

import math

from tilewright.errors import ScheduleError
from tilewright.schedule import Loop, Schedule, Stage
from tilewright.space.analysis import fusible_consumer, is_padding, is_strictly_inlinable, longer, row_axis
from tilewright.space.rules.packing import packable
from tilewright.space.vector_loops import widest_legal
from tilewright.target import Target

PADDINGS = ("whole", "in_tiles", "inline")


def main_stage(s: Schedule) -> Stage:
    """The reduction that runs over the most points."""
    reductions = [stage for stage in s.active_stages if stage.reduction is not None]
    if not reductions:
        raise ScheduleError(f"task {s.task.name} has no reduction")
    return max(reductions, key=lambda stage: math.prod(axis.extent for axis in (*stage.axes, *stage.reduce_axes)))


def padding_of(s: Schedule, stage: Stage) -> Stage | None:
    """The padding that the stage reads; None where it reads none."""
    sources = (s[read.tensor] for read in stage.reads)
    return next((source for source in sources if not source.is_placeholder and is_padding(source)), None)


def pad(padding: Stage, how: str, loop: Loop) -> None:
    """Pad as one of `PADDINGS`: all before anything else, in each iteration of a loop what that reads, or inline."""
    if how == "inline":
        padding.compute_inline()
        return
    padding.vectorize(padding.loops[-1])
    if how == "in_tiles":
        padding.compute_at(loop.stage, loop)
    else:
        padding.parallel(padding.fuse(*padding.loops[:2]))


def inline_cheap(s: Schedule) -> None:
    """Write the stages that cost nothing to compute again into their consumers."""
    for stage in s.active_stages:
        if is_strictly_inlinable(stage):
            stage.compute_inline()


def with_result(s: Schedule, stage: Stage) -> tuple[Stage, Stage]:
    """The stage that computes sums, and one that writes them out, in whose tiles it can be computed.

    That is its elementwise consumer; where it has none it gets a cache, and writes that out itself.
    """
    consumer = fusible_consumer(s, stage)
    return (stage, consumer) if consumer is not None else (stage.cache_write(), stage)


def tile_loops(sums: Stage, stage: Stage) -> tuple[list[Loop], Loop, Loop]:
    """Loops of a stage with the axes of `sums`: those that are left over, that of a tile's rows, that of its vectors.

    Vectors run along the last axis; rows along one for which a vector of an operand serves again.
    """
    if len(sums.axes) < 2:
        raise ScheduleError(f"{sums.name} has no two axes for the rows and the vectors of a tile")
    *_, lane = longer(sums.axes) or sums.axes
    row = row_axis(sums)
    if row is None:  # all others run once
        row = next(axis for axis in reversed(sums.axes) if axis is not lane)
    loop_of = dict(zip(sums.axes, stage.loops, strict=False))
    return [loop for axis, loop in loop_of.items() if axis not in (row, lane)], loop_of[row], loop_of[lane]


def vector_width(sums: Stage, target: Target) -> int:
    """How many results are computed at a time: a vector, or as much of one as wastes little of the last axis."""
    *_, lane = longer(sums.axes) or sums.axes
    return widest_legal(lane.extent, target.lanes(sums.tensor.dtype))


def pack_constants(sums: Stage) -> None:
    """Lay the constants that vectors are read from out in the order in which the loops, as they stand, read them."""
    for step in packable(sums, ahead_of_time=True):
        sums.schedule.apply(step)


def pack_operand(sums: Stage, loop: Loop) -> None:
    """The same for one that is no constant, when the kernel runs: the part that an iteration of `loop` reads."""
    for step in packable(sums, ahead_of_time=False)[:1]:
        panel = sums.schedule.apply(step)
        assert isinstance(panel, Stage)
        panel.compute_at(sums, loop)
        panel.vectorize(panel.loops[-1])
