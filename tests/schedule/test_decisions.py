"""What lowering will do is decided on the schedule: for one by its extents, for a population as for each candidate."""

from __future__ import annotations

import numpy as np
import pytest

from tests.features.populations import FAMILIES
from tests.schedule.programs import best_index, gemm_relu
from tilewright import te
from tilewright.ir import build_nests, format_nest
from tilewright.schedule import (
    MAX_COPIES,
    MAX_PIECES,
    NEST,
    START,
    Accumulation,
    Schedule,
    Unrolling,
    buffer_dtype,
    copies_left,
    is_cut,
    may_be_cut,
)
from tilewright.te import Task

NUM_ROWS = 24


@pytest.mark.parametrize("is_dividing", [True, False], ids=["dividing", "not dividing"])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_population_is_decided_as_each_of_its_candidates(name: str, is_dividing: bool) -> None:
    family = FAMILIES[name]
    matrix = family.sample(7, NUM_ROWS, is_dividing=is_dividing)
    population = family.population(matrix)
    together = Unrolling(population)
    for row in range(NUM_ROWS):
        concrete = family.concrete(matrix, row)
        alone = Unrolling(concrete)
        for stage in population.active_stages:
            other = concrete[stage.name]
            for loop, same in zip(stage.leaves, other.leaves, strict=True):
                assert _at(together.is_unrolled(loop), row) == alone.is_unrolled(same), f"{loop} of row {row}"
            if stage.reduction is not None:
                all_rows, one = together.accumulations[stage], alone.accumulations[other]
                assert _at(all_rows.level, row) == one.level
                assert _at(all_rows.is_apart, row) == one.is_apart


def _at(answer: object, row: int) -> int:
    return int(np.broadcast_to(np.asarray(answer), NUM_ROWS)[row])


# --- accumulation -----------------------------------------------------------------------------------------------------


def _gemm(n: int = 20, m: int = 12, dtype: str = "float32") -> Schedule:
    """A product whose result the caller sees."""
    A, B = te.placeholder((n, 10), name="A", dtype=dtype), te.placeholder((10, m), name="B", dtype=dtype)
    k = te.reduce_axis(10, name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return Schedule(Task([A, B], C))


def _tiled(s: Schedule, tile: int) -> Accumulation:
    c = s["C"]
    i0, i1 = c.split("i", tile)
    c.reorder(i0, "j", "k", i1)
    c.unroll(i1)
    return Accumulation(c)


def test_a_reduction_inside_all_loops_is_in_registers() -> None:
    how = Accumulation(_gemm()["C"])
    assert (how.level, how.is_in_registers, how.is_apart) == (2, True, True)


def test_a_loop_that_remains_inside_keeps_the_results_in_memory() -> None:
    s = _gemm()
    s["C"].reorder("k", "i", "j")
    how = Accumulation(s["C"])
    assert (how.level, how.is_apart) == (-1, False)


def test_a_loop_that_runs_once_is_no_loop() -> None:
    s = _gemm(n=1)
    s["C"].reorder("j", "k", "i")
    assert Accumulation(s["C"]).level == 1


def test_a_part_of_the_results_is_in_registers_from_an_inner_loop_on() -> None:
    s = _gemm()
    k0, k1 = s["C"].split("k", 5)
    s["C"].reorder(k0, "i", "j", k1)
    how = Accumulation(s["C"])
    assert (how.position, how.level, how.is_in_registers, how.is_apart) == (0, 3, False, False)


def test_lanes_and_indices_are_not_moved_into_registers_part_by_part() -> None:
    s = _gemm()
    k0, k1 = s["C"].split("k", 5)
    s["C"].reorder(k0, "i", "j", k1)
    s["C"].vectorize(k1)
    how = Accumulation(s["C"])
    assert (how.level, how.is_apart, [loop.name for loop in how.lanes]) == (-1, True, ["k.1"])
    s = best_index()
    k0, k1 = s["best"].split("k", 3)
    s["best"].reorder(k0, "i", k1)
    how = Accumulation(s["best"])
    assert (how.level, how.is_apart, how.num_results) == (-1, True, 2)


def test_a_tile_may_be_too_large_for_registers() -> None:
    def level(m: int) -> object:
        s = _gemm(n=64, m=m)
        s["C"].reorder("k", "i", "j")
        s["C"].unroll("i")
        s["C"].unroll("j")
        return Accumulation(s["C"]).level

    assert (level(16), level(17)) == (0, -1)


def test_tiles_that_overlap_are_summed_apart() -> None:
    s = _gemm()
    i0, i1 = s["C"].split("i", 6)
    s["C"].reorder("k", i0, i1, "j")
    how = Accumulation(s["C"])
    assert (how.level, how.is_apart) == (-1, True)


def test_half_types_are_summed_apart_where_the_caller_sees_them() -> None:
    s = _gemm(dtype="float16")
    s["C"].reorder("k", "i", "j")
    assert Accumulation(s["C"]).is_apart
    assert buffer_dtype(s["C"]) == "float16"
    inner = s["C"].cache_write()
    inner.reorder("k", "i", "j")
    assert buffer_dtype(inner) == "float32"
    assert not Accumulation(inner).is_apart


def test_memory_that_is_read_in_registers_needs_no_tile() -> None:
    s = gemm_relu()
    i0, i1 = s["D"].split("i", 5)
    s["D"].reorder("j", i0, i1)
    s["C"].compute_at("D", i0)
    s["C"].reorder("j", "k", "i")
    s["C"].unroll("i")
    assert Accumulation(s["C"]).is_apart, "D reads it in a loop"
    s["D"].unroll(i1)
    assert not Accumulation(s["C"]).is_apart


def test_tiles_of_a_population_differ() -> None:
    how = _tiled(_gemm(), np.array([4, 6, 1]))  # type: ignore[arg-type]
    np.testing.assert_array_equal(how.level, [2, 2, 2])
    np.testing.assert_array_equal(how.is_apart, [True, True, True])
    s = _gemm()
    i0, i1 = s["C"].split("i", np.array([1, 4, 6]))
    s["C"].reorder(i0, "k", "j", i1)
    s["C"].unroll(i1)
    s["C"].split("j", np.array([12, 12, 1]))
    np.testing.assert_array_equal(Accumulation(s["C"]).level, [-1, -1, -1])
    np.testing.assert_array_equal(Accumulation(s["C"]).is_apart, [False, False, True])


# --- unrolling --------------------------------------------------------------------------------------------------------


def _unrolled(s: Schedule, stage: str) -> list[str]:
    unrolling = Unrolling(s)
    return [loop.name for loop in s[stage].leaves if unrolling.is_unrolled(loop)]


@pytest.mark.parametrize(
    ("max_step", "unrolled"),
    [(0, []), (9, []), (10, ["k"]), (143, ["k"]), (144, ["j", "k"])],
)
def test_a_pragma_counts_what_a_reduction_sets_up_and_writes_back(max_step: int, unrolled: list[str]) -> None:
    """12 times: a sum is set to 0, 10 products are added, and it is written."""
    s = _gemm()
    s["C"].pragma("i", auto_unroll_max_step=max_step)
    assert _unrolled(s, "C") == unrolled


def test_a_pragma_counts_how_lanes_are_summed() -> None:
    """Lanes are set to 0, added to, and summed in three statements more."""
    s = _gemm()
    s["C"].vectorize("k")
    s["C"].pragma("i", auto_unroll_max_step=12 * 5 - 1)
    assert _unrolled(s, "C") == []
    s["C"].pragma("i", auto_unroll_max_step=12 * 5)
    assert _unrolled(s, "C") == ["j"]


def test_of_pragmas_inside_each_other_the_larger_one_counts() -> None:
    s = gemm_relu()
    s["C"].compute_at("D", "i")
    s["C"].pragma("j", auto_unroll_max_step=4)
    s["D"].pragma("i", auto_unroll_max_step=10)
    assert _unrolled(s, "C") == ["k"]
    assert _unrolled(s, "D") == []
    s["D"].pragma("i", auto_unroll_max_step=12)
    assert _unrolled(s, "D") == ["j"]


def test_nothing_around_a_parallel_loop_is_unrolled() -> None:
    s = gemm_relu()
    i0, _ = s["D"].split("i", 4)
    s["D"].parallel("j")
    s["D"].pragma(i0, auto_unroll_max_step=1 << 62)
    assert _unrolled(s, "D") == []


def test_a_huge_population_of_statements_does_not_overflow() -> None:
    A = te.placeholder((1024,) * 6, name="A")
    s = Schedule(Task([A], te.compute((1024,) * 6, lambda *i: A[i], name="B")))
    first, *rest = s["B"].loops
    s["B"].pragma(first, auto_unroll_max_step=np.array([16, 1024, 1 << 40]))  # type: ignore[arg-type]
    unrolling = Unrolling(s)
    np.testing.assert_array_equal(unrolling.is_unrolled(rest[-1]), [False, True, True])
    np.testing.assert_array_equal(unrolling.is_unrolled(rest[0]), [False, False, False])


def test_what_sets_up_results_in_memory_is_not_written_out_but_by_a_pragma() -> None:
    """Nothing is gained by unrolling a loop that stores a constant to memory."""
    s = _gemm()
    s["C"].reorder("k", "i", "j")
    s["C"].unroll("j")
    (_, _, j) = s["C"].leaves
    assert [Unrolling(s).kind(j, place) for place in (NEST, START)] == ["unroll", "serial"]
    assert format_nest(build_nests(s).kernel).count("unroll j") == 1


# --- cutting ----------------------------------------------------------------------------------------------------------


def test_copies_are_shared_among_the_loops_around_a_body() -> None:
    assert copies_left(3, MAX_COPIES) == 3
    assert copies_left(3, 3) == 1
    assert copies_left(2, 1) == 1  # it is not cut
    assert not is_cut(2, 1)
    assert copies_left(1, 1) == 1


def test_a_loop_is_cut_into_few_pieces() -> None:
    assert is_cut(MAX_PIECES, MAX_COPIES)
    assert not is_cut(MAX_PIECES + 1, MAX_COPIES)


def test_a_loop_that_is_written_out_is_not_cut() -> None:
    assert may_be_cut(False, 8)
    assert not may_be_cut(True, 8)
    assert not may_be_cut(False, 1 << 25)


def test_cuts_of_a_population() -> None:
    np.testing.assert_array_equal(is_cut(np.array([1, 3, 4, 5]), np.array([1, 2, 9, 9])), [True, False, True, False])
    np.testing.assert_array_equal(copies_left(np.array([1, 3, 4, 5]), np.array([1, 2, 9, 9])), [1, 2, 2, 9])
    np.testing.assert_array_equal(may_be_cut(np.array([True, False]), np.array([8, 8])), [False, True])
