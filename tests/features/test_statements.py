"""The table of features: what single features say, and what holds for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tests.features.populations import FAMILIES, fused_gemm_relu, tiled_gemm
from tilewright import te
from tilewright.features import (
    BUFFER_FEATURES,
    ESTIMATE,
    FEATURE_NAMES,
    Hardware,
    Statement,
    access_features,
    analyze,
    raw_features,
    statement_features,
    traffic,
)
from tilewright.schedule import Extent, Schedule
from tilewright.target import Target
from tilewright.te import Expr, Task

HARDWARE = Hardware.from_target(Target.parse("llvm -mcpu=haswell -num-cores=4"))
NUM_ROWS = 24


@pytest.mark.parametrize("is_dividing", [True, False])
@pytest.mark.parametrize("name", FAMILIES)
def test_features_of_a_candidate_do_not_depend_on_its_population(name: str, is_dividing: bool) -> None:
    family = FAMILIES[name]
    matrix = family.sample(4, NUM_ROWS, is_dividing=is_dividing)
    together = statement_features(family.population(matrix), NUM_ROWS, HARDWARE).values
    for row in range(NUM_ROWS):
        alone = statement_features(family.concrete(matrix, row), 1, HARDWARE).values
        different = [FEATURE_NAMES[f] for f in np.flatnonzero((alone[0] != together[row]).any(axis=0))]
        assert not different, f"{name} with {matrix[row].tolist()}"


@pytest.mark.parametrize("name", FAMILIES)
def test_table_is_finite_and_has_a_row_for_each_executed_statement(name: str) -> None:
    family = FAMILIES[name]
    schedule = family.population(family.sample(5, NUM_ROWS, is_dividing=True))
    table = statement_features(schedule, NUM_ROWS, HARDWARE)
    executed = [s for s in schedule.active_stages if s.name != "W.pack"]  # weights are packed before the kernel runs
    assert table.values.shape == (NUM_ROWS, len(executed), len(FEATURE_NAMES))
    assert table.values.dtype == np.float32
    assert np.isfinite(table.values).all()


def test_names_are_those_of_the_columns_and_unique() -> None:
    statement = _statement(tiled_gemm([2, 3, 8, 4]), "C")
    names = [name for name, _ in raw_features(statement, HARDWARE)]
    assert FEATURE_NAMES[: len(names)] == tuple(names)
    assert FEATURE_NAMES[-1] == ESTIMATE
    assert len(set(FEATURE_NAMES)) == len(FEATURE_NAMES)


# --- positions of annotated loops -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loops", "position"),
    [
        (["j"], "inner_spatial"),
        (["i.0"], "outer_spatial"),
        (["i.1"], "middle_spatial"),
        (["k.1"], "inner_reduce"),
        (["k.0"], "outer_reduce"),
        (["i.1", "j"], "inner_spatial"),
        (["k.1", "j"], "mixed"),
        ([], "none"),
    ],
)
def test_position_of_unrolled_loops(loops: list[str], position: str) -> None:
    s = _plain_gemm()
    for loop in loops:
        s["C"].unroll(loop)
    features = _features(s, "C")
    named = {name: features[f"unroll_{name}"] for name in ("none", "mixed", *_POSITIONS)}
    assert [name for name, flag in named.items() if flag] == [position]


_POSITIONS = [f"{where}_{kind}" for kind in ("spatial", "reduce") for where in ("inner", "middle", "outer")]


def test_position_is_that_among_loops_that_run_more_than_once() -> None:
    A = te.placeholder((16, 1), name="A")
    s = Schedule(Task([A], te.compute((16, 1), lambda i, j: A[i, j] + 1.0, name="B"), "column"))
    s["B"].unroll("i")
    s["B"].unroll("j")
    features = _features(s, "B")
    assert (features["unroll_num"], features["unroll_inner_spatial"]) == (1, 1)


# --- buffers ----------------------------------------------------------------------------------------------------------


def test_buffers_are_ordered_by_lines_for_each_candidate() -> None:
    matrix = FAMILIES["gemm"].sample(0, NUM_ROWS, is_dividing=True)
    table = statement_features(FAMILIES["gemm"].population(matrix), NUM_ROWS, HARDWARE)
    lines = [table.values[:, 0, FEATURE_NAMES.index(f"buffer{k}_lines")] for k in range(5)]
    assert all((a >= b).all() for a, b in itertools.pairwise(lines))


def test_accesses_are_read_written_or_both() -> None:
    statements = {s.stage.name: s for s in analyze(fused_gemm_relu([8, 16, 2, 4]), 1, HARDWARE)}
    assert {a.buffer: a.kind for a in statements["C"].accesses} == {"C": "readwrite", "A": "read", "B": "read"}
    assert {a.buffer: a.kind for a in statements["D"].accesses} == {"D": "write", "C": "read"}


def test_the_innermost_loop_that_does_not_move_a_buffer_reuses_it() -> None:
    statement = _statement(_plain_gemm(), "C")  # loops i.0 4, i.1 6, k.0 4, k.1 4, j 32
    a = _access(statement, "A")
    assert (a["reuse_loop"], a["reuse_count"], a["reuse_distance_iterations"]) == (1, 32, 1)
    b = _access(statement, "B")
    assert (b["reuse_loop"], b["reuse_count"], b["reuse_distance_iterations"]) == (1, 6, 16 * 32)
    assert b["reuse_distance_bytes"] == 4 * (16 * 32 + 16 + 32)  # all of B, a row of A and of C
    assert b["unique_bytes_per_reuse"] == b["unique_bytes"] / 6


def test_what_another_statement_wrote_is_reused_serially() -> None:
    statement = _statement(fused_gemm_relu([8, 16, 2, 4]), "D")
    c = _access(statement, "C")
    assert (c["reuse_loop"], c["reuse_serial"], c["reuse_none"]) == (0, 1, 0)
    d = _access(statement, "D")
    assert (d["reuse_none"], d["bytes_per_reuse"]) == (1, 2 * d["bytes"])


# --- this machine -----------------------------------------------------------------------------------------------------


def test_lanes_and_registers() -> None:
    features = _features(tiled_gemm([2, 6, 16, 4]), "C")
    assert features["lane_use"] == 1
    assert features["num_vectors"] == 2  # 16 elements in registers of 8
    assert (features["register_tile"], features["accumulators"]) == (96, 12)
    assert features["reduction_run"] == 4
    assert _features(tiled_gemm([1, 6, 2, 4]), "C")["lane_use"] == 0.25


def test_waste_of_tiles_that_do_not_divide() -> None:
    assert _features(tiled_gemm([1, 5, 16, 4]), "C")["tile_waste"] == 25 / 24
    assert _features(tiled_gemm([1, 6, 16, 5]), "C")["tile_waste"] == 20 / 16


def test_recomputing_a_halo_is_seen() -> None:
    whole, tiled = FAMILIES["conv2d, pad i.0"].make([8, 8, 16, 4]), FAMILIES["conv2d, pad i.0"].make([2, 8, 16, 4])
    assert _features(whole, "P")["recomputed"] == 1
    assert _features(tiled, "P")["recomputed"] == 4 * 4 / 10


def test_balance_over_threads() -> None:
    assert _features(tiled_gemm([2, 3, 8, 4]), "C")["balance"] == 1  # 4 tiles on 4 threads
    assert _features(tiled_gemm([4, 2, 8, 4]), "C")["balance"] == pytest.approx(4 / 3)  # 3 tiles on 4 threads


def test_traffic_grows_as_the_cache_shrinks() -> None:
    statement = _statement(_plain_gemm(), "C")
    amounts = [float(traffic(statement, size, 64).total_bytes[0]) for size in (1 << 20, 2048, 512, 64)]
    assert amounts == sorted(amounts)
    assert amounts[0] == 4 * (24 * 16 + 16 * 32 + 2 * 24 * 32)  # everything once, the result in both directions


def _plain_gemm() -> Schedule:
    """Loops i.0 4, i.1 6, k.0 4, k.1 4, j 32."""
    A, B = te.placeholder((24, 16), name="A"), te.placeholder((16, 32), name="B")
    k = te.reduce_axis(16, name="k")
    C = te.compute((24, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = Schedule(Task([A, B], C, "gemm"))
    i0, i1 = s["C"].split("i", 6)
    k0, k1 = s["C"].split("k", 4)
    s["C"].reorder(i0, i1, k0, k1, "j")
    return s


def _statement(schedule: Schedule, stage: str) -> Statement:
    return next(s for s in analyze(schedule, 1, HARDWARE) if s.stage.name == stage)


def _features(schedule: Schedule, stage: str) -> dict[str, float]:
    columns = raw_features(_statement(schedule, stage), HARDWARE)
    return {name: float(np.broadcast_to(np.asarray(column, np.float64), 1)[0]) for name, column in columns}


def _access(statement: Statement, buffer: str) -> dict[str, float]:
    access = next(a for a in statement.accesses if a.buffer == buffer)
    features = access_features(statement, access, HARDWARE.line_bytes)
    return {name: float(np.broadcast_to(np.asarray(features[name], np.float64), 1)[0]) for name in BUFFER_FEATURES}


def test_tests_for_the_end_of_a_reduction_are_of_the_candidates_that_need_them() -> None:
    """All of a population have them in their expressions, if one of them needs them."""

    def factored(factor: Extent) -> Schedule:
        A = te.placeholder((24, 16), dtype="int32", name="A")
        k = te.reduce_axis(16, name="k")
        s = Schedule(Task([A], te.compute((24,), lambda i: te.max(A[i, k], axis=k), name="Y"), "largest"))
        block, _ = s["Y"].split("k", factor)
        partial = s["Y"].rfactor(block)
        partial.compute_at("Y", "i")
        return s

    factors = np.array([2, 3, 4, 5, 8, 16])
    together = statement_features(factored(factors), len(factors), HARDWARE).values
    for row, factor in enumerate(factors.tolist()):
        np.testing.assert_array_equal(statement_features(factored(factor), 1, HARDWARE).values[0], together[row])


@pytest.mark.parametrize("num_caches", [1, 2])
def test_the_end_of_a_packed_copy_is_no_operation_where_a_cache_computes_its_elements(num_caches: int) -> None:
    """All of a population test for it, if one of them packs more than there is."""

    def cached(factor: Extent) -> Schedule:
        A, B = te.placeholder((12, 16), name="A"), te.placeholder((16, 20), name="B")
        k = te.reduce_axis(16, name="k")
        s = Schedule(
            Task([A, B], te.compute((12, 20), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C"), "gemm")
        )
        s["C"].split("k", factor)
        stage = s["B"].pack("C")
        for _ in range(num_caches):
            stage = stage.cache_write()
        return s

    factors = np.array([2, 4, 8, 3, 5, 7])
    together = analyze(cached(factors), len(factors), HARDWARE)
    for factor in factors.tolist():
        alone = analyze(cached(factor), 1, HARDWARE)
        assert [each.counts for each in together] == [each.counts for each in alone]


@pytest.mark.parametrize("combined", [te.max, te.sum])
def test_the_end_of_a_part_that_is_split_again_is_no_end_of_the_whole(combined: Callable[..., Expr]) -> None:
    """Of a candidate whose first split divides, and whose second does not."""

    def factored(factor: Extent, inner: Extent) -> Schedule:
        A, k = te.placeholder((24, 18), dtype="float64", name="A"), te.reduce_axis(18, name="k")
        s = Schedule(Task([A], te.compute((24,), lambda i: combined(A[i, k], axis=k), name="Y"), "largest"))
        _, rest = s["Y"].split("k", factor)
        _, last = s["Y"].split(rest, inner)
        s["Y"].rfactor(last)
        return s

    factors = np.array([(33, 16), (4, 2), (9, 4), (6, 5), (5, 3), (7, 7), (18, 4)])
    together = statement_features(factored(*factors.T), len(factors), HARDWARE).values
    for row, (factor, inner) in enumerate(factors.tolist()):
        alone = statement_features(factored(factor, inner), 1, HARDWARE).values[0]
        np.testing.assert_array_equal(alone, together[row])
