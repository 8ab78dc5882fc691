"""Every primitive: a schedule before, the step, and the loop nest that it prints as."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from tests.schedule.programs import blur, diamond, gemm_relu, gram, padded_sum, phases
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.te import Task

Case = tuple[Callable[[], Schedule], Callable[[Schedule], object], str]


def _split_by_levels(s: Schedule) -> None:
    s["C"].split("i", [2, 3])
    s["C"].split("k", [4])


def _tile(s: Schedule) -> None:
    i0, i1 = s["C"].split("i", 6)
    j0, j1 = s["C"].split("j", 8)
    s["C"].reorder(i0, j0, "k", i1, j1)
    s["C"].vectorize(j1)
    s["C"].unroll(i1)
    s["C"].parallel(i0)


def _fuse_and_split(s: Schedule) -> None:
    fused = s["D"].fuse("i", "j")
    s["D"].split(fused, 7)


def _attach_to_fused(s: Schedule) -> None:
    fused = s["D"].fuse("i", "j")
    outer, _ = s["D"].split(fused, 7)
    s["C"].compute_at("D", outer)


def _attach_to_tile(s: Schedule) -> None:
    i0, _ = s["D"].split("i", 6)
    s["C"].compute_at("D", i0)


def _attach_chain(s: Schedule) -> None:
    x0, _ = s["C"].split("x", 8)
    s["B"].compute_at("C", x0)
    copy = s["A"].cache_read("B")
    copy.compute_at("B", "x")


def _back_to_root(s: Schedule) -> None:
    s["B"].compute_at("C", "x")
    s["B"].compute_root()


def _cache_attached(s: Schedule) -> None:
    copy = s["A"].cache_read("C")
    copy.compute_at("C", "i")


def _cache_one_reader(s: Schedule) -> None:
    s["T"].cache_read("R")


def _accumulate_in_tile(s: Schedule) -> None:
    cache = s["C"].cache_write()
    i0, _ = s["C"].split("i", 5)
    cache.compute_at("C", i0)


def _pack_constant(s: Schedule) -> None:
    j0, j1 = s["C"].split("j", 4)
    s["C"].reorder("i", j0, "k", j1)
    s["B"].pack("C")


def _pack_panel(s: Schedule) -> None:
    i0, i1 = s["C"].split("i", 4)
    s["C"].reorder(i0, "j", "k", i1)
    s["A"].pack("C").compute_at("C", i0)


def _pack_second_place(s: Schedule) -> None:
    j0, j1 = s["G"].split("j", 4)
    s["G"].reorder(j0, "i", "k", j1)
    s["X"].pack("G", place=1)


def _pack_past_the_end(s: Schedule) -> None:
    k0, k1 = s["C"].split("k", 4)
    s["C"].reorder(k0, "i", "j", k1)
    s["A"].pack("C")


def _pack_phases(s: Schedule) -> None:
    f0, f1 = s["Y"].split("f", 4)
    s["Y"].reorder(f0, "y", "t", f1)
    s["W"].pack("Y")


def _factor_split_reduction(s: Schedule) -> None:
    _, k1 = s["C"].split("k", 4)
    s["C"].rfactor(k1)


CASES: dict[str, Case] = {
    "the schedule as it begins": (
        gemm_relu,
        lambda s: None,
        """
        for i in range(20):
          for j in range(12):
            for k in range(10):
              C[i, j] += A[i, k] * B[k, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "split": (
        gemm_relu,
        lambda s: s["D"].split("j", 4),
        """
        for i in range(20):
          for j in range(12):
            for k in range(10):
              C[i, j] += A[i, k] * B[k, j]
        for i in range(20):
          for j.0 in range(3):
            for j.1 in range(4):
              D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "split that does not divide": (
        gemm_relu,
        lambda s: s["D"].split("j", 5),
        """
        for i in range(20):
          for j in range(12):
            for k in range(10):
              C[i, j] += A[i, k] * B[k, j]
        for i in range(20):
          for j.0 in range(3):
            for j.1 in range(5):
              D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "split by a factor beyond the extent": (
        gemm_relu,
        lambda s: s["D"].split("j", 100),
        """
        for i in range(20):
          for j in range(12):
            for k in range(10):
              C[i, j] += A[i, k] * B[k, j]
        for i in range(20):
          for j.0 in range(1):
            for j.1 in range(12):
              D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "split into several levels": (
        gemm_relu,
        _split_by_levels,
        """
        for i.0 in range(4):
          for i.1 in range(2):
            for i.2 in range(3):
              for j in range(12):
                for k.0 in range(3):
                  for k.1 in range(4):
                    C[i, j] += A[i, k] * B[k, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "fuse": (
        gemm_relu,
        lambda s: s["D"].fuse("i", "j"),
        """
        for i in range(20):
          for j in range(12):
            for k in range(10):
              C[i, j] += A[i, k] * B[k, j]
        for i@j in range(240):
          D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "fuse, then split": (
        gemm_relu,
        _fuse_and_split,
        """
        for i in range(20):
          for j in range(12):
            for k in range(10):
              C[i, j] += A[i, k] * B[k, j]
        for i@j.0 in range(35):
          for i@j.1 in range(7):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "fuse of one loop is that loop": (
        gemm_relu,
        lambda s: s["D"].fuse("i"),
        """
        for i in range(20):
          for j in range(12):
            for k in range(10):
              C[i, j] += A[i, k] * B[k, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "reorder some loops": (
        gemm_relu,
        lambda s: s["C"].reorder("k", "i"),
        """
        for k in range(10):
          for j in range(12):
            for i in range(20):
              C[i, j] += A[i, k] * B[k, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "reorder all": (
        gemm_relu,
        lambda s: s["C"].reorder("k", "j", "i"),
        """
        for k in range(10):
          for j in range(12):
            for i in range(20):
              C[i, j] += A[i, k] * B[k, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "tile, vectorize, unroll, parallel": (
        gemm_relu,
        _tile,
        """
        parallel i.0 in range(4):
          for j.0 in range(2):
            for k in range(10):
              unroll i.1 in range(6):
                vectorize j.1 in range(8):
                  C[i, j] += A[i, k] * B[k, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "pragma": (
        gemm_relu,
        lambda s: s["C"].pragma("i", auto_unroll_max_step=16),
        """
        for i in range(20):  # auto_unroll_max_step=16
          for j in range(12):
            for k in range(10):
              C[i, j] += A[i, k] * B[k, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "compute_at a tile that does not divide": (
        gemm_relu,
        _attach_to_tile,
        """
        for i.0 in range(4):
          for i in range(6):
            for j in range(12):
              for k in range(10):
                C[i, j] += A[i, k] * B[k, j]
          for i.1 in range(6):
            for j in range(12):
              D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "compute_at the innermost loop": (
        gemm_relu,
        lambda s: s["C"].compute_at("D", "j"),
        """
        for i in range(20):
          for j in range(12):
            for i in range(1):
              for j in range(1):
                for k in range(10):
                  C[i, j] += A[i, k] * B[k, j]
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "compute_at a split of fused loops": (
        gemm_relu,
        _attach_to_fused,
        """
        for i@j.0 in range(35):
          for i in range(2):
            for j in range(12):
              for k in range(10):
                C[i, j] += A[i, k] * B[k, j]
          for i@j.1 in range(7):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "compute_at along a chain, with the overlap of tiles": (
        blur,
        _attach_chain,
        """
        for x.0 in range(3):
          for x in range(10):
            for i0 in range(3):
              A.cache[i0] = A[i0]
            B[x] = A.cache[x] + A.cache[x + 2]
          for x.1 in range(8):
            C[x] = B[x] * 0.5 + B[x + 2] * 0.25
        """,
    ),
    "compute_at where the consumer reduces": (
        padded_sum,
        lambda s: s["P"].compute_at("S", "x"),
        """
        for x in range(12):
          for x in range(3):
            P[x] = select((x >= 1) & (x < 13), A[x - 1], 0.0)
          for r in range(3):
            S[x] += P[x + r]
        """,
    ),
    "compute_root": (
        blur,
        _back_to_root,
        """
        for x in range(22):
          B[x] = A[x] + A[x + 2]
        for x in range(20):
          C[x] = B[x] * 0.5 + B[x + 2] * 0.25
        """,
    ),
    "compute_inline": (
        padded_sum,
        lambda s: s["P"].compute_inline(),
        """
        for x in range(12):
          for r in range(3):
            S[x] += select((x + r >= 1) & (x + r < 13), A[x + r - 1], 0.0)
        """,
    ),
    "compute_inline into two readers": (
        diamond,
        lambda s: s["T"].compute_inline(),
        """
        for i in range(8):
          L[i] = (A[i] + 1.0) * 2.0
        for i in range(8):
          R[i] = (A[i] + 1.0) * L[i]
        """,
    ),
    "cache_read": (
        gemm_relu,
        lambda s: s["A"].cache_read("C"),
        """
        for i0 in range(20):
          for i1 in range(10):
            A.cache[i0, i1] = A[i0, i1]
        for i in range(20):
          for j in range(12):
            for k in range(10):
              C[i, j] += A.cache[i, k] * B[k, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "cache_read, attached": (
        gemm_relu,
        _cache_attached,
        """
        for i in range(20):
          for i0 in range(1):
            for i1 in range(10):
              A.cache[i0, i1] = A[i0, i1]
          for j in range(12):
            for k in range(10):
              C[i, j] += A.cache[i, k] * B[k, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "cache_read for one of two readers": (
        diamond,
        _cache_one_reader,
        """
        for i in range(8):
          T[i] = A[i] + 1.0
        for i in range(8):
          T.cache[i] = T[i]
        for i in range(8):
          L[i] = T[i] * 2.0
        for i in range(8):
          R[i] = T.cache[i] * L[i]
        """,
    ),
    "cache_write": (
        gemm_relu,
        lambda s: s["D"].cache_write(),
        """
        for i in range(20):
          for j in range(12):
            for k in range(10):
              C[i, j] += A[i, k] * B[k, j]
        for i in range(20):
          for j in range(12):
            D.cache[i, j] = max(C[i, j], 0.0)
        for i in range(20):
          for j in range(12):
            D[i, j] = D.cache[i, j]
        """,
    ),
    "cache_write of a reduction, attached to a tile": (
        gemm_relu,
        _accumulate_in_tile,
        """
        for i.0 in range(4):
          for i in range(5):
            for j in range(12):
              for k in range(10):
                C.cache[i, j] += A[i, k] * B[k, j]
          for i.1 in range(5):
            for j in range(12):
              C[i, j] = C.cache[i, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "pack of a constant": (
        gemm_relu,
        _pack_constant,
        """
        # B.pack: once, by kernel.bind
        for j.0 in range(3):
          for k in range(10):
            for j.1 in range(4):
              B.pack[j.0, k, j.1] = B[k, j.0 * 4 + j.1]
        for i in range(20):
          for j.0 in range(3):
            for k in range(10):
              for j.1 in range(4):
                C[i, j] += A[i, k] * B.pack[j.0, k, j.1]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "pack of a panel, attached": (
        gemm_relu,
        _pack_panel,
        """
        for i.0 in range(5):
          for i.0 in range(1):
            for k in range(10):
              for i.1 in range(4):
                A.pack[i.0, k, i.1] = A[i.0 * 4 + i.1, k]
          for j in range(12):
            for k in range(10):
              for i.1 in range(4):
                C[i, j] += A.pack[i.0, k, i.1] * B[k, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "pack of one of two places": (
        gram,
        _pack_second_place,
        """
        for j.0 in range(3):
          for k in range(10):
            for j.1 in range(4):
              X.pack[j.0, k, j.1] = X[j.0 * 4 + j.1, k]
        for j.0 in range(3):
          for i in range(12):
            for k in range(10):
              for j.1 in range(4):
                G[i, j] += X[i, k] * X.pack[j.0, k, j.1]
        """,
    ),
    "pack of a dimension that loops fold": (
        phases,
        _pack_phases,
        """
        # W.pack: once, by kernel.bind
        for f.0 in range(2):
          for W.0 in range(4):
            for f.1 in range(4):
              W.pack[f.0, W.0, f.1] = W[W.0, f.0 * 4 + f.1]
        for f.0 in range(2):
          for y in range(6):
            for t in range(2):
              for f.1 in range(4):
                Y[y, f] += X[y // 2 + t] * W.pack[f.0, y % 2 + t * 2, f.1]
        """,
    ),
    "pack along a reduction that does not divide": (
        gemm_relu,
        _pack_past_the_end,
        """
        for k.0 in range(3):
          for i in range(20):
            for k.1 in range(4):
              A.pack[k.0, i, k.1] = select(k.0 * 4 + k.1 < 10, A[i, k.0 * 4 + k.1], 0.0)
        for k.0 in range(3):
          for i in range(20):
            for j in range(12):
              for k.1 in range(4):
                C[i, j] += A.pack[k.0, i, k.1] * B[k, j]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "rfactor": (
        gemm_relu,
        lambda s: s["C"].rfactor("k"),
        """
        for i in range(20):
          for j in range(12):
            for k in range(10):
              C.rf[i, j, k] = A[i, k] * B[k, j]
        for i in range(20):
          for j in range(12):
            for k in range(10):
              C[i, j] += C.rf[i, j, k]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "rfactor of a split that does not divide": (
        gemm_relu,
        _factor_split_reduction,
        """
        for i in range(20):
          for j in range(12):
            for k.1 in range(4):
              for k.0 in range(3):
                C.rf[i, j, k.1] += select(k.0 * 4 + k.1 < 10, A[i, k.0 * 4 + k.1] * B[k.0 * 4 + k.1, j], 0.0)
        for i in range(20):
          for j in range(12):
            for k.1 in range(4):
              C[i, j] += C.rf[i, j, k.1]
        for i in range(20):
          for j in range(12):
            D[i, j] = max(C[i, j], 0.0)
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_primitive_gives_the_nest(name: str) -> None:
    make, apply, expected = CASES[name]
    s = make()
    apply(s)
    assert str(s) == dedent(expected).strip()


def test_primitives_return_the_loops_and_stages_that_they_make() -> None:
    s = gemm_relu()
    made = s["C"].split("i", [2, 3])
    assert [(loop.name, loop.extent) for loop in made] == [("i.0", 4), ("i.1", 2), ("i.2", 3)]
    assert s["C"].fuse(made[1], made[2]).name == "i.1@i.2"
    assert s["C"].cache_write() is s["C.cache"]
    assert s["A"].cache_read() is s["A.cache"]
    assert s["A"].cache_read("A.cache") is s["A.cache1"]


def test_loops_are_given_by_name_or_by_object() -> None:
    by_name, by_object = gemm_relu(), gemm_relu()
    by_name["D"].split("i", 4)
    by_name["C"].compute_at("D", "i.0")
    outer, _ = by_object["D"].split(by_object["D"].loops[0], 4)
    by_object["C"].compute_at(by_object["D"], outer)
    assert str(by_name) == str(by_object)
    assert by_name.trace == by_object.trace


def test_two_sequences_that_read_each_other_are_inlined_from_the_first_to_the_last() -> None:
    """Each step reads both of the step before, so that copies of their expressions would double with each."""
    x = a = te.placeholder((4,), name="a")
    y = b = te.placeholder((4,), name="b")
    for n in range(24):
        x, y = (
            te.compute((4,), lambda i, x=x, y=y: x[i] * 0.5 + y[i], name=f"x{n}"),
            te.compute((4,), lambda i, x=x, y=y: x[i] - y[i] * 0.5, name=f"y{n}"),
        )
    s = Schedule(Task([a, b], te.compute((4,), lambda i: x[i] + y[i], name="out")))
    for stage in s.active_stages[:-1]:
        stage.compute_inline()
    assert len(s["out"].reads) <= 64
