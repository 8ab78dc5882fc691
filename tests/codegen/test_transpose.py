"""Copies that turn rows into columns, block by block."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen import compile_schedule
from tilewright.codegen.builder import FunctionBuilder, Value
from tilewright.codegen.transpose import transpose
from tilewright.target import Target

TARGET = Target.parse("llvm -mcpu=native")
LANES = TARGET.lanes("float32")


def transposed(rows: int, columns: int, dtype: str = "float32", shift: int = 0) -> tw.Schedule:
    """B[i, j] = A[j, i + shift], a row of B in vectors at a time."""
    a = te.placeholder((columns, rows + shift), name="A", dtype=dtype)
    s = tw.Schedule(tw.Task([a], te.compute((rows, columns), lambda i, j: a[j, i + shift], name="B")))
    s["B"].vectorize("j")
    return s


def gathers(schedule: tw.Schedule) -> bool:
    """Whether vectors are put together element by element; a broadcast only has a lane 0."""
    text = compile_schedule(schedule, TARGET, threads=1).generated.llvm_ir
    return re.search(r"insertelement .* i64 [1-9]", text) is not None


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(("rows", "columns"), [(LANES, LANES), (3 * LANES, 2 * LANES), (2 * LANES + 3, LANES)])
@pytest.mark.parametrize("shift", [0, 5])
def test_it_is_the_transpose(rows: int, columns: int, dtype: str, shift: int) -> None:
    a = np.random.default_rng(0).integers(-99, 99, (columns, rows + shift)).astype(dtype)
    b = tw.build(transposed(rows, columns, dtype, shift), TARGET)(a)
    np.testing.assert_array_equal(b, a[:, shift:].T)


def test_blocks_are_turned_by_shuffles() -> None:
    assert not gathers(transposed(4 * LANES, 2 * LANES))


def test_what_does_not_fill_a_block_goes_element_by_element() -> None:
    assert gathers(transposed(LANES - 1, LANES))
    assert gathers(transposed(LANES, LANES + 1))


def test_a_packed_operand_behind_a_transpose() -> None:
    q, key = te.placeholder((2 * LANES, 3, 64), name="Q"), te.placeholder((4 * LANES, 3, 64), name="K")
    d = te.reduce_axis(64, name="d")
    c = te.compute((3, 2 * LANES, 4 * LANES), lambda h, i, j: te.sum(q[i, h, d] * key[j, h, d], axis=d), name="C")
    s = tw.Schedule(tw.Task([q, key], c))
    stage = s["C"]
    h, i, j, k = stage.loops
    j0, j1 = stage.split(j, 2 * LANES)
    stage.reorder(h, j0, i, k, j1)
    stage.vectorize(j1)
    panel = s["K"].pack(stage)
    panel.compute_at(stage, j0)
    panel.vectorize(panel.loops[-1])
    assert not gathers(s)
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(t.shape).astype(np.float32) for t in (q, key))
    np.testing.assert_allclose(tw.build(s, TARGET)(x, y), np.einsum("ihd,jhd->hij", x, y), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_every_size_of_block_takes_its_logarithm_of_steps(size: int) -> None:
    builder = FunctionBuilder({})
    columns = transpose(builder, [Value(f"%r{n}", "float32", size) for n in range(size)])
    assert len(columns) == size
    assert sum("shufflevector" in line for line in builder.lines) == size * (size.bit_length() - 1)
