"""Sums of products of bytes by words: where the algorithm applies, what it is made of, and that it is exact."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright import te
from tilewright.errors import ExpressionError
from tilewright.ir import lower
from tilewright.space import SpaceOptions, derive
from tilewright.te import Expr, Task, Tensor
from tilewright.te.algorithms import algorithms_for, rewritten
from tilewright.testing.interpret import interpret
from tilewright.tuning.untuned import default_trace

KINDS = list(itertools.product(("uint8", "int8"), repeat=2))


def wide(e: Expr) -> Expr:
    return te.cast(e, "int32")


def product(n: int, m: int, length: int, kinds: tuple[str, str], *, constant: bool = True) -> Task:
    A = te.placeholder((n, length), kinds[0], "A")
    B = te.placeholder((length, m), kinds[1], "B", constant=constant)
    k = te.reduce_axis(length, "k")
    return Task([A, B], te.compute((n, m), lambda i, j: te.sum(wide(A[i, k]) * wide(B[k, j]), axis=k), "C"))


def convolution(
    size: int, inputs: int, outputs: int, kinds: tuple[str, str], *, stride: int = 1, around: int = 0
) -> Task:
    """A 3x3 convolution with `around` around the data, and a bias that is added to its sums."""
    X = te.placeholder((2, size, size, inputs), kinds[0], "X")
    W = te.placeholder((3, 3, inputs, outputs), kinds[1], "W", constant=True)
    bias = te.placeholder((outputs,), "int32", "bias", constant=True)
    P = te.compute(
        (2, size + 2, size + 2, inputs),
        lambda n, y, x, c: te.select(
            (y >= 1) & (y <= size) & (x >= 1) & (x <= size), X[n, y - 1, x - 1, c], te.constant(around, kinds[0])
        ),
        "P",
    )
    r, s, c = te.reduce_axis(3, "r"), te.reduce_axis(3, "s"), te.reduce_axis(inputs, "c")
    rows = (size - 1) // stride + 1
    Y = te.compute(
        (2, rows, rows, outputs),
        lambda n, y, x, f: te.sum(wide(P[n, y * stride + r, x * stride + s, c]) * wide(W[r, s, c, f]), [r, s, c]),
        "Y",
    )
    return Task([X, W, bias], te.compute(Y.shape, lambda n, y, x, f: Y[n, y, x, f] + bias[f], "Z"))


def any_bytes(task: Task, rng: np.random.Generator) -> list[NDArray[Any]]:
    return [
        rng.integers(np.iinfo(t.dtype).min, np.iinfo(t.dtype).max, t.shape, t.dtype, endpoint=True) for t in task.inputs
    ]


def by_words(task: Task, name: str) -> tw.Schedule:
    schedule = tw.Schedule(task)
    schedule[name].algorithm("dot4")
    return schedule


def test_bytes_of_both_kinds_are_multiplied_as_they_are() -> None:
    found = rewritten(product(5, 7, 16, ("int8", "uint8")).stages[-1], "dot4")
    assert {stage.name: stage.shape for stage in found.stages} == {"C.data": (5, 4), "C.weights": (4, 7)}
    assert [stage.name for stage in found.ahead] == ["C.weights"]
    assert str(found.body) == "sum(dot4(C.weights[k, j], C.data[i, k]), axis=[k])"


def test_one_of_two_of_the_same_kind_is_moved_and_the_other_summed() -> None:
    found = rewritten(convolution(6, 10, 7, ("uint8", "uint8")).stages[1], "dot4")
    assert {stage.name: stage.shape for stage in found.stages} == {
        "Y.data": (2, 6, 6, 3),
        "Y.data.padded": (2, 8, 8, 3),
        "Y.weights": (3, 3, 3, 7),
        "Y.product": (2, 6, 6, 7),
        "Y.sums": (2, 8, 8),
        "Y.windows": (2, 6, 6),
    }
    assert str(found.body) == "Y.product[n, y, x, f] + Y.windows[n, y, x] * 128"


@pytest.mark.parametrize("kinds", KINDS)
def test_products_are_exact(kinds: tuple[str, str]) -> None:
    rng = np.random.default_rng(0)
    for n, m, length in [(5, 17, 16), (1, 1, 1), (4, 3, 2), (1, 9, 3), (3, 1, 5), (2, 33, 70)]:
        task = product(n, m, length, kinds, constant=bool(length % 2))
        extremes = [np.full(t.shape, limit(t.dtype), t.dtype) for t in task.inputs for limit in (_least, _most)]
        for arrays in (any_bytes(task, rng), extremes[0::2], extremes[1::2], [extremes[0], extremes[3]]):
            expected = arrays[0].astype(np.int32) @ arrays[1].astype(np.int32)
            np.testing.assert_array_equal(tw.build(by_words(task, "C"), threads=1)(*arrays), expected)


def _least(dtype: str) -> int:
    return int(np.iinfo(dtype).min)


def _most(dtype: str) -> int:
    return int(np.iinfo(dtype).max)


@pytest.mark.parametrize("kinds", KINDS)
def test_sums_wrap_around_as_those_of_int32_do(kinds: tuple[str, str]) -> None:
    task = product(1, 2, 140_000, kinds)
    arrays = [np.full(t.shape, _least(t.dtype) or _most(t.dtype), t.dtype) for t in task.inputs]
    with np.errstate(over="ignore"):
        expected = arrays[0].astype(np.int32) @ arrays[1].astype(np.int32)
    assert int(arrays[0][0, 0]) * int(arrays[1][0, 0]) * 140_000 != int(expected[0, 0])
    np.testing.assert_array_equal(tw.build(by_words(task, "C"), threads=1)(*arrays), expected)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize(("inputs", "stride", "around"), [(8, 1, 0), (3, 2, 0), (4, 1, 7), (6, 2, 3), (1, 1, 0)])
def test_convolutions_are_exact(kinds: tuple[str, str], inputs: int, stride: int, around: int) -> None:
    task = convolution(5, inputs, 18, kinds, stride=stride, around=around)
    arrays = any_bytes(task, np.random.default_rng(inputs))
    (expected,) = te.evaluate(task, *arrays)
    kernel = tw.build(by_words(task, "Y"), threads=1).bind(W=arrays[1], bias=arrays[2])
    np.testing.assert_array_equal(kernel(arrays[0]), expected)


def test_a_tensor_that_is_multiplied_with_itself() -> None:
    A, k = te.placeholder((6, 9), "int8", "A", constant=True), te.reduce_axis(9, "i1")
    task = Task([A], te.compute((6, 6), lambda i, j: te.sum(wide(A[i, k]) * wide(A[j, k]), axis=k), "C"))
    (array,) = any_bytes(task, np.random.default_rng(3))
    schedule = by_words(task, "C")
    assert lower(schedule, check=True).packs == ()
    np.testing.assert_array_equal(tw.build(schedule, threads=1)(array), array.astype(np.int32) @ array.T)


def test_the_interpreter_computes_the_same() -> None:
    task = product(3, 5, 11, ("int8", "int8"))
    arrays = any_bytes(task, np.random.default_rng(4))
    (found,) = interpret(lower(by_words(task, "C")), *arrays)
    np.testing.assert_array_equal(found, arrays[0].astype(np.int32) @ arrays[1].astype(np.int32))


def others() -> dict[str, Tensor]:
    A, B = te.placeholder((8, 8), "int8", "A"), te.placeholder((8,), "int8", "B")
    F, k, r = te.placeholder((8,), name="F"), te.reduce_axis(4, "k"), te.reduce_axis(3, "r")
    return {
        "floats": te.compute((4,), lambda i: te.sum(F[k] * F[k], axis=k)),
        "sums of int64": te.compute((4,), lambda i: te.sum(te.cast(A[i, k], "int64") * te.cast(B[k], "int64"), k)),
        "products of bytes": te.compute((4,), lambda i: te.sum(wide(A[i, k] * B[k]), axis=k)),
        "backwards": te.compute((4,), lambda i: te.sum(wide(A[i, 3 - k]) * wide(B[k]), axis=k)),
        "along a diagonal": te.compute((4,), lambda i: te.sum(wide(A[k, k]) * wide(B[k]), axis=k)),
        "a window": te.compute((4,), lambda i: te.sum(wide(A[0, i + r]) * wide(B[r]), axis=r)),
        "the largest": te.compute((4,), lambda i: te.max(wide(A[i, k]) * wide(B[k]), axis=k)),
        "a copy": te.compute((4,), lambda i: A[i, 0]),
    }


@pytest.mark.parametrize(("tensor"), others().values(), ids=others().keys())
def test_what_is_no_such_sum_is_left_alone(tensor: Tensor) -> None:
    assert algorithms_for(tensor) == []
    with pytest.raises(ExpressionError, match="dot4 computes sums in int32 of products of int8 or uint8"):
        rewritten(tensor, "dot4")


@pytest.mark.parametrize(("length", "names"), [(1, []), (2, ["dot4"]), (5, ["dot4"]), (64, ["dot4"])])
def test_words_are_for_more_than_one_byte(length: int, names: list[str]) -> None:
    assert algorithms_for(product(4, 4, length, ("int8", "int8")).stages[-1], exact=True) == names


@pytest.mark.parametrize("kinds", [("uint8", "int8"), ("int8", "int8")])
def test_all_sketches_of_words_compute_the_sums(kinds: tuple[str, str]) -> None:
    target, rng = tw.Target.native(), np.random.default_rng(5)
    for task in (convolution(6, 8, 18, kinds), product(9, 20, 30, kinds, constant=False)):
        arrays = any_bytes(task, rng)
        (expected,) = te.evaluate(task, *arrays)
        sketches = [s for s in derive(task, SpaceOptions(target, 2, exact=True)) if s.steps[0].name == "algorithm"]
        assert sketches
        for sketch in sketches:
            population = sketch.sample(rng, 8)
            for candidate in population[population.legal(target)][:1]:
                found = tw.build(candidate.trace.apply(task), target, 2)(*arrays)
                np.testing.assert_array_equal(found, expected)


def test_large_products_are_by_words_where_nothing_was_measured_and_that_is_exact() -> None:
    for kinds in (("uint8", "int8"), ("int8", "int8")):
        trace = default_trace(product(256, 256, 256, kinds), tw.Target.parse("llvm -mcpu=znver4"), 2, exact=True)
        assert trace.algorithms == ("dot4",)
        assert trace.is_exact
        assert trace.error_growth == 1.0
