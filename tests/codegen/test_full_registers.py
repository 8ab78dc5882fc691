"""Sums that fill the registers stay there: nothing that is used after their loop waits in a register over it."""

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

HASWELL = Target.parse("haswell")
SIDE, CHANNELS = 14, 256


def pointwise(rows: int, columns: int, lanes: int) -> tw.Schedule:
    """A 1x1 convolution tile by tile, whose sums are all in registers; then a bias and the positive part of each."""
    X, W = te.placeholder((SIDE, SIDE, 64), name="X"), te.placeholder((64, CHANNELS), name="W")
    bias = te.placeholder((CHANNELS,), name="bias")
    c = te.reduce_axis(64, name="c")
    shape = (SIDE, SIDE, CHANNELS)
    Y = te.compute(shape, lambda y, x, f: te.sum(X[y, x, c] * W[c, f], axis=c), name="Y")
    Z = te.compute(shape, lambda y, x, f: te.maximum(Y[y, x, f] + bias[f], 0.0), name="Z")
    s = tw.Schedule(Task([X, W, bias], Z))
    y, x, f = s["Z"].loops
    (y0, y1), (x0, x1), (f0, f1) = s["Z"].split(y, rows), s["Z"].split(x, columns), s["Z"].split(f, lanes)
    s["Z"].reorder(y0, f0, x0, y1, x1, f1)
    s["Z"].vectorize(f1)
    s["Y"].compute_at("Z", x0)
    y, x, f, c0 = s["Y"].loops
    s["Y"].reorder(c0, y, x, f)
    s["Y"].unroll(y)
    s["Y"].unroll(x)
    s["Y"].vectorize(f)
    return s


def blocks(schedule: tw.Schedule) -> list[list[str]]:
    """The assembly between labels and jumps."""
    found: list[list[str]] = [[]]
    for line in assembly(generate(lower(schedule), HASWELL, 1).llvm_ir, HASWELL).splitlines():
        found[-1].append(line)
        if line.startswith((".", "\tj")):
            found.append([])
    return found


def number_of_loop(found: list[list[str]]) -> int:
    """Which block adds products."""
    return next(n for n, block in enumerate(found) if any("vfmadd" in line for line in block))


@pytest.mark.parametrize(("rows", "columns", "lanes"), [(2, 2, 24), (2, 3, 16), (1, 4, 24)])
def test_no_sum_goes_to_memory_for_what_is_used_after_the_loop(rows: int, columns: int, lanes: int) -> None:
    found = blocks(pointwise(rows, columns, lanes))
    loop = found[number_of_loop(found)]
    assert sum("vfmadd" in line for line in loop) == rows * columns * lanes // 8
    assert not [line for line in loop if "rsp" in line]


@pytest.mark.parametrize(("columns", "num_before"), [(1, 3), (4, 0)])
def test_where_registers_are_free_a_bias_is_read_once_for_many_tiles(columns: int, num_before: int) -> None:
    found = blocks(pointwise(1, columns, 24))
    before = [line for block in found[: number_of_loop(found)] for line in block]
    assert sum("vmovups" in line for line in before) == num_before


@pytest.mark.parametrize(("rows", "columns", "lanes"), [(2, 2, 24), (2, 3, 16), (1, 4, 24), (1, 1, 16)])
def test_the_result_is_numpys(rows: int, columns: int, lanes: int) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((SIDE, SIDE, 64), np.float32), rng.standard_normal((64, CHANNELS), np.float32)
    bias = rng.standard_normal(CHANNELS).astype(np.float32)
    expected = np.maximum(x @ w + bias, 0)
    np.testing.assert_allclose(tw.build(pointwise(rows, columns, lanes))(x, w, bias), expected, rtol=1e-5, atol=1e-4)
