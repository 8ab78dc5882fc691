"""Passes over loops: long vectors in strips, small loops unrolled, memory of each lane's own."""

from __future__ import annotations

import pytest

from tests.schedule.programs import gather, gemm_relu
from tilewright import te
from tilewright.ir import For, LoopNest, Stmt, format_nest, lower
from tilewright.ir.walk import children
from tilewright.schedule import Schedule
from tilewright.te import Task


def _scaled(length: int) -> Schedule:
    A = te.placeholder((length,), name="A")
    B = te.compute((length,), lambda i: A[i] * 2.0, name="B")
    s = Schedule(Task([A], B, "scale"))
    s["B"].vectorize("i")
    return s


def _loops(nest: LoopNest) -> list[tuple[str, int, int, str]]:
    def go(stmt: Stmt) -> list[tuple[str, int, int, str]]:
        here = [(stmt.var.name, stmt.begin, stmt.extent, stmt.kind)] if isinstance(stmt, For) else []
        return here + [loop for child in children(stmt) for loop in go(child)]

    return go(nest.body)


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (1, []),
        (7, [("i", 0, 7, "vectorize")]),
        (64, [("i", 0, 64, "vectorize")]),
        (96, [("i.v", 0, 3, "for"), ("i.l", 0, 32, "vectorize")]),
        (100, [("i.v", 0, 3, "for"), ("i.l", 0, 32, "vectorize"), ("i", 96, 4, "vectorize")]),
    ],
)
def test_long_vector_becomes_strips_and_a_rest(length: int, expected: list[tuple[str, int, int, str]]) -> None:
    found = _loops(lower(_scaled(length), check=True).kernel)
    assert [(name, begin, extent, _keyword(kind)) for name, begin, extent, kind in found] == expected


def _keyword(kind: str) -> str:
    return kind if kind == "vectorize" else "for"


def test_strips_of_an_index_from_memory_follow_the_strip() -> None:
    s = gather(100)
    s["G"].vectorize("i")
    text = format_nest(lower(s, check=True).kernel)
    assert "G[i.v*32 + i.l] = (A[max(min((B[i.v*32 + i.l]), 99), 0)] + 1.0)" in text


@pytest.mark.parametrize(
    ("max_step", "unrolled"),
    [(0, set()), (3, set()), (4, {"k"}), (15, {"k"}), (18, {"k", "j"}), (100, {"k", "j"})],
)
def test_pragma_unrolls_from_inside_as_long_as_the_body_is_small(max_step: int, unrolled: set[str]) -> None:
    s = gemm_relu(4, 3, 4)
    s["C"].pragma("i", auto_unroll_max_step=max_step)
    loops = _loops(lower(s, check=True).kernel)
    assert {name for name, _, _, kind in loops if kind == "unroll"} == unrolled


def test_accumulator_inside_a_vectorized_loop_has_an_element_a_lane() -> None:
    s = gemm_relu()
    s["C"].vectorize("i")
    text = format_nest(lower(s, check=True).kernel)
    assert "C.acc = allocate(float32[20])" in text
    assert "C.acc[i] sum= (A[i, k] * B[k, j])" in text


def test_loops_of_one_iteration_vanish() -> None:
    s = gemm_relu(1, 12, 1)
    s["D"].split("j", 100)
    assert [name for name, _, _, _ in _loops(lower(s, check=True).kernel)] == ["j", "j.1"]
