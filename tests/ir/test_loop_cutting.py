"""Loops are cut where conditions change: the interior of padding tests nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.schedule.programs import gemm_relu, padded_sum
from tilewright import ir, te
from tilewright.ir import Block, For, LoopNest, Stmt, Store, Update, Where, expressions, lower
from tilewright.runtime.build import build
from tilewright.schedule import MAX_COPIES, Schedule
from tilewright.te import Expr, Task, Var
from tilewright.te.index import Interval, bounds


def _padded_conv2d(size: int = 14) -> Schedule:
    """A 3x3 convolution whose padding is part of the read."""
    X = te.placeholder((size, size, 4), name="X")
    W = te.placeholder((3, 3, 4, 8), name="W", constant=True)
    r, s, c = te.reduce_axis(3, "r"), te.reduce_axis(3, "s"), te.reduce_axis(4, "c")
    P = te.compute(
        (size + 2, size + 2, 4),
        lambda y, x, c: te.select((y >= 1) & (y <= size) & (x >= 1) & (x <= size), X[y - 1, x - 1, c], 0.0),
        "P",
    )
    Y = te.compute((size, size, 8), lambda y, x, f: te.sum(P[y + r, x + s, c] * W[r, s, c, f], axis=[r, s, c]), "Y")
    return Schedule(Task([X, W], Y, "conv2d"))


def _inlined_conv2d() -> Schedule:
    s = _padded_conv2d()
    s["P"].compute_inline()
    return s


def _conv2d_in_tiles() -> Schedule:
    s = _padded_conv2d()
    x0, x1 = s["Y"].split("x", 6)
    s["Y"].reorder("y", x0, "r", "s", "c", x1, "f")
    s["Y"].vectorize("f")
    s["Y"].unroll(x1)
    s["Y"].parallel("y")
    s["P"].compute_at("Y", x0)
    return s


def _inlined_padding() -> Schedule:
    s = padded_sum(50)
    s["P"].compute_inline()
    s["S"].vectorize("x")
    return s


def _parallel_padding() -> Schedule:
    s = padded_sum(50)
    s["P"].compute_inline()
    s["S"].parallel("x")
    return s


def _uneven_reduction() -> Schedule:
    s = gemm_relu()
    k0, k1 = s["C"].split("k", 4)
    s["C"].reorder(k0, "i", "j", k1)
    return s


def _uneven_reduction_in_levels() -> Schedule:
    s = gemm_relu(20, 12, 29)
    s["C"].split("k", [3, 4])
    return s


# Copies of the code are bounded, so that a border or the end of a reduction may keep its tests. The interior may not.
BORDER = 1 - (12 / 14) ** 2
END = 5 / 29
CASES: dict[str, tuple[Callable[[], Schedule], float]] = {
    "padding in one dimension": (_inlined_padding, 0.0),
    "padding in a parallel loop": (_parallel_padding, 0.0),
    "padding stage of two dimensions": (_padded_conv2d, 0.0),
    "padding in a convolution": (_inlined_conv2d, BORDER),
    "padding of a tile": (_conv2d_in_tiles, BORDER),
    "reduction that does not divide": (_uneven_reduction, 0.0),
    "reduction that does not divide, in levels": (_uneven_reduction_in_levels, END),
}


@pytest.mark.parametrize("name", CASES)
def test_interior_tests_nothing(name: str) -> None:
    make, allowed = CASES[name]
    tested, total = _points(lower(make(), check=True).kernel)
    assert tested <= allowed * total, f"{tested} of {total} points test a condition"


def test_parallel_loop_stays_one_loop() -> None:
    (loop,) = _loops(lower(_parallel_padding(), check=True).kernel.body, "x")
    assert isinstance(loop.body, Where)
    assert [(begin, end) for begin, end, _ in loop.body.cases] == [(0, 1), (1, 49), (49, 50)]


def test_vectorized_loop_is_cut_into_vectorized_loops() -> None:
    loops = _loops(lower(_inlined_padding(), check=True).kernel.body, "x")
    assert [(loop.begin, loop.extent, loop.kind) for loop in loops] == [
        (0, 1, "vectorize"),
        (1, 48, "vectorize"),
        (49, 1, "vectorize"),
    ]


def test_unrolled_loop_is_not_cut() -> None:
    s = padded_sum(50)
    s["P"].compute_inline()
    s["S"].unroll("r")
    assert all(loop.extent == 3 for loop in _loops(lower(s, check=True).kernel.body, "r"))


def test_copies_are_bounded() -> None:
    """Conditions on many loops at once do not multiply the code without end."""
    A = te.placeholder((9,) * 4, name="A")
    shape = (11,) * 4

    def element(*i: Expr) -> Expr:
        inside = te.logical_and(*(te.logical_and(x >= 1, x <= 9) for x in i))
        return te.select(inside, A[tuple(x - 1 for x in i)], 0.0)

    B = te.compute(shape, element, "B")
    nest = lower(Schedule(Task([A], B, "pad")), check=True).kernel
    assert sum(isinstance(stmt, Store) for stmt in _statements(nest.body)) <= MAX_COPIES


def _joined(sizes: list[int], function: Callable[[Expr], Expr] = lambda x: x) -> Schedule:
    """Tensors of these sizes one behind the other."""
    parts = [te.placeholder((size,), name=f"A{n}") for n, size in enumerate(sizes)]
    starts = [sum(sizes[:n]) for n in range(len(sizes) + 1)]

    def element(i: Expr) -> Expr:
        value = parts[-1][i - starts[-2]]
        for n in reversed(range(len(parts) - 1)):
            value = te.select(i < starts[n + 1], parts[n][i - starts[n]], value)
        return function(value)

    return Schedule(Task(parts, te.compute((starts[-1],), element, "J"), "join"))


SIZES = [3, 70, 16, 1, 100, 40, 9, 64]


def test_many_joined_tensors_are_a_loop_each() -> None:
    nest = lower(_joined(SIZES), check=True).kernel
    loops = _loops(nest.body, "i")
    assert [loop.extent for loop in loops] == SIZES
    assert all(isinstance(loop.body, Store) and isinstance(loop.body.value, ir.Load) for loop in loops)


def test_many_joined_tensors_in_vectors_are_cut_where_each_ends() -> None:
    s = _joined(SIZES)
    s["J"].vectorize("i")
    nest = lower(s, check=True).kernel
    stores = [stmt for stmt in _statements(nest.body) if isinstance(stmt, Store)]
    assert all(isinstance(store.value, ir.Load) for store in stores)
    strips = [loop.extent for loop in _loops(nest.body, "i.v")]
    assert strips == [70 // 32, 100 // 32]
    rests = [(loop.begin, loop.extent) for loop in _loops(nest.body, "i")]
    assert rests == [(0, 3), (67, 6), (73, 16), (89, 1), (186, 4), (190, 40), (230, 9), (239, 64)]


def test_a_function_of_many_joined_tensors_is_not_copied_for_each() -> None:
    def costly(x: Expr) -> Expr:
        return te.exp(x) + te.tanh(x) * te.sqrt(te.abs(x) + 1.0)

    (loop,) = _loops(lower(_joined(SIZES, costly), check=True).kernel.body, "i")
    assert loop.extent == sum(SIZES)


def test_a_condition_that_changes_too_often_stays() -> None:
    A = te.placeholder((50,), name="A")
    B = te.compute((100,), lambda i: te.select(i % 2 < 1, A[i // 2], 0.0), "B")
    (loop,) = _loops(lower(Schedule(Task([A], B, "spread")), check=True).kernel.body, "i")
    assert loop.extent == 100


@pytest.mark.parametrize("annotate", ["", "vectorize", "parallel", "both"])
def test_many_joined_tensors_are_joined_right(annotate: str) -> None:
    s = _joined(SIZES)
    if annotate == "both":
        s["J"].split("i", 48)
        s["J"].parallel("i.0")
        s["J"].vectorize("i.1")
    elif annotate:
        getattr(s["J"], annotate)("i")
    arrays = [np.random.default_rng(n).normal(size=size).astype(np.float32) for n, size in enumerate(SIZES)]
    np.testing.assert_array_equal(build(s, threads=2)(*arrays), np.concatenate(arrays))


def _statements(stmt: Stmt) -> list[Stmt]:
    return [stmt, *(inner for child in ir.walk.children(stmt) for inner in _statements(child))]


def _loops(stmt: Stmt, name: str) -> list[For]:
    return [s for s in _statements(stmt) if isinstance(s, For) and s.var.name == name]


def _points(nest: LoopNest) -> tuple[int, int]:
    """How many points of the nest's updates and stores evaluate a condition, and how many there are."""

    def go(stmt: Stmt, ranges: dict[Var, Interval], count: int) -> tuple[int, int]:
        if isinstance(stmt, For):
            inside = {**ranges, stmt.var: stmt.interval}
            return go(stmt.body, inside, count * stmt.extent)
        if isinstance(stmt, Block):
            parts = [go(inner, ranges, count) for inner in stmt.body]
        elif isinstance(stmt, Where):
            whole = ranges[stmt.var][1] - ranges[stmt.var][0] + 1
            parts = [
                go(case, {**ranges, stmt.var: Interval(begin, end - 1)}, count * (end - begin) // whole)
                for begin, end, case in stmt.cases
            ]
        else:
            assert isinstance(stmt, Store | Update)
            values = (stmt.value,) if isinstance(stmt, Store) else stmt.values
            conditions = [e.cond for value in values for e in expressions(value) if isinstance(e, te.Select)]
            return (count if any(_decide(e, ranges) is None for e in conditions) else 0), count
        return sum(a for a, _ in parts), sum(b for _, b in parts)

    return go(nest.body, {}, 1)


def _decide(e: Expr, ranges: dict[Var, Interval]) -> bool | None:
    if isinstance(e, ir.Test):
        low, high = bounds(e.form, ranges)
        assert e.op == "ge"
        return True if low >= 0 else False if high < 0 else None
    assert isinstance(e, te.Binary)
    assert e.op == "and"
    a, b = _decide(e.a, ranges), _decide(e.b, ranges)
    if a is False or b is False:
        return False
    return True if a and b else None
