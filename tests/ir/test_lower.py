"""Loop nests of whole schedules: the patterns that lowering is there to make."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from tests.schedule.programs import best_index, gather, gemm_relu, padded_sum
from tilewright import te
from tilewright.errors import LoweringError
from tilewright.ir import format_nest, lower
from tilewright.schedule import Schedule
from tilewright.te import Task

Case = tuple[Callable[[], Schedule], str]


def _shifted_tile() -> Schedule:
    """20 rows in tiles of 6: the last tile begins at 14."""
    s = gemm_relu()
    i0, _ = s["D"].split("i", 6)
    s["C"].compute_at("D", i0)
    return s


def _peeled_reduction() -> Schedule:
    """10 steps by 4: the last part of the reduction has 2, in a loop of its own."""
    s = gemm_relu()
    s["C"].split("k", 4)
    return s


def _register_tile() -> Schedule:
    s = gemm_relu()
    i0, i1 = s["C"].split("i", 4)
    j0, j1 = s["C"].split("j", 4)
    s["C"].reorder(i0, j0, "k", i1, j1)
    s["C"].unroll(i1)
    s["C"].vectorize(j1)
    return s


def _overlapping_tiles_of_a_reduction_outside() -> Schedule:
    """Tiles of 6 in 20 overlap: each is summed apart, so that no element is counted twice."""
    s = gemm_relu()
    i0, i1 = s["C"].split("i", 6)
    s["C"].reorder("k", i0, i1, "j")
    return s


def _vector_reduction() -> Schedule:
    s = gemm_relu()
    s["C"].vectorize("k")
    return s


def _vector_outside() -> Schedule:
    s = gemm_relu()
    s["C"].vectorize("i")
    return s


def _parallel_padding() -> Schedule:
    s = padded_sum()
    s["P"].parallel("x")
    s["S"].parallel("x")
    return s


def _inlined_padding() -> Schedule:
    s = padded_sum(100)
    s["P"].compute_inline()
    return s


def _attached_padding() -> Schedule:
    s = padded_sum(100)
    x0, _ = s["S"].split("x", 20)
    s["P"].compute_at("S", x0)
    return s


def _long_vector() -> Schedule:
    A = te.placeholder((3, 70), name="A")
    B = te.compute((3, 70), lambda i, j: A[i, j] * 2.0, name="B")
    s = Schedule(Task([A], B, "scale"))
    s["B"].vectorize("j")
    return s


def _unrolled_by_pragma() -> Schedule:
    s = gemm_relu(4, 3, 4)
    s["C"].pragma("i", auto_unroll_max_step=16)
    return s


def _packed_constant() -> Schedule:
    s = gemm_relu()
    j0, j1 = s["C"].split("j", 4)
    s["C"].reorder("i", j0, "k", j1)
    s["B"].pack("C")
    return s


def _half() -> Schedule:
    A = te.placeholder((3, 8), "float16", name="A")
    k = te.reduce_axis(8, name="k")
    S = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="S")
    return Schedule(Task([A], S, "half"))


CASES: dict[str, Case] = {
    "shifted tile": (
        _shifted_tile,
        """
        def gemm_relu(A: float32[20, 10], B: float32[10, 12], D: float32[20, 12]):
          for i.0 in range(4):
            C = allocate(float32[6, 12])
            for i in range(6):
              for j in range(12):
                C.acc = allocate(float32[])
                C.acc[] = 0.0
                for k in range(10):
                  C.acc[] sum= (A[min(i.0*6, 14) + i, k] * B[k, j])
                C[i, j] = C.acc[]
            for i.1 in range(6):
              for j in range(12):
                D[min(i.0*6, 14) + i.1, j] = max(C[i.1, j], 0.0)
        """,
    ),
    "peeled reduction": (
        _peeled_reduction,
        """
        def gemm_relu(A: float32[20, 10], B: float32[10, 12], D: float32[20, 12]):
          C = allocate(float32[20, 12])
          for i in range(20):
            for j in range(12):
              C.acc = allocate(float32[])
              C.acc[] = 0.0
              for k.0 in range(2):
                for k.1 in range(4):
                  C.acc[] sum= select((-k.0*4 - k.1 + 9 >= 0), (A[i, k.0*4 + k.1] * B[k.0*4 + k.1, j]), 0.0)
              for k.0 in range(2, 3):
                for k.1 in range(2):
                  C.acc[] sum= select((-k.0*4 - k.1 + 9 >= 0), (A[i, k.0*4 + k.1] * B[k.0*4 + k.1, j]), 0.0)
                for k.1 in range(2, 4):
                  C.acc[] sum= select((-k.0*4 - k.1 + 9 >= 0), (A[i, k.0*4 + k.1] * B[k.0*4 + k.1, j]), 0.0)
              C[i, j] = C.acc[]
          for i in range(20):
            for j in range(12):
              D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "register tile": (
        _register_tile,
        """
        def gemm_relu(A: float32[20, 10], B: float32[10, 12], D: float32[20, 12]):
          C = allocate(float32[20, 12])
          for i.0 in range(5):
            for j.0 in range(3):
              C.acc = allocate(float32[4, 4])
              unroll i.1 in range(4):
                vectorize j.1 in range(4):
                  C.acc[i.1, j.1] = 0.0
              for k in range(10):
                unroll i.1 in range(4):
                  vectorize j.1 in range(4):
                    C.acc[i.1, j.1] sum= (A[i.0*4 + i.1, k] * B[k, j.0*4 + j.1])
              unroll i.1 in range(4):
                vectorize j.1 in range(4):
                  C[i.0*4 + i.1, j.0*4 + j.1] = C.acc[i.1, j.1]
          for i in range(20):
            for j in range(12):
              D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "overlapping tiles of a reduction outside": (
        _overlapping_tiles_of_a_reduction_outside,
        """
        def gemm_relu(A: float32[20, 10], B: float32[10, 12], D: float32[20, 12]):
          C = allocate(float32[20, 12])
          C.acc = allocate(float32[4, 6, 12])
          for i.0 in range(4):
            for i.1 in range(6):
              for j in range(12):
                C.acc[i.0, i.1, j] = 0.0
          for k in range(10):
            for i.0 in range(4):
              for i.1 in range(6):
                for j in range(12):
                  C.acc[i.0, i.1, j] sum= (A[min(i.0*6, 14) + i.1, k] * B[k, j])
          for i.0 in range(4):
            for i.1 in range(6):
              for j in range(12):
                C[min(i.0*6, 14) + i.1, j] = C.acc[i.0, i.1, j]
          for i in range(20):
            for j in range(12):
              D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "vector reduction": (
        _vector_reduction,
        """
        def gemm_relu(A: float32[20, 10], B: float32[10, 12], D: float32[20, 12]):
          C = allocate(float32[20, 12])
          for i in range(20):
            for j in range(12):
              C.acc = allocate(float32[10])
              vectorize k in range(10):
                C.acc[k] = 0.0
              vectorize k in range(10):
                C.acc[k] sum= (A[i, k] * B[k, j])
              C.acc.sum = allocate(float32[])
              C.acc.sum[] = 0.0
              vectorize k in range(10):
                C.acc.sum[] sum= C.acc[k]
              C[i, j] = C.acc.sum[]
          for i in range(20):
            for j in range(12):
              D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "vector outside of a reduction": (
        _vector_outside,
        """
        def gemm_relu(A: float32[20, 10], B: float32[10, 12], D: float32[20, 12]):
          C = allocate(float32[20, 12])
          vectorize i in range(20):
            for j in range(12):
              C.acc = allocate(float32[20])
              C.acc[i] = 0.0
              for k in range(10):
                C.acc[i] sum= (A[i, k] * B[k, j])
              C[i, j] = C.acc[i]
          for i in range(20):
            for j in range(12):
              D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "long vector": (
        _long_vector,
        """
        def scale(A: float32[3, 70], B: float32[3, 70]):
          for i in range(3):
            for j.v in range(2):
              vectorize j.l in range(32):
                B[i, j.v*32 + j.l] = (A[i, j.v*32 + j.l] * 2.0)
            vectorize j in range(64, 70):
              B[i, j] = (A[i, j] * 2.0)
        """,
    ),
    "parallel padding": (
        _parallel_padding,
        """
        def padded_sum(A: float32[12], S: float32[12]):
          P = allocate(float32[14])
          parallel x in range(14):
            where 0 <= x < 1:
              P[x] = select(((x - 1 >= 0) & (-x + 12 >= 0)), A[x - 1], 0.0)
            where 1 <= x < 13:
              P[x] = select(((x - 1 >= 0) & (-x + 12 >= 0)), A[x - 1], 0.0)
            where 13 <= x < 14:
              P[x] = select(((x - 1 >= 0) & (-x + 12 >= 0)), A[x - 1], 0.0)
          parallel x in range(12):
            S.acc = allocate(float32[])
            S.acc[] = 0.0
            for r in range(3):
              S.acc[] sum= P[x + r]
            S[x] = S.acc[]
        """,
    ),
    "inlined padding": (
        _inlined_padding,
        """
        def padded_sum(A: float32[100], S: float32[100]):
          for x in range(1):
            S.acc = allocate(float32[])
            S.acc[] = 0.0
            for r in range(1):
              S.acc[] sum= select(((x + r - 1 >= 0) & (-x - r + 100 >= 0)), A[x + r - 1], 0.0)
            for r in range(1, 3):
              S.acc[] sum= select(((x + r - 1 >= 0) & (-x - r + 100 >= 0)), A[x + r - 1], 0.0)
            S[x] = S.acc[]
          for x in range(1, 99):
            S.acc = allocate(float32[])
            S.acc[] = 0.0
            for r in range(3):
              S.acc[] sum= select(((x + r - 1 >= 0) & (-x - r + 100 >= 0)), A[x + r - 1], 0.0)
            S[x] = S.acc[]
          for x in range(99, 100):
            S.acc = allocate(float32[])
            S.acc[] = 0.0
            for r in range(2):
              S.acc[] sum= select(((x + r - 1 >= 0) & (-x - r + 100 >= 0)), A[x + r - 1], 0.0)
            for r in range(2, 3):
              S.acc[] sum= select(((x + r - 1 >= 0) & (-x - r + 100 >= 0)), A[x + r - 1], 0.0)
            S[x] = S.acc[]
        """,
    ),
    "attached padding": (
        _attached_padding,
        """
        def padded_sum(A: float32[100], S: float32[100]):
          for x.0 in range(1):
            P = allocate(float32[22])
            for x in range(1):
              P[x] = select(((x.0*20 + x - 1 >= 0) & (-x.0*20 - x + 100 >= 0)), A[x.0*20 + x - 1], 0.0)
            for x in range(1, 22):
              P[x] = select(((x.0*20 + x - 1 >= 0) & (-x.0*20 - x + 100 >= 0)), A[x.0*20 + x - 1], 0.0)
            for x.1 in range(20):
              S.acc = allocate(float32[])
              S.acc[] = 0.0
              for r in range(3):
                S.acc[] sum= P[x.1 + r]
              S[x.0*20 + x.1] = S.acc[]
          for x.0 in range(1, 4):
            P = allocate(float32[22])
            for x in range(22):
              P[x] = select(((x.0*20 + x - 1 >= 0) & (-x.0*20 - x + 100 >= 0)), A[x.0*20 + x - 1], 0.0)
            for x.1 in range(20):
              S.acc = allocate(float32[])
              S.acc[] = 0.0
              for r in range(3):
                S.acc[] sum= P[x.1 + r]
              S[x.0*20 + x.1] = S.acc[]
          for x.0 in range(4, 5):
            P = allocate(float32[22])
            for x in range(21):
              P[x] = select(((x.0*20 + x - 1 >= 0) & (-x.0*20 - x + 100 >= 0)), A[x.0*20 + x - 1], 0.0)
            for x in range(21, 22):
              P[x] = select(((x.0*20 + x - 1 >= 0) & (-x.0*20 - x + 100 >= 0)), A[x.0*20 + x - 1], 0.0)
            for x.1 in range(20):
              S.acc = allocate(float32[])
              S.acc[] = 0.0
              for r in range(3):
                S.acc[] sum= P[x.1 + r]
              S[x.0*20 + x.1] = S.acc[]
        """,
    ),
    "unrolled by pragma": (
        _unrolled_by_pragma,
        """
        def gemm_relu(A: float32[4, 4], B: float32[4, 3], D: float32[4, 3]):
          C = allocate(float32[4, 3])
          for i in range(4):
            for j in range(3):
              C.acc = allocate(float32[])
              C.acc[] = 0.0
              unroll k in range(4):
                C.acc[] sum= (A[i, k] * B[k, j])
              C[i, j] = C.acc[]
          for i in range(4):
            for j in range(3):
              D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "packed constant": (
        _packed_constant,
        """
        def gemm_relu_pack_1(B: float32[10, 12], B.pack: float32[3, 10, 4]):
          for j.0 in range(3):
            for k in range(10):
              for j.1 in range(4):
                B.pack[j.0, k, j.1] = B[k, j.0*4 + j.1]
        def gemm_relu(A: float32[20, 10], B.pack: float32[3, 10, 4], D: float32[20, 12]):
          C = allocate(float32[20, 12])
          for i in range(20):
            for j.0 in range(3):
              for j.1 in range(4):
                C[i, j.0*4 + j.1] = 0.0
              for k in range(10):
                for j.1 in range(4):
                  C[i, j.0*4 + j.1] sum= (A[i, k] * B.pack[j.0, k, j.1])
          for i in range(20):
            for j in range(12):
              D[i, j] = max(C[i, j], 0.0)
        """,
    ),
    "half type sums in float32": (
        _half,
        """
        def half(A: float16[3, 8], S: float16[3]):
          for i in range(3):
            S.acc = allocate(float32[])
            S.acc[] = 0.0
            for k in range(8):
              S.acc[] sum= A[i, k]
            S[i] = S.acc[]
        """,
    ),
    "argmax keeps value and index": (
        best_index,
        """
        def best_index(A: float32[6, 9], best: int64[6]):
          for i in range(6):
            best.acc = allocate(float32[])
            best.acc1 = allocate(int64[])
            best.acc[] = -inf
            best.acc1[] = 9223372036854775807
            for k in range(9):
              best.acc[], best.acc1[] argmax= A[i, k], k
            best[i] = best.acc1[]
        """,
    ),
    "index from memory stays inside": (
        gather,
        """
        def gather(A: float32[6], B: int64[6], G: float32[6]):
          for i in range(6):
            G[i] = (A[max(min((B[i]), 5), 0)] + 1.0)
        """,
    ),
}


def produce(name: str) -> str:
    make, _ = CASES[name]
    module = lower(make(), check=True)
    return "\n".join(format_nest(nest) for nest in (*(pack.nest for pack in module.packs), module.kernel))


@pytest.mark.parametrize("name", CASES)
def test_schedule_lowers_to_the_nest(name: str) -> None:
    _, expected = CASES[name]
    assert produce(name) == dedent(expected).strip()


def test_a_step_that_takes_all_memory_is_refused() -> None:
    a, b = te.placeholder((2048, 2048), name="A"), te.placeholder((2048, 2048), name="B")
    k = te.reduce_axis(2048, name="k")
    c = te.compute((2048, 2048), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    schedule = Schedule(Task([a, b], [c]))
    schedule["C"].rfactor("k")
    with pytest.raises(LoweringError, match="stage C.rf takes 32 GiB of memory; at most 1 are allowed for this task"):
        lower(schedule)
