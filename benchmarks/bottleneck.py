"""Why a program is not faster: what the analytical model says it waits for."""

from __future__ import annotations

import numpy as np

from tilewright.features import Hardware, estimate_cycles, roofline
from tilewright.schedule import Schedule
from tilewright.target import Target

_PARTS = {
    "arithmetic": "arithmetic",
    "loads": "loads from the first cache",
    "stores": "stores",
    "issue": "the number of instructions",
    "latency": "sums that wait for the last addition",
    "l2": "data from the second cache",
    "l3": "data from the third cache",
    "memory": "data from memory",
}


def bottleneck(schedule: Schedule, target: Target, threads: int) -> str:
    """What bounds the stage that takes longest."""
    bounds = roofline(schedule, 1, Hardware.from_target(target, threads))
    cycles = estimate_cycles(bounds, target.core)[:, 0]
    longest = int(np.argmax(cycles))
    name = [stage.name for stage in schedule.active_stages if not schedule.is_prepacked(stage)][longest]
    part = max(_PARTS, key=lambda part: float(bounds[part][longest, 0]))
    share = cycles[longest] / cycles.sum()
    return f"{name}, {'all' if share > 0.995 else f'{share:.0%}'} of the time, is bound by {_PARTS[part]}"
