"""Factors that are one element for all lanes: taken from memory by the multiplication where two vectors share them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen import generate
from tilewright.codegen.native import assembly
from tilewright.ir import lower
from tilewright.target import Target
from tilewright.te import Task

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


def correlation(num: int, taps: int) -> tw.Schedule:
    """Neighbouring outputs read the same inputs; the taps are unrolled."""
    X = te.placeholder((num + taps, 64), name="X")
    W = te.placeholder((taps, 64, 32), name="W")
    s, c = te.reduce_axis(taps, name="s"), te.reduce_axis(64, name="c")
    Y = te.compute((num, 32), lambda x, f: te.sum(X[x + s, c] * W[s, c, f], axis=(s, c)), name="Y")
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


def test_two_vectors_that_share_an_element_take_it_from_memory() -> None:
    assert count(product(6, 32), AVX512) == (12, 0)
    assert count(product(6, 32, unrolled=2), AVX512) == (24, 0)


def test_four_vectors_take_it_from_a_register() -> None:
    assert count(product(6, 64), AVX512) == (0, 6)


def test_what_several_iterations_of_the_straight_code_read_stays_in_a_register() -> None:
    embedded, broadcasts = count(correlation(4, 3), AVX512)
    assert embedded == 0
    assert broadcasts == 6


def test_other_processors_have_no_such_operands() -> None:
    embedded, broadcasts = count(product(6, 16), Target.parse("haswell"))
    assert embedded == 0
    assert broadcasts == 6


@pytest.mark.parametrize("schedule", [product(6, 32), product(5, 32, 30, 3), correlation(4, 3)])
def test_the_result_is_the_same(schedule: tw.Schedule) -> None:
    task = schedule.task
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal(tensor.shape).astype(np.float32) for tensor in task.inputs)
    result = tw.build(schedule, threads=1)(first, second)
    if second.ndim == 2:
        expected = first @ second
    else:
        expected = sum(first[s : s + 4] @ second[s] for s in range(3))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
