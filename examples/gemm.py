"""A matrix product C = A B, scheduled by hand; run it with `python -m examples.gemm`.

The idea of the schedule: a tile of C stays in vector registers while the whole reduction runs over it. Each step of the
reduction loads one row of the tile's columns from B and multiplies it with one element of A for every row of the tile.
"""

from __future__ import annotations

import sys

import numpy as np

import tilewright as tw
from tilewright import te

VECTORS = 2


def gemm_task(m: int, n: int, k: int) -> tw.Task:
    """What to compute."""
    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis(k, name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return tw.Task([A, B], [C], name="gemm")


def gemm_schedule(task: tw.Task, target: tw.Target) -> tw.Schedule:
    """How to compute it."""
    s = tw.Schedule(task)
    c = s["C"]
    i, j, k = c.loops

    # The tile is VECTORS registers wide, and has as many rows as leave registers for a row of B and an element of A.
    # Neither has to divide the matrix: a last tile is moved inwards.
    rows = (target.num_vector_registers - VECTORS - 1) // VECTORS
    columns = VECTORS * target.lanes("float32")
    i_tile, i_row = c.split(i, rows)
    j_panel, j_lane = c.split(j, columns)

    # Below k only the tile's own loops remain, unrolled and in vector lanes: so the tile becomes registers.
    c.reorder(j_panel, i_tile, k, i_row, j_lane)
    c.unroll(i_row)
    c.vectorize(j_lane)

    # Each thread takes panels of columns, and copies its panel of B into the order in which the tiles read it.
    c.parallel(j_panel)
    panel = s["B"].pack(c)
    panel.compute_at(c, j_panel)
    panel.vectorize(panel.loops[-1])
    return s


def main() -> int:
    task = gemm_task(512, 512, 512)
    schedule = gemm_schedule(task, tw.Target.native())
    print(schedule)
    gemm = tw.build(schedule)

    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (512, 512)).astype(np.float32) for _ in range(2))
    error = np.abs(gemm(a, b) - a @ b).max()
    print(f"largest difference from NumPy: {error:.1e}")
    return 0 if error < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
