"""What generated kernels compute, case by case: each next to the plain NumPy expression."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright import te
from tilewright.codegen import compile_schedule, generate
from tilewright.codegen.native import assembly
from tilewright.errors import CodegenError, UsageError
from tilewright.ir import lower
from tilewright.runtime.build import load
from tilewright.target import Target
from tilewright.te import Expr, Tensor, float32_to_bfloat16

Array = NDArray[np.generic]
RNG = np.random.default_rng(7)


def elementwise(function: Callable[..., Expr], *arrays: Array, vectorize: bool, dtypes: tuple[str, ...] = ()) -> Array:
    """A kernel of one loop over arrays of one length, in vectors or one by one."""
    names = dtypes or tuple(str(a.dtype) for a in arrays)
    inputs = [te.placeholder(a.shape, d, name=f"A{n}") for n, (a, d) in enumerate(zip(arrays, names, strict=True))]
    out = te.compute(arrays[0].shape, lambda i: function(*(t[i] for t in inputs)), name="out")
    s = tw.Schedule(tw.Task(inputs, [out]))
    if vectorize:
        s["out"].vectorize("i")
    result = tw.build(s, threads=1)(*arrays)
    assert isinstance(result, np.ndarray)
    return result


def floats(n: int = 37) -> NDArray[np.float32]:
    specials = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], np.float32)
    return np.concatenate([specials, RNG.normal(size=n - len(specials)).astype(np.float32)])


@pytest.mark.parametrize("vectorize", [False, True])
class TestNumPySemantics:
    def test_maximum_and_minimum_propagate_nan(self, vectorize: bool) -> None:
        a, b = floats(), floats()[::-1].copy()
        np.testing.assert_array_equal(elementwise(te.maximum, a, b, vectorize=vectorize), np.maximum(a, b))
        np.testing.assert_array_equal(elementwise(te.minimum, a, b, vectorize=vectorize), np.minimum(a, b))

    def test_relu_with_a_constant_propagates_nan(self, vectorize: bool) -> None:
        a = floats()
        for function in (lambda x: te.maximum(x, 0.0), lambda x: te.maximum(0.0, x)):
            np.testing.assert_array_equal(elementwise(function, a, vectorize=vectorize), np.maximum(a, 0))

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_a_constant_nan_wins(self, sign: float, vectorize: bool) -> None:
        nan = math.copysign(math.nan, sign)  # inf - inf has a sign on most machines
        for function in (te.maximum, te.minimum):
            for of_x in (lambda x, f=function: f(x, nan), lambda x, f=function: f(nan, x)):
                assert np.isnan(elementwise(of_x, floats(), vectorize=vectorize)).all()

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
    def test_integer_division_rounds_down_and_by_zero_is_zero(self, dtype: str, vectorize: bool) -> None:
        info = np.iinfo(dtype)
        values = np.array([info.min, info.max, 0, 1, 2, 3, 7, -1 % 256 if info.min == 0 else -1], dtype=dtype)
        a, b = (g.ravel() for g in np.meshgrid(values, values))
        with np.errstate(all="ignore"):
            quotient, rest = a // b, a % b
        np.testing.assert_array_equal(elementwise(lambda x, y: x // y, a, b, vectorize=vectorize), quotient)
        np.testing.assert_array_equal(elementwise(lambda x, y: x % y, a, b, vectorize=vectorize), rest)

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
    @pytest.mark.parametrize("divisor", [1, 2, 16, 64])
    def test_division_by_a_power_of_two_rounds_down(self, dtype: str, divisor: int, vectorize: bool) -> None:
        info = np.iinfo(dtype)
        a = np.array([info.min, info.max, *range(max(info.min, -40), 40)], dtype=dtype)
        number = a.dtype.type(divisor)
        quotient = elementwise(lambda x: x // te.constant(divisor, dtype), a, vectorize=vectorize)
        rest = elementwise(lambda x: x % te.constant(divisor, dtype), a, vectorize=vectorize)
        np.testing.assert_array_equal(quotient, a // number)
        np.testing.assert_array_equal(rest, a % number)

    def test_integers_wrap_around(self, vectorize: bool) -> None:
        a = RNG.integers(-128, 128, 41).astype(np.int8)
        np.testing.assert_array_equal(elementwise(lambda x: x * x + 3, a, vectorize=vectorize), a * a + np.int8(3))

    def test_comparisons_and_logic_give_bools(self, vectorize: bool) -> None:
        a, b = floats(), floats()[::-1].copy()
        result = elementwise(lambda x, y: (x < y) & ~(x >= 0.5) | te.equal(x, y), a, b, vectorize=vectorize)
        np.testing.assert_array_equal(result, (a < b) & ~(a >= 0.5) | (a == b))

    def test_bool_tensors_are_read_and_selected(self, vectorize: bool) -> None:
        a, b = RNG.random(21) < 0.5, RNG.random(21) < 0.5
        result = elementwise(lambda x, y: te.select(x, y, ~y), a, b, vectorize=vectorize)
        np.testing.assert_array_equal(result, np.where(a, b, ~b))

    @pytest.mark.parametrize("target", ["int8", "uint8", "int32", "int64", "float32", "float64", "bool"])
    @pytest.mark.parametrize("source", ["int8", "uint8", "int32", "int64", "float32", "float64", "bool"])
    def test_casts(self, source: str, target: str, vectorize: bool) -> None:
        a = RNG.integers(0, 100, 19).astype(source) if source != "bool" else RNG.random(19) < 0.5
        np.testing.assert_array_equal(
            elementwise(lambda x: te.cast(x, target), a, vectorize=vectorize), a.astype(target)
        )

    def test_float16_is_computed_in_float32_and_rounded_once(self, vectorize: bool) -> None:
        a, b = (RNG.normal(size=35).astype(np.float16) for _ in range(2))
        wide = a.astype(np.float32) * b.astype(np.float32) + np.float32(0.1)
        result = elementwise(lambda x, y: x * y + 0.1, a, b, vectorize=vectorize)
        np.testing.assert_array_equal(result, wide.astype(np.float16))

    def test_bfloat16_is_stored_as_its_bits(self, vectorize: bool) -> None:
        a = RNG.normal(size=35).astype(np.float32)
        bits = float32_to_bfloat16(a)
        result = elementwise(lambda x: x * 2.0, bits, vectorize=vectorize, dtypes=("bfloat16",))
        np.testing.assert_array_equal(result, float32_to_bfloat16(2 * te.bfloat16_to_float32(bits)))


@pytest.mark.parametrize("vectorized", ["i", "k"])
def test_a_sum_of_products_is_added_up(vectorized: str) -> None:
    """In lanes of their own, one product after the other; in lanes that share a sum, together."""
    A, B = te.placeholder((33, 19), name="A"), te.placeholder((33, 19), name="B")
    k = te.reduce_axis(19, "k")
    C = te.compute((33,), lambda i: te.sum(A[i, k] * B[i, k] + A[i, k] * 3.0 + B[i, k] * A[i, k], axis=k), name="C")
    s = tw.Schedule(tw.Task([A, B], [C]))
    s["C"].reorder("k", "i") if vectorized == "i" else None
    s["C"].vectorize(vectorized)
    a, b = (RNG.normal(size=(33, 19)).astype(np.float32) for _ in range(2))
    np.testing.assert_allclose(tw.build(s, threads=1)(a, b), (2 * a * b + 3 * a).sum(axis=1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("name", ["asin", "acos", "atan", "sinh", "tan", "tanh", "exp", "log", "erf", "floor"])
@pytest.mark.parametrize("target", ["native", "llvm -mcpu=native -mattr=-f16c"])
def test_functions_of_half_types_call_nothing(name: str, target: str, vectorize: bool) -> None:
    X = te.placeholder((37,), "float16", name="X")
    task = tw.Task([X], te.compute((37,), lambda i: getattr(te, name)(X[i]), name="out"))
    s = tw.Schedule(task)
    if vectorize:
        s["out"].vectorize("i")
    x = np.concatenate([RNG.uniform(-1, 1, 30), [-1.0, 1.0, 0.0, -0.0, np.nan, np.inf, -np.inf]]).astype(np.float16)
    te.assert_matches(tw.build(s, target)(x), te.evaluate(task, x)[0], "float16")


def test_an_axis_is_a_value() -> None:
    out = te.compute((5, 9), lambda i, j: te.cast(i * 10 + j, "float32"), name="out")
    pad = te.placeholder((1,), name="pad")
    total = te.compute((5, 9), lambda i, j: out[i, j] + pad[0], name="total")
    s = tw.Schedule(tw.Task([pad], [total]))
    s["out"].compute_inline()
    s["total"].vectorize("j")
    expected = np.arange(5)[:, None] * 10 + np.arange(9) + 1
    np.testing.assert_array_equal(tw.build(s)(np.ones(1, np.float32)), expected.astype(np.float32))


@pytest.mark.parametrize("vectorized", ["i", "j"])
def test_an_index_read_from_memory_is_clamped_into_the_tensor(vectorized: str) -> None:
    table, rows = te.placeholder((6, 5), name="T"), te.placeholder((7,), "int32", name="R")
    out = te.compute((7, 5), lambda i, j: table[rows[i], j], name="out")
    s = tw.Schedule(tw.Task([table, rows], [out]))
    s["out"].vectorize(vectorized)
    t = RNG.normal(size=(6, 5)).astype(np.float32)
    r = np.array([0, 5, 3, 6, 100000, -1, -(2**31)], np.int32)
    np.testing.assert_array_equal(tw.build(s)(t, r), t[np.clip(r, 0, 5)])


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("schedule", ["plain", "vector", "outer", "parallel"])
def test_arg_reductions_give_the_first_extreme_and_nan_wins(op: str, schedule: str) -> None:
    a = RNG.integers(-3, 4, (6, 50)).astype(np.float32)
    a[2, 17] = a[2, 31] = np.nan
    x = te.placeholder(a.shape, name="X")
    k = te.reduce_axis(50, name="k")
    out = te.compute((6,), lambda i: getattr(te, op)(x[i, k], axis=k), name="out")
    s = tw.Schedule(tw.Task([x], [out]))
    if schedule == "vector":
        s["out"].vectorize(s["out"].split("k", 16)[1])
    if schedule == "outer":
        s["out"].reorder("k", "i")
        s["out"].vectorize("i")
    if schedule == "parallel":
        s["out"].parallel("i")
    np.testing.assert_array_equal(tw.build(s, threads=2)(a), getattr(np, op)(a, axis=1))


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("factor", [None, 4, 7])
def test_a_row_that_is_masked_as_a_whole_has_its_extreme_at_the_first_place(
    op: str, dtype: str, factor: int | None
) -> None:
    """What masks it is what a reduction begins with; yet it has an index, unlike what is beyond the end of a tile."""
    info = np.finfo(np.float32) if dtype == "float32" else np.iinfo(np.int8)
    low, high = (-np.inf, np.inf) if dtype == "float32" else (int(info.min), int(info.max))
    mask = low if op == "argmax" else high
    a = RNG.integers(-3, 4, (6, 17)).astype(dtype)
    x, k = te.placeholder(a.shape, dtype, name="X"), te.reduce_axis(17, name="k")
    out = te.compute(
        (6,), lambda i: getattr(te, op)(te.select(k < i * 3, x[i, k], te.constant(mask, dtype)), axis=k), name="out"
    )
    s = tw.Schedule(tw.Task([x], [out]))
    if factor is not None:
        s["out"].vectorize(s["out"].split("k", factor)[1])
    masked = np.where(np.arange(17) < np.arange(6)[:, None] * 3, a, np.array(mask, dtype))
    np.testing.assert_array_equal(tw.build(s, threads=1)(a), getattr(np, op)(masked, axis=1))


def test_arithmetic_on_axes_wraps_around() -> None:
    """Axes are int64: a generator of random numbers multiplies them by more than an index is ever multiplied by."""
    factor, number = 6364136223846793005, 1442695040888963407
    i = np.arange(37, dtype=np.int64)
    with np.errstate(over="ignore"):
        x = i * np.int64(factor) + np.int64(number)
        scaled = i * np.int64(1 << 62)
    cases: list[tuple[Callable[[Expr], Expr], Array]] = [
        (lambda i: (i * factor + number) % 1000, x % 1000),
        (lambda i: (i * (1 << 62)) // (1 << 62), scaled // (1 << 62)),
        (lambda i: te.maximum(i * factor + number, 0), np.maximum(x, 0)),
        (lambda i: te.cast(i * factor + number >= 0, "int64"), (x >= 0).astype(np.int64)),
        (lambda i: te.cast(i * (1 << 58) - (1 << 62) < (1 << 62) - i, "int64"), np.where(i < 32, 1, 0)),
    ]
    for function, expected in cases:
        for vectorize in (False, True):
            s = tw.Schedule(tw.Task([], [te.compute((37,), function, name="out")]))
            if vectorize:
                s["out"].vectorize("i")
            np.testing.assert_array_equal(tw.build(s, threads=1)(), expected)


def test_an_index_that_wraps_around_is_clamped_into_the_tensor() -> None:
    x = te.placeholder((5,), name="X")
    out = te.compute((8,), lambda i: x[te.minimum(i * (1 << 62), 4)], name="out")
    t = np.arange(5, dtype=np.float32)
    # 0, 2**62, -2**63, -2**62, and again
    np.testing.assert_array_equal(tw.build(tw.Task([x], [out]))(t), np.tile(np.array([0, 4, 0, 0], np.float32), 2))


def test_an_index_read_from_memory_is_clamped_into_a_stage_that_is_inlined() -> None:
    x, rows = te.placeholder((20,), name="X"), te.placeholder((6,), "int32", name="R")
    even = te.compute((10,), lambda i: x[i * 2], name="even")
    out = te.compute((6,), lambda i: even[rows[i]], name="out")
    s = tw.Schedule(tw.Task([x, rows], [out]))
    s["even"].compute_inline()
    t, r = np.arange(20, dtype=np.float32), np.array([-7, 0, 3, 9, 10, 99], np.int32)
    np.testing.assert_array_equal(tw.build(s)(t, r), t[::2][np.clip(r, 0, 9)])


def padded_row(n: int) -> tuple[tw.Task, Tensor]:
    x = te.placeholder((n,), name="X")
    out = te.compute((n + 6,), lambda i: te.select((i >= 3) & (i < n + 3), x[i - 3], 9.0), name="out")
    return tw.Task([x], [out]), out


@pytest.mark.parametrize("n", [1, 2, 5, 40, 200])
@pytest.mark.parametrize("factor", [None, 4, 7, 16])
def test_padding_along_the_vectorized_axis(n: int, factor: int | None) -> None:
    task, _ = padded_row(n)
    s = tw.Schedule(task)
    loop = s["out"].loops[0] if factor is None else s["out"].split("i", factor)[1]
    s["out"].vectorize(loop)
    a = RNG.normal(size=n).astype(np.float32)
    np.testing.assert_array_equal(tw.build(s)(a), np.pad(a, 3, constant_values=9.0))


def test_the_interior_of_a_padded_convolution_has_no_condition() -> None:
    x = te.placeholder((66, 64), name="X")
    ry, rx = te.reduce_axis(3, name="ry"), te.reduce_axis(3, name="rx")
    p = te.compute(
        (68, 66),
        lambda i, j: te.select((i >= 1) & (i < 67) & (j >= 1) & (j < 65), x[i - 1, j - 1], 0.0),
        name="P",
    )
    out = te.compute((66, 64), lambda i, j: te.sum(p[i + ry, j + rx], axis=[ry, rx]), name="out")
    s = tw.Schedule(tw.Task([x], [out]))
    s["P"].compute_inline()
    stage = s["out"]
    tile, lane = stage.split("j", 16)
    stage.reorder("i", tile, "ry", "rx", lane)
    stage.unroll("ry")
    stage.unroll("rx")
    stage.vectorize(lane)
    text = generate(lower(s), Target.parse("haswell"), 1).llvm_ir
    blocks = re.split(r"^\w+:$", text, flags=re.MULTILINE)
    tiles = [block for block in blocks if block.count("fadd") == 18 and "select" not in block]
    assert len(tiles) == 1, "one basic block computes interior tiles, and selects nothing"
    assert re.search(r"br i1 (%i\d+)\.more, ", tiles[0]), "it is the whole body of its loop"
    a = RNG.normal(size=(66, 64)).astype(np.float32)
    wide = np.pad(a, 1)
    expected = sum(wide[r : r + 66, c : c + 64] for r in range(3) for c in range(3))
    np.testing.assert_allclose(tw.build(s)(a), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_local_buffers_live_in_the_workspace_and_in_scratch_memory(threads: int) -> None:
    x = te.placeholder((12, 5000), name="X")
    double = te.compute((12, 5000), lambda i, j: x[i, j] * 2.0, name="double")
    triple = te.compute((12, 5000), lambda i, j: double[i, j] + x[i, j], name="triple")
    out = te.compute((12, 5000), lambda i, j: triple[i, 4999 - j] - double[i, j], name="out")
    s = tw.Schedule(tw.Task([x], [out]))
    s["out"].parallel("i")
    s["triple"].compute_at("out", "i")
    compiled = compile_schedule(s, threads=threads)
    entry = compiled.generated.kernel
    per_thread = 5000 * 4 if threads > 1 else 0
    assert entry.scratch_bytes >= per_thread
    assert entry.workspace_bytes >= 12 * 5000 * 4
    a = RNG.normal(size=(12, 5000)).astype(np.float32)
    np.testing.assert_allclose(load(compiled)(a), 3 * a[:, ::-1] - 2 * a, rtol=1e-5, atol=1e-5)


def test_a_parallel_loop_inside_serial_loops_sees_their_variables() -> None:
    x = te.placeholder((3, 8, 5), name="X")
    k = te.reduce_axis(3, name="k")
    out = te.compute((8, 5), lambda i, j: te.sum(x[k, i, j], axis=k), name="out")
    s = tw.Schedule(tw.Task([x], [out]))
    s["out"].reorder("k", "i", "j")
    s["out"].parallel("i")
    a = RNG.normal(size=(3, 8, 5)).astype(np.float32)
    np.testing.assert_allclose(tw.build(s, threads=2)(a), a.sum(axis=0), rtol=1e-5, atol=1e-6)


def test_accumulators_of_a_register_tile_stay_in_registers() -> None:
    a, b = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="B")
    k = te.reduce_axis(64, name="k")
    c = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = tw.Schedule(tw.Task([a, b], [c]))
    i_tile, i_row = s["C"].split("i", 4)
    j_tile, j_lane = s["C"].split("j", 16)
    s["C"].reorder(i_tile, j_tile, "k", i_row, j_lane)
    s["C"].unroll(i_row)
    s["C"].vectorize(j_lane)
    target = Target.parse("haswell")
    text = assembly(generate(lower(s), target, 1).llvm_ir, target)
    assert text.count("vfmadd") == 8, "4 rows of 2 vectors of 8 lanes, fused"
    assert "rsp" not in text, "nothing spilled to the stack"


def test_unrolling_without_bounds_is_refused() -> None:
    x = te.placeholder((512, 512), name="X")
    out = te.compute((512, 512), lambda i, j: x[i, j] + 1.0, name="out")
    s = tw.Schedule(tw.Task([x], [out]))
    s["out"].unroll("i")
    s["out"].unroll("j")
    with pytest.raises(CodegenError, match="unrolls to more than 8192 statements"):
        tw.build(s)


def test_unrolling_long_statements_is_refused_by_their_length() -> None:
    x = te.placeholder((4096,), name="X")
    out = te.compute((4096,), lambda i: te.exp(te.erf(te.tanh(te.exp(x[i])))), name="out")
    s = tw.Schedule(tw.Task([x], [out]))
    s["out"].unroll(s["out"].split("i", 1024)[1])
    with pytest.raises(CodegenError, match="unrolls to more than 40000 instructions"):
        tw.build(s)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_threads_must_be_a_positive_whole_number(threads: object) -> None:
    task, _ = padded_row(4)
    with pytest.raises(UsageError, match="threads is"):
        tw.build(task, threads=threads)  # type: ignore[arg-type]


def test_code_for_another_machine_is_compiled_but_not_loaded() -> None:
    task, _ = padded_row(4)
    compiled = compile_schedule(tw.Schedule(task), "aarch64")
    assert compiled.object_code[:4] == b"\x7fELF"
    with pytest.raises(CodegenError, match="cannot run on this machine"):
        load(compiled)
