"""Schedules that are easy to lower wrongly, run by the interpreter and compared with the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.schedule.programs import blur, gather, gemm_relu, padded_sum
from tilewright import te
from tilewright.ir import lower
from tilewright.schedule import Schedule
from tilewright.te import Task, assert_matches, evaluate, random_inputs, reduction_size
from tilewright.testing.interpret import interpret


def _guarded_chain(n: int = 30) -> Schedule:
    """Parts of T that leave the tensor are moved to its border, and what they read of A's copy with them."""
    A = te.placeholder((n,), name="A")
    S = te.compute((n,), lambda x: A[x] * 2.0, name="S")
    T = te.compute((n,), lambda x: S[x] + 1.0, name="T")
    U = te.compute((n,), lambda x: te.select(x >= 3, T[x - 3], 0.0) + T[x], name="U")
    return Schedule(Task([A], U, "guarded_chain"))


def _chain_through_a_moved_part() -> Schedule:
    s = _guarded_chain()
    x0, _ = s["U"].split("x", 7)
    s["T"].compute_at("U", x0)
    s["S"].compute_at("U", x0)
    return s


def _chain_in_fused_tiles() -> Schedule:
    A = te.placeholder((12, 12), name="A")
    T = te.compute((13, 13), lambda i, j: A[te.minimum(i, 11), te.minimum(j, 11)] + 1.0, name="T")
    U = te.compute((12, 12), lambda i, j: T[i + 1, j + 1] + T[i, j], name="U")
    s = Schedule(Task([A], U, "fused_tiles"))
    outer, _ = s["U"].split(s["U"].fuse("i", "j"), 3)
    s["U"].cache_write().compute_at("U", outer)
    s["T"].compute_at("U", outer)
    return s


def _fused_and_split_by_one() -> Schedule:
    s = gemm_relu(6, 5, 4)
    outer, _ = s["D"].split(s["D"].fuse("i", "j"), 1)
    s["C"].compute_at("D", outer)
    return s


def _inner_loop_outside() -> Schedule:
    """The inner loop of a split that does not divide runs around the outer one."""
    s = gemm_relu()
    i0, i1 = s["D"].split("i", 6)
    s["D"].reorder(i1, i0)
    s["C"].compute_at("D", i1)
    return s


def _copy_along_an_uneven_reduction() -> Schedule:
    s = gemm_relu()
    k0, _ = s["C"].split("k", 4)
    s["C"].reorder(k0, "i", "j")
    s["A"].cache_read("C").compute_at("C", k0)
    s["A"].cache_read("A.cache").compute_at("C", k0)
    return s


def _packed_panels_of_uneven_tiles() -> Schedule:
    s = gemm_relu(19, 13, 11)
    i0, i1 = s["C"].split("i", 4)
    j0, j1 = s["C"].split("j", 5)
    k0, k1 = s["C"].split("k", 3)
    s["C"].reorder(j0, k0, i0, k1, i1, j1)
    s["B"].pack("C").compute_at("C", k0)
    s["A"].pack("C").compute_at("C", i0)
    return s


def _packed_twice_around_fused_loops() -> Schedule:
    s = gemm_relu(6, 5, 4)
    s["D"].fuse("i", "j")
    s["C"].pack("D").compute_at("D", "i@j")
    s["C"].pack("C.pack")
    return s


def _vector_around_an_accumulator() -> Schedule:
    s = padded_sum(80)
    s["P"].compute_inline()
    s["S"].vectorize("x")
    return s


def _long_vector_of_indices_from_memory() -> Schedule:
    s = gather(100)
    s["G"].vectorize("i")
    return s


def _two_levels_of_attachment() -> Schedule:
    s = blur(37)
    x0, _, _ = s["C"].split("x", [3, 4])
    s["B"].compute_at("C", x0)
    x0, _ = s["B"].split("x", 5)
    s["A"].cache_read("B").compute_at("B", x0)
    return s


def _index_that_wraps_around() -> Schedule:
    """Position 256 reads the first element again: what a loop needs is not what its variable says."""
    X = te.placeholder((256,), name="X")
    P = te.compute((256,), lambda p: X[p] * 2.0, name="P")
    C = te.compute((300,), lambda i: P[te.cast(i, "uint8")] + 1.0, name="C")
    s = Schedule(Task([X], C))
    s["P"].compute_at("C", "i")
    return s


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    make.__name__.strip("_").replace("_", " "): make
    for make in (
        _chain_through_a_moved_part,
        _chain_in_fused_tiles,
        _fused_and_split_by_one,
        _inner_loop_outside,
        _copy_along_an_uneven_reduction,
        _packed_panels_of_uneven_tiles,
        _packed_twice_around_fused_loops,
        _vector_around_an_accumulator,
        _long_vector_of_indices_from_memory,
        _two_levels_of_attachment,
        _index_that_wraps_around,
    )
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_nest_computes_what_the_task_says(name: str) -> None:
    schedule = SCHEDULES[name]()
    task = schedule.task
    inputs = random_inputs(task, np.random.default_rng(0))
    outputs = interpret(lower(schedule, check=True), *inputs)
    for tensor, actual, expected in zip(task.outputs, outputs, evaluate(task, *inputs), strict=True):
        assert_matches(actual, expected, tensor.dtype, reduction_size(task))
