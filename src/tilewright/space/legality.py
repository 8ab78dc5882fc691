"""Which candidates of a population are worth building: decided for all rows at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilewright.schedule import (
    MAX_STATEMENTS,
    MAX_UNROLL,
    UNROLL,
    VECTORIZE,
    Extent,
    Schedule,
    Stage,
    enclosing_loops,
)
from tilewright.space.waste import MAX_STAGE_WASTE
from tilewright.target import Target
from tilewright.te import DTYPES
from tilewright.te.index import Flag

_BROADCAST_REGISTERS = 1
_MAX_LOCAL_BYTES = 64 << 20


def is_legal(schedule: Schedule, num_rows: int, target: Target) -> npt.NDArray[np.bool_]:
    """For each candidate: whether its register tiles fit, its tiles waste little, its code and buffers are short."""
    legal = np.ones(num_rows, dtype=bool)
    for stage in schedule.active_stages:
        if stage.reduction is not None:
            legal &= _registers(schedule, stage, target) <= target.num_vector_registers
        legal &= _waste(schedule, stage) <= MAX_STAGE_WASTE
        legal &= _is_short(schedule, stage)
        if stage.attach_loop is not None:
            legal &= _buffer_bytes(schedule, stage) <= _MAX_LOCAL_BYTES
    return legal


def _registers(schedule: Schedule, stage: Stage, target: Target) -> Extent:
    """Vector registers for the accumulators of the innermost tile, one operand's vectors and a broadcast.

    With more than there are, the innermost loop would spill.
    """
    lanes = target.lanes(stage.tensor.dtype)
    rows: Extent = 1
    vectors: Extent = 1
    for loop in reversed(stage.leaves):
        if loop.is_reduce:
            break
        if loop.annotation == VECTORIZE:
            vectors = -(-schedule.extents[loop] // lanes)
        elif loop.annotation == UNROLL:
            rows = rows * schedule.extents[loop]
    return rows * vectors + vectors + _BROADCAST_REGISTERS


def _waste(schedule: Schedule, stage: Stage) -> Extent:
    """How often the stage's loops run, for each element of its part."""
    runs: Extent = 1
    needed: Extent = 1
    for loop in stage.leaves:
        if not loop.is_reduce:
            runs = runs * schedule.extents[loop]
    for axis in stage.axes:
        needed = needed * schedule.extents[stage.loop_of_axis[axis]]
    return runs / needed  # type: ignore[return-value]


def _is_short(schedule: Schedule, stage: Stage) -> Flag:
    """Whether each loop that is written out is short enough for that, and all of them together."""
    short: Flag = True
    copies: Extent = 1
    for loop in (*enclosing_loops(stage), *stage.leaves):
        if loop.annotation == UNROLL:
            extent = schedule.extents[loop]
            short = short & (extent <= MAX_UNROLL)
            copies = copies * extent
    return short & (copies <= MAX_STATEMENTS)


def _buffer_bytes(schedule: Schedule, stage: Stage) -> Extent:
    size: Extent = DTYPES[stage.tensor.dtype].bytes
    for axis in stage.axes:
        size = size * schedule.extents[stage.loop_of_axis[axis]]
    return size
