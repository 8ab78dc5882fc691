"""Stages without data reuse, computed row by row inside the consumer that reads them row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.schedule import Loop, Split, Stage, Step
from tilewright.schedule.steps import ComputeAtStep, FuseStep
from tilewright.space.analysis import has_data_reuse, lane_axis
from tilewright.space.knob import Decision, TileKnob
from tilewright.space.rules.rule import Rule
from tilewright.space.sketch_state import SketchState, open_split
from tilewright.space.vector_loops import vector_steps
from tilewright.te import Axis, Expr

_ROWS_IN_A_BLOCK = (1, 2, 4, 8, 16, 32, 64)


class FuseRows(Rule):
    """A stage without data reuse is computed row by row inside the consumer that reads it row by row."""

    name = "fuse_rows"

    def matches(self, state: SketchState, stage: Stage) -> bool:
        return not has_data_reuse(stage) and _rows_of(state, stage) is not None

    def apply(self, state: SketchState, stage: Stage) -> list[SketchState]:
        rows = _rows_of(state, stage)
        assert rows is not None, "it matches"
        return [_fused(state, stage.name, rows)]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where a stage is computed row by row: `host` runs over the rows with its first `num_axes` axes.

    `loop` is the host's loop over rows, once it has been made.
    """

    host: Stage
    num_axes: int
    loop: Loop | None


def _rows_of(state: SketchState, stage: Stage) -> _Rows | None:
    """The rows in which all consumers read this stage, each at its own; None where there are none."""
    if stage.is_output or stage.is_placeholder or stage.is_inlined or not stage.axes:
        return None
    hosts: set[Stage] = set()
    common = len(stage.axes)
    for consumer in state.schedule.consumers(stage):
        if consumer.reduction is not None and consumer.attach_loop is None:
            return None
        hosts.add(consumer.attach_loop.stage if consumer.attach_loop is not None else consumer)
        for read in consumer.reads:
            if read.tensor is stage.tensor:
                common = min(common, _common_prefix(read.indices, consumer.axes))
    if len(hosts) != 1:
        return None
    host = hosts.pop()
    if stage.reduction is None:  # of a stage without a reduction, a row has to be more than one element
        common = min(common, len(host.axes) - 1)
    lane = lane_axis(stage, state.options.target)
    if lane is not None:  # whose vectors are within a row
        common = min(common, stage.axes.index(lane))
    return _rows_in_host(state, host, common) if common else None


def _common_prefix(indices: Sequence[Expr], axes: Sequence[Axis]) -> int:
    length = 0
    for index, axis in zip(indices, axes, strict=False):
        if index is not axis:
            break
        length += 1
    return length


def _rows_in_host(state: SketchState, host: Stage, common: int) -> _Rows | None:
    if host.reduction is not None or host.packed_by:
        return None
    made = next((loop for loop in host.leaves if state.schedule.attached_at(loop)), None)
    if made is None:
        is_plain = host.leaves == host.root_loops and math.prod(axis.extent for axis in host.axes[:common]) > 1
        return _Rows(host, common, None) if is_plain else None
    blocks = [r for r in host.relations if isinstance(r, Split) and (r.outer, r.inner) == (host.leaves[0], made)]
    if not blocks:  # the loops of a tiled stage
        return None
    outer = {host.leaves[0], made}
    num_axes = sum(outer.issuperset(host.leaves_of(host.loop_of_axis[axis])) for axis in host.axes)
    return _Rows(host, num_axes, made) if num_axes <= common else None


def _fused(state: SketchState, name: str, rows: _Rows) -> SketchState:
    """Compute the stage inside the host's loop over rows; the first stage makes that loop, in blocks of rows."""
    host = rows.host
    if rows.loop is None:
        axes = host.axes[: rows.num_axes]
        state, row = state.add(*_blocks_of_rows(host, axes, state.options.threads)), f"{_fused_name(axes)}.1"
    else:
        row = rows.loop.name
    state = state.add(ComputeAtStep(name, host.name, row))
    return state.add(*vector_steps(state, state.stage(name)))


def _blocks_of_rows(host: Stage, axes: Sequence[Axis], threads: int) -> list[Step]:
    """The loops over the axes as one, cut into blocks of which there are enough for all threads."""
    num_rows = math.prod(axis.extent for axis in axes)
    sizes = [size for size in _ROWS_IN_A_BLOCK if size == 1 or size * threads <= num_rows]
    fuse: list[Step] = [FuseStep(host.name, tuple(axis.name for axis in axes))] if len(axes) > 1 else []
    return [*fuse, open_split(host.name, _fused_name(axes), Decision(TileKnob(f"{host.name}.rows", sizes)))]


def _fused_name(axes: Sequence[Axis]) -> str:
    return "@".join(axis.name for axis in axes)
