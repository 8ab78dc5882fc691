"""What bounds a statement: data that is gathered, elements that registers cannot keep, work in few pieces."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.codegen import Target
from tilewright.features import Hardware, estimate_cycles, roofline
from tilewright.schedule import Schedule
from tilewright.task import Task

HARDWARE = Hardware.from_target(Target.parse("llvm -mcpu=skylake-avx512 -num-cores=2"))


def gathered(num_rows: int) -> Schedule:
    """Sixteen rows of a table."""
    table, which = te.placeholder((num_rows, 64), name="T"), te.placeholder((16,), name="W", dtype="int32")
    rows = te.compute((16, 64), lambda i, j: table[which[i], j], name="R")
    s = Schedule(Task([table, which], rows))
    s["R"].vectorize("j")
    return s


def test_gathering_costs_what_is_gathered_not_the_table() -> None:
    small, large = (estimate_cycles(roofline(gathered(n), 1, HARDWARE))[0, 0] for n in (16, 1 << 20))
    assert large == pytest.approx(small, rel=0.01)


def windows(tile: int, unroll: int) -> Schedule:
    """A convolution along rows in register tiles of `tile` places by two vectors, three steps unrolled or not."""
    x, w = te.placeholder((58, 64), name="X"), te.placeholder((3, 64, 32), name="W")
    s, c = te.reduce_axis(3, name="s"), te.reduce_axis(64, name="c")
    y = te.compute((56, 32), lambda i, f: te.sum(x[i + s, c] * w[s, c, f], axis=[s, c]), name="Y")
    schedule = Schedule(Task([x, w], y))
    i0, i1 = schedule["Y"].split("i", tile)
    f, rs, rc = schedule["Y"].loops[2:]
    schedule["Y"].reorder(i0, rc, rs, i1, f)
    schedule["Y"].unroll(i1)
    schedule["Y"].vectorize(f)
    if unroll:
        schedule["Y"].unroll(rs)
    return schedule


def loads(schedule: Schedule) -> float:
    return float(roofline(schedule, 1, HARDWARE)["loads"][0, 0])


def test_elements_that_steps_share_are_loaded_once_only_where_registers_are_free() -> None:
    # Of 32 registers 28 are accumulators: neighbours that the next step reads again do not stay.
    assert loads(windows(14, unroll=1)) > 0.9 * loads(windows(14, unroll=0))
    assert loads(windows(4, unroll=1)) < 0.8 * loads(windows(4, unroll=0))


def test_many_pieces_of_work_are_better_than_one_for_each_thread() -> None:
    x = te.placeholder((64, 4096), name="X")
    s = Schedule(Task([x], te.compute((64, 4096), lambda i, j: x[i, j] * 2.0, name="Y")))
    outer, _ = s["Y"].split("i", np.array([32, 8]))
    s["Y"].parallel(outer)
    s["Y"].vectorize("j")
    two, eight = roofline(s, 2, HARDWARE)["share"][0]
    assert two == pytest.approx(0.5 * 1.05)
    assert eight == pytest.approx(0.5 * (1 + 0.05 / 4))
