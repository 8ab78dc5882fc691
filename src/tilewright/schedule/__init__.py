"""How to compute a task: stages, loops, the primitives as steps, and the trace of them."""

from tilewright.schedule.bounds import Range, enclosing_loops, required_region
from tilewright.schedule.loop import (
    MAX_LANES,
    PARALLEL,
    SERIAL,
    STRIP_LANES,
    UNROLL,
    VECTORIZE,
    Extent,
    Fuse,
    Loop,
    Split,
)
from tilewright.schedule.rewrite import accumulator_dtype, identity, places, reduction_guard
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.stage import Stage
from tilewright.schedule.steps import Step, step_from_json
from tilewright.schedule.trace import Trace
from tilewright.schedule.values import divides, domain_bases, global_values, loop_value

__all__ = [
    "MAX_LANES",
    "PARALLEL",
    "SERIAL",
    "STRIP_LANES",
    "UNROLL",
    "VECTORIZE",
    "Extent",
    "Fuse",
    "Loop",
    "Range",
    "Schedule",
    "Split",
    "Stage",
    "Step",
    "Trace",
    "accumulator_dtype",
    "divides",
    "domain_bases",
    "enclosing_loops",
    "global_values",
    "identity",
    "loop_value",
    "places",
    "reduction_guard",
    "required_region",
    "step_from_json",
]
