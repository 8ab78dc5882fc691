"""Code that programs share is written and compiled once, and each program computes what it would alone."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright import te, workloads
from tilewright.codegen.binary import KernelBinary
from tilewright.codegen.reuse import CodeShelf
from tilewright.ir import For, lower, statements
from tilewright.runtime.build import load_binary
from tilewright.schedule import PARALLEL, Schedule, Trace
from tilewright.space import SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import evaluate, random_inputs

Array = NDArray[Any]
TARGET = Target.native()
SMALL = Target.parse("llvm -mcpu=native -l1d=1K -l2=1K -l3=0")
CONVOLUTION = workloads.parse("c2d:1x8x8x16,32,3x3,s1,p1")


def winograd_programs(number: int) -> list[Trace]:
    """Different candidates of one sketch with large transforms."""
    options = SpaceOptions(TARGET, 2, exact=False)
    sketch = next(s for s in derive(CONVOLUTION, options) if "winograd4" in str(s.steps[0]))
    found = sketch.sample(np.random.default_rng(0), 400).unique()
    legal = found[found.legal(TARGET)]
    return [legal.trace(n) for n in range(0, len(legal), len(legal) // number)][:number]


def result_of(binary: KernelBinary, task: tw.Task, arrays: list[Array]) -> Array:
    constants = {t.name: a for t, a in zip(task.inputs, arrays, strict=True) if t.is_constant}
    others = [a for t, a in zip(task.inputs, arrays, strict=True) if not t.is_constant]
    kernel = load_binary(binary, task, 2)
    found = (kernel.bind(**constants) if constants else kernel)(*others)
    assert isinstance(found, np.ndarray)
    return found


def scaled(factor: float, length: int = 64, name: str = "B") -> Schedule:
    A = te.placeholder((length,), name="A")
    B = te.compute((length,), lambda i: A[i] * factor, name=name)
    s = Schedule(tw.Task([A], [B]))
    s[name].split("i", 16)
    s[name].vectorize("i.1")
    s[name].parallel("i.0")
    return s


@pytest.mark.parametrize("target", [TARGET, SMALL], ids=["outputs that fit", "outputs past the caches"])
def test_programs_from_one_shelf_compute_what_numpy_computes(target: Target) -> None:
    arrays = random_inputs(CONVOLUTION, np.random.default_rng(1))
    (expected,) = evaluate(CONVOLUTION, *arrays)
    shelf = CodeShelf(target, 2)
    for trace in 2 * winograd_programs(6):
        found = result_of(shelf.compile(trace.apply(CONVOLUTION)), CONVOLUTION, arrays)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_large_functions_and_those_that_come_again_are_compiled_once() -> None:
    shelf = CodeShelf(TARGET, 2)
    trace = winograd_programs(1)[0]
    first, second, third = (shelf.compile(trace.apply(CONVOLUTION)) for _ in range(3))
    assert 0 < len(first.parts) < len(second.parts)
    assert {id(part) for part in first.parts} <= {id(part) for part in second.parts}
    assert all(a is b for a, b in zip(second.parts, third.parts, strict=True))
    assert second.object_code == third.object_code
    pack = first.packs[0].entry.symbol.encode()
    assert pack in first.object_code
    assert pack not in second.object_code


def test_small_programs_are_one_object_file() -> None:
    assert CodeShelf(TARGET, 2).compile(scaled(2.0)).parts == ()


@pytest.mark.parametrize("other", [scaled(3.0), scaled(2.0, length=128), scaled(2.0, name="C")])
def test_what_differs_is_not_taken_for_the_same(other: Schedule) -> None:
    shelf = CodeShelf(TARGET, 2)
    for schedule in (scaled(2.0), other, scaled(2.0)):
        arrays = random_inputs(schedule.task, np.random.default_rng(1))
        (expected,) = evaluate(schedule.task, *arrays)
        np.testing.assert_array_equal(result_of(shelf.compile(schedule), schedule.task, arrays), expected)


def test_a_loop_inside_another_reads_its_counter() -> None:
    A = te.placeholder((2, 64), name="A")
    B = te.compute((2, 64), lambda i, j: A[i, j] + te.cast(i, "float32"), name="B")
    s = Schedule(tw.Task([A], [B]))
    s["B"].parallel("j")
    arrays = random_inputs(s.task, np.random.default_rng(1))
    (expected,) = evaluate(s.task, *arrays)
    np.testing.assert_array_equal(result_of(CodeShelf(TARGET, 2).compile(s), s.task, arrays), expected)


def test_the_same_loop_of_two_lowerings_has_the_same_bytes() -> None:
    """What a shelf finds its bodies by: a linear form must not carry what was computed of it."""

    def loops() -> list[bytes]:
        nest = lower(scaled(2.0)).kernel.body
        for loop in (each for each in statements(nest) if isinstance(each, For)):
            hash(loop.var)
        return [pickle.dumps(s) for s in statements(nest) if isinstance(s, For) and s.kind == PARALLEL]

    assert loops() == loops()
    assert loops()
