"""A population is one schedule with arrays as factors: each row has the extents of its own concrete schedule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.schedule.programs import blur, gemm_relu, padded_sum
from tilewright import te
from tilewright.errors import LoweringError, ScheduleError
from tilewright.ir import lower
from tilewright.schedule import Schedule, Trace
from tilewright.schedule.loop import Extent
from tilewright.te import Task

NUM_ROWS = 40
Factors = list[Extent]


def _reshaped() -> Schedule:
    """Divisions and remainders in the index of a read."""
    A = te.placeholder((12, 10), name="A")
    T = te.compute((10, 12), lambda i, j: A[j, i] + 1.0, name="T")
    F = te.compute((120,), lambda n: T[n // 12, n % 12], name="F")
    return Schedule(Task([A], F, "reshaped"))


def _strided() -> Schedule:
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda x: A[x] * 2.0, name="B")
    C = te.compute((20,), lambda x: B[x * 3] + B[te.minimum(x * 3 + 2, 61)] + B[63 - x], name="C")
    return Schedule(Task([A], C, "strided"))


def _tiles(s: Schedule, f: Factors) -> None:
    i = s["D"].split("i", [f[0], f[1]])
    j = s["D"].split("j", f[2])
    s["D"].reorder(i[0], j[0], i[1], i[2], j[1])
    s["C"].compute_at("D", j[0])
    s["C"].split("k", f[3])
    s["C"].split("i", f[1])


def _chain(s: Schedule, f: Factors) -> None:
    x0, _, _ = s["C"].split("x", [f[0], f[1]])
    s["B"].compute_at("C", x0)
    x0, _ = s["B"].split("x", f[2])
    s["A"].cache_read("B").compute_at("B", x0)
    s["A.cache"].split("i0", f[3])


def _fused(s: Schedule, f: Factors) -> None:
    fused = s["D"].fuse("i", "j")
    outer, _ = s["D"].split(fused, f[0])
    s["C"].compute_at("D", outer)
    s["C"].split(s["C"].fuse("i", "j"), f[1])


def _fused_tiles(s: Schedule, f: Factors) -> None:
    i0, i1 = s["D"].split("i", f[0])
    j0, j1 = s["D"].split("j", f[1])
    s["D"].reorder(i0, j0, i1, j1)
    s["D"].fuse(i0, j0)
    s["C"].compute_at("D", "i.0@j.0")


def _packed(s: Schedule, f: Factors) -> None:
    i0, i1 = s["C"].split("i", f[0])
    j0, j1 = s["C"].split("j", f[1])
    k0, k1 = s["C"].split("k", f[2])
    s["C"].reorder(i0, j0, k0, k1, i1, j1)
    s["B"].pack("C")
    panel = s["A"].pack("C")
    panel.compute_at("C", k0)
    panel.split("k.1", f[3])


def _cached(s: Schedule, f: Factors) -> None:
    cache = s["C"].cache_write()
    i0, _ = s["C"].split("i", f[0])
    cache.compute_at("C", i0)
    k0, _ = cache.split("k", f[1])
    cache.reorder(k0, "i", "j")
    s["A"].cache_read(cache).compute_at(cache, k0)


def _rfactored(s: Schedule, f: Factors) -> None:
    _, k1 = s["C"].split("k", f[0])
    s["C"].rfactor(k1)
    i0, _ = s["C"].split("i", f[1])
    s["C.rf"].compute_at("C", i0)


def _window(s: Schedule, f: Factors) -> None:
    x0, _ = s["S"].split("x", f[0])
    s["P"].compute_at("S", x0)
    s["P"].split("x", f[1])


def _index_arithmetic(s: Schedule, f: Factors) -> None:
    n0, _ = s["F"].split("n", f[0])
    s["T"].compute_at("F", n0)


def _steps_and_turns(s: Schedule, f: Factors) -> None:
    x0, _ = s["C"].split("x", f[0])
    s["B"].compute_at("C", x0)


SKETCHES: dict[str, tuple[Callable[[], Schedule], Callable[[Schedule, Factors], None], int]] = {
    "tiles": (gemm_relu, _tiles, 4),
    "chain": (blur, _chain, 4),
    "fused": (gemm_relu, _fused, 2),
    "fused tiles": (gemm_relu, _fused_tiles, 2),
    "packed": (gemm_relu, _packed, 4),
    "cached": (gemm_relu, _cached, 2),
    "rfactored": (gemm_relu, _rfactored, 2),
    "window": (padded_sum, _window, 2),
    "index arithmetic": (_reshaped, _index_arithmetic, 1),
    "steps and turns": (_strided, _steps_and_turns, 1),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SKETCHES)
def test_rows_have_the_extents_of_concrete_schedules(name: str, seed: int) -> None:
    make, apply, num_factors = SKETCHES[name]
    rng = np.random.default_rng(seed)
    matrix: NDArray[np.int64] = rng.choice([1, 1, 2, 3, 4, 5, 7, 8, 12, 13, 40], (NUM_ROWS, num_factors))
    population = make()
    apply(population, [matrix[:, n] for n in range(num_factors)])
    found = _extents(population)
    for row in range(NUM_ROWS):
        concrete = make()
        apply(concrete, [int(f) for f in matrix[row]])
        expected = {key: int(extent) for key, extent in _extents(concrete).items()}
        got = {key: int(np.broadcast_to(extent, NUM_ROWS)[row]) for key, extent in found.items()}
        assert got == expected, f"row {row} with factors {matrix[row].tolist()}"


def _extents(s: Schedule) -> dict[tuple[str, str], Extent]:
    """By the names of stage and loop, all loops that the leaves are made from included."""
    return {(loop.stage.name, loop.name): extent for loop, extent in s.extents.items()}


def test_trace_of_a_population_gives_the_trace_of_each_candidate() -> None:
    s = gemm_relu()
    s["D"].split("i", np.array([2, 4, 5]))
    assert 's["D"].split("i", np.array([2, 4, 5]))' in str(s.trace)
    assert "for i.0 in range([10  5  4])" in str(s)
    one = s.trace.candidate(1)
    assert 's["D"].split("i", 4)' in str(one)
    assert Trace.from_json(one.to_json()) == one
    with pytest.raises(ScheduleError, match="belongs to a population"):
        s.trace.to_json()


def test_populations_of_different_sizes_do_not_mix() -> None:
    s = gemm_relu()
    s["D"].split("i", np.array([2, 4, 5]))
    with pytest.raises(ScheduleError, match="arrays of 2 and 3 candidates"):
        s["D"].split("j", np.array([2, 4]))


def test_population_is_not_lowered() -> None:
    s = gemm_relu()
    s["D"].split("i", np.array([2, 4, 5]))
    with pytest.raises(LoweringError, match="loop i.0 has an array as its extent"):
        lower(s)


def test_a_row_too_long_to_unroll_is_that_rows_alone() -> None:
    s = gemm_relu(4000)
    _, inner = s["D"].split("i", np.array([2, 2000]))
    s["D"].unroll(inner)
    s.trace.candidate(0).apply(s.task)
    with pytest.raises(ScheduleError, match="loop i.1 has 2000 iterations; at most 1024 unroll"):
        s.trace.candidate(1).apply(s.task)
