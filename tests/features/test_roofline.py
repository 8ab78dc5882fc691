"""What bounds a statement: data that is gathered, elements that registers cannot keep, work in few pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from tilewright import te
from tilewright.features import Hardware, estimate_cycles, roofline
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.te import Task

HARDWARE = Hardware.from_target(Target.parse("llvm -mcpu=skylake-avx512 -num-cores=2"))


def gathered(num_rows: int) -> Schedule:
    """Sixteen rows of a table."""
    table, which = te.placeholder((num_rows, 64), name="T"), te.placeholder((16,), name="W", dtype="int32")
    rows = te.compute((16, 64), lambda i, j: table[which[i], j], name="R")
    s = Schedule(Task([table, which], rows))
    s["R"].vectorize("j")
    return s


def test_gathering_costs_what_is_gathered_not_the_table() -> None:
    small, large = (estimate_cycles(roofline(gathered(n), 1, HARDWARE), HARDWARE.core)[0, 0] for n in (16, 1 << 20))
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
    assert two == pytest.approx(0.5 * (1 + HARDWARE.core.unevenness))
    assert eight == pytest.approx(0.5 * (1 + HARDWARE.core.unevenness / 4))


def product(i_tile: int | npt.NDArray[np.int64], order: str = "ij") -> Schedule:
    """A matrix product of 512 rows in parallel tiles of rows and columns, the tiles in the given order."""
    a, b = te.placeholder((512, 512), name="A"), te.placeholder((512, 1040), name="B")
    k = te.reduce_axis(512, name="k")
    c = te.compute((512, 1040), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = Schedule(Task([a, b], c))
    i0, i1 = s["C"].split("i", i_tile)
    j0, j1 = s["C"].split("j", 208)
    outer = [i0, j0] if order == "ij" else [j0, i0]
    s["C"].reorder(*outer, "k", i1, j1)
    s["C"].parallel(s["C"].fuse(*outer))
    s["C"].vectorize(j1)
    return s


def l3_cycles(schedule: Schedule, n: int = 1) -> npt.NDArray[np.float64]:
    cycles: npt.NDArray[np.float64] = roofline(schedule, n, replace(HARDWARE, l2_bytes=1 << 20))["l3"][0]
    return cycles


def test_what_a_fused_parallel_loop_reads_again_and_again_comes_from_far() -> None:
    # Rows outside: for each tile of rows all of B, twice the size of the cache, is read again.
    few, many = l3_cycles(product(np.array([64, 8])), 2)
    assert many > 2 * few
    # Columns outside: a tile of columns of B stays while the rows go by.
    assert l3_cycles(product(8, "ji"))[0] < 0.5 * many


def test_rows_that_begin_at_the_same_place_of_a_page_crowd_a_cache() -> None:
    # 256 rows of 256 bytes are 64 KB; where rows are 4 KB apart they share four of the 64 places of the first cache.
    def l2_cycles(width: int) -> float:
        b = te.placeholder((256, width), name="B")
        k = te.reduce_axis(256, name="k")
        c = te.compute((64, 16), lambda i, j: te.sum(b[k, j], axis=k), name="C")
        s = Schedule(Task([b], c))
        s["C"].reorder("i", "k", "j")
        s["C"].vectorize("j")
        return float(roofline(s, 1, HARDWARE)["l2"][0, 0])

    assert l2_cycles(1024 + 16) == 0
    assert l2_cycles(1024) > 0


def test_a_copy_that_turns_blocks_takes_fewer_loads_than_one_that_gathers() -> None:
    def loads_of(rows: int) -> float:
        a = te.placeholder((64, rows), name="A")
        s = Schedule(Task([a], te.compute((rows, 64), lambda i, j: a[j, i], name="B")))
        s["B"].vectorize("j")
        return float(roofline(s, 1, HARDWARE)["loads"][0, 0]) / rows

    assert loads_of(64) < 0.5 * loads_of(8)


def test_a_cache_that_does_not_exist_gives_nothing() -> None:
    def far(caches: str) -> dict[str, float]:
        target = Target.parse(f"llvm -mcpu=skylake-avx512 -num-cores=2 -l1d=32K -line=64 {caches}")
        bounds = roofline(product(8), 1, Hardware.from_target(target))
        return {name: float(bounds[name][0, 0]) for name in ("l2", "l3", "memory")}

    assert far("-l2=64K -l3=0")["l3"] == 0
    assert far("-l2=64K -l3=0")["memory"] == far("-l2=64K -l3=64K")["memory"] > 0
    assert far("-l2=16M -l3=0")["memory"] == far("-l2=16M -l3=8M")["memory"] == 0
    assert far("-l2=0 -l3=2M")["l2"] == 0
    assert far("-l2=0 -l3=2M")["l3"] > far("-l2=1M -l3=2M")["l3"]
