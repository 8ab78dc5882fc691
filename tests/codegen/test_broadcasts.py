"""Factors that are one element for all lanes: taken from memory by the multiplication where two vectors share them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen import generate
from tilewright.codegen.broadcasts import StraightCode
from tilewright.codegen.native import assembly
from tilewright.ir import Buffer, For, Update, lower
from tilewright.ir.nest import LOCAL
from tilewright.schedule import UNROLL
from tilewright.target import Target
from tilewright.te import Const, Task, Var
from tilewright.te.index import Linear

AVX512 = Target.parse("skylake-avx512")


def product(rows: int, columns: int, k: int = 24, unrolled: int = 1) -> tw.Schedule:
    """A tile of rows by columns, over `k` steps, of which some are unrolled."""
    A, B = te.placeholder((rows, k), name="A"), te.placeholder((k, columns), name="B")
    r = te.reduce_axis(k, name="r")
    C = te.compute((rows, columns), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = tw.Schedule(Task([A, B], C))
    i, j, r0 = s["C"].loops
    outer, inner = s["C"].split(r0, unrolled)
    s["C"].reorder(outer, inner, i, j)
    s["C"].unroll(inner)
    s["C"].unroll(i)
    s["C"].vectorize(j)
    return s


def correlation(num: int, taps: int, columns: int = 32) -> tw.Schedule:
    """Neighbouring outputs read the same inputs; the taps are unrolled."""
    X = te.placeholder((num + taps, 64), name="X")
    W = te.placeholder((taps, 64, columns), name="W")
    s, c = te.reduce_axis(taps, name="s"), te.reduce_axis(64, name="c")
    Y = te.compute((num, columns), lambda x, f: te.sum(X[x + s, c] * W[s, c, f], axis=(s, c)), name="Y")
    schedule = tw.Schedule(Task([X, W], Y))
    x, f, tap, channel = schedule["Y"].loops
    schedule["Y"].reorder(channel, tap, x, f)
    schedule["Y"].unroll(tap)
    schedule["Y"].unroll(x)
    schedule["Y"].vectorize(f)
    return schedule


def count(schedule: tw.Schedule, target: Target) -> tuple[int, int]:
    """Multiplications that take an element from memory for all lanes, and broadcasts into registers."""
    lines = assembly(generate(lower(schedule), target, 1).llvm_ir, target).splitlines()
    return sum("vfmadd" in line and "{1to" in line for line in lines), sum("vbroadcasts" in line for line in lines)


@pytest.mark.parametrize("columns", [32, 72])
def test_a_factor_that_is_chosen_lane_by_lane_is_none_for_all_lanes(columns: int) -> None:
    A, B = te.placeholder((5, columns), name="A"), te.placeholder((columns, 5), name="B")
    r = te.reduce_axis(columns, name="r")
    C = te.compute(
        (5, columns),
        lambda i, j: te.sum(te.select((r <= j) & te.equal((j - r) % 3, 0), A[i, r], 0.0) * B[r, i], axis=r),
        name="C",
    )
    s = tw.Schedule(Task([A, B], C))
    outer, inner = s["C"].split("r", 4)
    s["C"].reorder(inner, "i", outer, "j")
    s["C"].vectorize("j")
    a, b = np.random.default_rng(0).uniform(-1, 1, (2, 5, columns)).astype(np.float32)
    distance = np.arange(columns) - np.arange(columns)[:, None]
    expected = (a * b) @ ((distance >= 0) & (distance % 3 == 0))
    np.testing.assert_allclose(tw.build(s, threads=1)(a, np.ascontiguousarray(b.T)), expected, atol=1e-5)


def test_two_vectors_that_share_an_element_take_it_from_memory() -> None:
    assert count(product(6, 32), AVX512) == (12, 0)
    assert count(product(6, 32, unrolled=2), AVX512) == (24, 0)


def test_four_vectors_take_it_from_a_register() -> None:
    assert count(product(6, 64), AVX512) == (0, 6)


def test_what_several_iterations_of_the_straight_code_read_stays_in_a_register() -> None:
    embedded, broadcasts = count(correlation(4, 3), AVX512)
    assert embedded == 0
    assert broadcasts == 6


def spilled(schedule: tw.Schedule, target: Target) -> int:
    """Vectors that go to the stack or come from it."""
    lines = assembly(generate(lower(schedule), target, 1).llvm_ir, target).splitlines()
    return sum("mm" in line and "(%rsp)" in line for line in lines)


@pytest.mark.parametrize(
    ("target", "num", "taps", "columns"),
    [("skylake-avx512", 12, 3, 32), ("skylake-avx512", 13, 7, 32), ("haswell", 6, 3, 16)],
)
def test_what_does_not_fit_next_to_the_sums_is_read_again_and_no_sum_leaves_its_register(
    target: str, num: int, taps: int, columns: int
) -> None:
    assert spilled(correlation(num, taps, columns), Target.parse(target)) == 0


def test_steps_that_read_the_same_elements_have_different_numbers() -> None:
    x, s, c, k = (Var("int64", name) for name in "xsck")
    sums = Buffer("sums", (4,), "float32", LOCAL)
    update = Update("sum", (sums,), (Linear({x: 1}, 0),), (Const("float32", 0.0),))
    loops = [For(var, 0, extent, UNROLL, update) for var, extent in ((s, 3), (c, 2), (x, 4))]
    code = StraightCode(k, loops)
    again = code.reads_again(update, Linear({x: 8, s: 8, c: 1}, 0))
    assert again is not None
    assert again.numbers == {(tap, channel): tap for tap in range(3) for channel in range(2)}
    assert (again.num_rows, again.num_elements) == (4, 2 * 4)
    assert code.reads_again(update, Linear({x: 8, s: 32, c: 1}, 0)) is None


def test_other_processors_have_no_such_operands() -> None:
    embedded, broadcasts = count(product(6, 16), Target.parse("haswell"))
    assert embedded == 0
    assert broadcasts == 6


@pytest.mark.parametrize(
    "schedule", [product(6, 32), product(5, 32, 30, 3), correlation(4, 3), correlation(12, 3), correlation(13, 7)]
)
def test_the_result_is_the_same(schedule: tw.Schedule) -> None:
    task = schedule.task
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal(tensor.shape).astype(np.float32) for tensor in task.inputs)
    result = tw.build(schedule, threads=1)(first, second)
    if second.ndim == 2:
        expected = first @ second
    else:
        taps, num = len(second), len(result)
        expected = sum(first[s : s + num] @ second[s] for s in range(taps))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
