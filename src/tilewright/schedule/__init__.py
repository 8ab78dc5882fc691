"""How to compute a task: stages, loops, the primitives as steps, and the trace of them."""

from tilewright.schedule.accumulation import MAX_ACCUMULATOR_ELEMENTS, Accumulation, buffer_dtype
from tilewright.schedule.bounds import Range, enclosing_loops, required_region
from tilewright.schedule.cutting import MAX_COPIES, MAX_PIECES, copies_left, is_cut, may_be_cut
from tilewright.schedule.loop import (
    MAX_LANES,
    MAX_STATEMENTS,
    MAX_UNROLL,
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
from tilewright.schedule.rewrite import accumulator_dtype, identity, inlined_depth, places, reduction_guard
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.stage import Stage
from tilewright.schedule.steps import Step, step_from_json
from tilewright.schedule.trace import Trace
from tilewright.schedule.unrolling import FINISH, MOST_STEPS, MOVE, NEST, START, Unrolling
from tilewright.schedule.values import domain_bases, global_values, loop_value

__all__ = [
    "FINISH",
    "MAX_ACCUMULATOR_ELEMENTS",
    "MAX_COPIES",
    "MAX_LANES",
    "MAX_PIECES",
    "MAX_STATEMENTS",
    "MAX_UNROLL",
    "MOST_STEPS",
    "MOVE",
    "NEST",
    "PARALLEL",
    "SERIAL",
    "START",
    "STRIP_LANES",
    "UNROLL",
    "VECTORIZE",
    "Accumulation",
    "Extent",
    "Fuse",
    "Loop",
    "Range",
    "Schedule",
    "Split",
    "Stage",
    "Step",
    "Trace",
    "Unrolling",
    "accumulator_dtype",
    "buffer_dtype",
    "copies_left",
    "domain_bases",
    "enclosing_loops",
    "global_values",
    "identity",
    "inlined_depth",
    "is_cut",
    "loop_value",
    "may_be_cut",
    "places",
    "reduction_guard",
    "required_region",
    "step_from_json",
]
