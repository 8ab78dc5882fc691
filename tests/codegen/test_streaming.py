"""Outputs that are written past the caches: which, by what instructions, and that they are what they were."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen import compile_schedule
from tilewright.codegen.module import generate
from tilewright.codegen.reuse import CodeShelf
from tilewright.codegen.streaming import is_lost
from tilewright.ir import lower
from tilewright.runtime.build import load
from tilewright.target import Target
from tilewright.tuning.untuned import default_trace

# So small a cache that every output below is larger.
SMALL = "-l1d=1K -l2=1K -l3=0"
TARGET = Target.parse(f"llvm -mcpu=native {SMALL}")
N = 64


def scaled(shape: tuple[int, ...] = (N, N), dtype: str = "float32") -> tw.Task:
    a = te.placeholder(shape, dtype, name="A")
    return tw.Task([a], te.compute(shape, lambda *i: a[i] + a[i], name="B"))


def product() -> tw.Task:
    a, b, k = te.placeholder((N, 24), name="A"), te.placeholder((24, N), name="B"), te.reduce_axis(24, name="k")
    return tw.Task([a, b], te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C"))


def transposed() -> tw.Task:
    a = te.placeholder((N, N), name="A")
    return tw.Task([a], te.compute((N, N), lambda i, j: a[j, i], name="B"))


def text_of(schedule: tw.Schedule, target: Target = TARGET, threads: int = 2) -> str:
    return compile_schedule(schedule, target, threads).generated.llvm_ir


def vectors(task: tw.Task) -> tw.Schedule:
    """Rows on threads, in vectors."""
    s = tw.Schedule(task)
    stage = s[task.outputs[0].name]
    stage.vectorize(stage.loops[-1])
    stage.parallel(stage.loops[0])
    return s


needs_x86 = pytest.mark.skipif(TARGET.arch != "x86_64", reason="only x86 has such stores")


@needs_x86
@pytest.mark.parametrize("threads", [1, 2])
def test_a_large_output_is_written_past_the_caches(threads: int) -> None:
    text = text_of(vectors(scaled()), threads=threads)
    assert "!nontemporal" in text
    assert text.count("call void @llvm.x86.sse.sfence()") == 1


@pytest.mark.parametrize(
    "target", ["-mcpu=native", f"-mcpu=cortex-a72 {SMALL}", f"-mtriple=riscv64-unknown-linux-gnu {SMALL}"]
)
def test_others_are_not(target: str) -> None:
    assert "!nontemporal" not in text_of(vectors(scaled()), Target.parse(f"llvm {target}"))


@needs_x86
def test_an_output_that_is_read_again_is_not() -> None:
    a = te.placeholder((N, N), name="A")
    b = te.compute((N, N), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((N, N), lambda i, j: b[j, i] + 1.0, name="C")
    s = tw.Schedule(tw.Task([a], [b, c]))
    for name in "BC":
        s[name].vectorize("j")
    stores = [line for line in text_of(s).splitlines() if "!nontemporal" in line]
    assert stores
    x = np.random.default_rng(0).normal(size=(N, N)).astype(np.float32)
    kept, streamed = tw.build(s, TARGET)(x)
    np.testing.assert_array_equal(kept, x * 2)
    np.testing.assert_array_equal(streamed, kept.T + 1)


@needs_x86
def test_a_sum_in_its_place_is_not() -> None:
    s = tw.Schedule(product())
    c = s["C"]
    i, j, k = c.loops
    c.reorder(i, k, j)
    assert "!nontemporal" not in text_of(s)


@needs_x86
@pytest.mark.parametrize("shape", [(N, N + 1), (N, 24), (N, 8)])
def test_what_is_no_whole_line_is_written_as_ever(shape: tuple[int, int]) -> None:
    """Rows that begin within a line, or are half of one."""
    assert "!nontemporal" not in text_of(vectors(scaled(shape)))


@needs_x86
@pytest.mark.parametrize("options", ["", "-vector-bits=256", "-vector-bits=128"])
@pytest.mark.parametrize("task", [scaled(), product(), transposed()], ids=["scaled", "product", "transposed"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("offset", [0, 1, 4, 8, 16])
def test_wherever_the_output_begins_it_is_the_same(task: tw.Task, options: str, threads: int, offset: int) -> None:
    target = Target.parse(f"llvm -mcpu=native {SMALL} {options}")
    arrays = te.random_inputs(task, np.random.default_rng(offset))
    schedule = default_trace(task, target, threads).apply(task)
    large = Target.parse(f"llvm -mcpu=native {options}")
    expected = tw.build(schedule, large, threads)(*arrays)
    memory = np.full(N * N + 64, np.nan, np.float32)
    first = -(memory.ctypes.data // 4) % 16 + offset
    out = memory[first : first + N * N].reshape(N, N)
    tw.build(schedule, target, threads)(*arrays, out=out)
    np.testing.assert_array_equal(out, expected)
    assert np.isnan(memory[:first]).all()
    assert np.isnan(memory[first + N * N :]).all()


@needs_x86
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "int32", "int64"])
def test_elements_of_any_size(dtype: str) -> None:
    task = scaled((N, 128), dtype)
    arrays = te.random_inputs(task, np.random.default_rng(0))
    found = tw.build(vectors(task), TARGET)(*arrays)
    np.testing.assert_array_equal(found, tw.build(vectors(task))(*arrays))


@needs_x86
def test_threads_see_what_others_wrote() -> None:
    """Each run reads what threads wrote in the one before, most of it other threads."""
    a = te.placeholder((512, 128), name="A")
    task = tw.Task([a], te.compute((512, 128), lambda i, j: a[511 - i, j] + 1.0, name="B"))
    kernel = tw.build(vectors(task), TARGET, threads=2)
    zeros = np.zeros((512, 128), np.float32)
    first, second = kernel(zeros), kernel(zeros)  # made by the kernel, they are aligned
    first[:] = 0
    for _ in range(100):
        kernel(first, out=second)
        first, second = second, first
    np.testing.assert_array_equal(first, np.full((512, 128), 100))


@needs_x86
def test_bodies_on_the_shelf_are_told_apart() -> None:
    shelf, module = CodeShelf(TARGET, 2), lower(vectors(scaled()))
    texts = [generate(module, TARGET, 2, shelf=shelf).llvm_ir for _ in range(2)]
    assert texts[0] == texts[1] == text_of(vectors(scaled()))


def test_a_kernel_without_such_stores_is_one_function() -> None:
    compiled = compile_schedule(vectors(scaled((N, 8))), TARGET, 1)
    assert compiled.generated.llvm_ir.count("define i32") == 1
    np.testing.assert_array_equal(load(compiled)(np.ones((N, 8), np.float32)), np.full((N, 8), 2))


@pytest.mark.parametrize(
    ("output", "everything", "lost"),
    [(25, 25, True), (24, 60, False), (24, 64, True), (16, 64, True), (15, 400, False), (1, 400, False)],
)
def test_an_output_is_lost_where_the_cache_is_too_small_for_it(output: int, everything: int, lost: bool) -> None:
    assert is_lost(output, everything, 32) == lost
