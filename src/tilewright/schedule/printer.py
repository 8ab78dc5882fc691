"""A schedule as pseudo-code: the loop nest as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.schedule.loop import SERIAL, Loop
from tilewright.schedule.stage import Stage
from tilewright.te import Reduce, format_expr

if TYPE_CHECKING:
    from tilewright.schedule.schedule import Schedule

_UPDATE = {"sum": "+=", "prod": "*=", "max": "max=", "min": "min=", "argmax": "argmax=", "argmin": "argmin="}


def format_schedule(schedule: Schedule) -> str:
    """The loop nest of every stage, attached stages where they are computed; inlined ones do not appear."""
    lines: list[str] = []
    for stage in schedule.active_stages:
        if stage.attach_loop is None:
            if schedule.is_prepacked(stage):
                lines.append(f"# {stage.name}: once, by kernel.bind")
            _format_stage(schedule, stage, 0, lines)
    return "\n".join(lines)


def _format_stage(schedule: Schedule, stage: Stage, depth: int, lines: list[str]) -> None:
    for loop in stage.leaves:
        lines.append("  " * depth + _header(loop))
        depth += 1
        for attached in schedule.attached_at(loop):
            _format_stage(schedule, attached, depth, lines)
    lines.append("  " * depth + _statement(stage))


def _header(loop: Loop) -> str:
    keyword = "for" if loop.annotation == SERIAL else loop.annotation
    step = loop.stage.pragmas.get(loop)
    pragma = "" if step is None else f"  # auto_unroll_max_step={step}"
    return f"{keyword} {loop.name} in range({loop.extent}):{pragma}"


def _statement(stage: Stage) -> str:
    target = f"{stage.name}[{', '.join(axis.name for axis in stage.axes)}]"
    body = stage.body
    if not isinstance(body, Reduce):
        return f"{target} = {format_expr(body)}"
    return f"{target} {_UPDATE[body.op]} {', '.join(map(format_expr, body.values))}"
