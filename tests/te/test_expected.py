"""What counts as right where a little noise in the last bits of floats moves a result by more than rounding does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright import te
from tilewright.te import Expected, Expr, Task, evaluate, random_inputs

N = 1000


def elementwise(function: Callable[[Expr], Expr]) -> Task:
    X = te.placeholder((N, N), name="X")
    return Task([X], te.compute((N, N), lambda i, j: function(X[i, j] * 127.0 + 0.5), name="Y"))


def expected_of(task: Task) -> Expected:
    inputs = random_inputs(task, np.random.default_rng(0))
    return Expected(task, lambda: inputs, evaluate(task, *inputs))


STEPS: dict[str, Callable[[Expr], Expr]] = {
    "floor": lambda x: te.floor(x) / 127.0,
    "to integers": lambda x: te.cast(te.floor(x), "int32"),
    "towards zero": lambda x: te.cast(x, "int64"),
    "a comparison": lambda x: x > 3.0,
    "a choice": lambda x: te.select(x > 3.0, 1.0, -1.0),
}


@pytest.mark.parametrize("name", STEPS)
def test_products_and_sums_of_one_rounding_are_right(name: str) -> None:
    """A kernel rounds `x * 127 + 0.5` once, the reference twice; a few of a million elements fall on another side."""
    task = elementwise(STEPS[name])
    expected = expected_of(task)
    assert expected.mismatch([tw.build(task)(*expected.draw_inputs())]) == ""


def test_a_count_of_what_falls_on_another_side_is_right() -> None:
    X, k = te.placeholder((8, 200_000), name="X"), te.reduce_axis(200_000, name="k")
    value = te.compute((8,), lambda i: te.sum(te.cast(X[i, k] * 3.0 + 0.1 > 0.7, "int32"), axis=k), name="Y")
    expected = expected_of(Task([X], value))
    assert expected.mismatch([tw.build(expected.task)(*expected.draw_inputs())]) == ""
    assert expected.mismatch([expected.outputs[0] + 1000]) != ""


@pytest.mark.parametrize("name", STEPS)
def test_what_is_far_from_a_step_must_be_as_it_is(name: str) -> None:
    expected = expected_of(elementwise(STEPS[name]))
    right = expected.outputs[0]
    wrong: NDArray[np.generic] = ~right if right.dtype == bool else right + right.dtype.type(1)
    mixed = right.copy()
    mixed[:3] = wrong[:3]
    assert "differ" in expected.mismatch([mixed])


def test_whole_numbers_must_be_as_they_are() -> None:
    """They lie on steps, and are computed without rounding."""
    X = te.placeholder((64,), "int8", name="X")
    halves = te.compute((64,), lambda i: te.floor(te.cast(X[i], "float32") * 0.5), name="Y")
    expected = expected_of(Task([X], halves))
    assert expected.mismatch([expected.outputs[0]]) == ""
    assert "64 of 64" in expected.mismatch([expected.outputs[0] - 1])


def test_what_relu_makes_zero_is_not_above_zero() -> None:
    X = te.placeholder((100,), name="X")
    relu = te.compute((100,), lambda i: te.maximum(X[i], 0.0), name="R")
    expected = expected_of(Task([X], te.compute((100,), lambda i: relu[i] > 0.0, name="Y")))
    assert "differ" in expected.mismatch([np.ones(100, bool)])


PRODUCTS: dict[str, Callable[[Expr], Expr]] = {
    "logarithm": lambda x: te.log(te.abs(x)),
    "reciprocal": lambda x: 1.0 / x,
    "exponential": lambda x: te.exp(x * 3.0),
    "oscillation": lambda x: te.sin(x * 100.0),
    "sign": lambda x: te.select(x > 0.0, 1.0, -1.0),
    "root": lambda x: te.sqrt(x),
}


def of_product(function: Callable[[Expr], Expr]) -> Expected:
    n, m = 300, 64
    A, B = te.placeholder((n, m), name="A"), te.placeholder((m, n), name="B")
    k = te.reduce_axis(m, name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return expected_of(Task([A, B], te.compute((n, n), lambda i, j: function(C[i, j]), name="D")))


@pytest.mark.parametrize("name", PRODUCTS)
def test_what_a_function_makes_of_a_rounded_sum_is_right(name: str) -> None:
    expected = of_product(PRODUCTS[name])
    s = tw.Schedule(expected.task)
    s["C"].reorder("i", "k", "j")
    s["C"].vectorize("j")
    assert expected.mismatch([tw.build(s)(*expected.draw_inputs())]) == ""


@pytest.mark.parametrize("name", PRODUCTS)
def test_what_a_function_makes_of_a_wrong_sum_is_not(name: str) -> None:
    """A program that leaves the last product out."""
    expected = of_product(PRODUCTS[name])
    a, b = (x.astype(np.float64) for x in expected.draw_inputs())
    C = te.placeholder((300, 300), name="C")
    last = Task([C], te.compute((300, 300), lambda i, j: PRODUCTS[name](C[i, j]), name="D"))
    (wrong,) = evaluate(last, (a[:, :-1] @ b[:-1]).astype(np.float32))
    assert "differ" in expected.mismatch([wrong])


def test_differences_of_sums_are_right() -> None:
    """Both sums are off by as much as each is, and their difference is small."""
    X, k = te.placeholder((500, 2000), name="X"), te.reduce_axis(2000, name="k")
    total = te.compute((500,), lambda i: te.sum(X[i, k], axis=k), name="total")
    other = te.compute((500,), lambda i: te.sum(te.abs(X[i, k]) * 0.02, axis=k), name="other")
    task = Task([X], te.compute((500,), lambda i: 1.0 / (total[i] - other[i]), name="Y"))
    expected = expected_of(task)
    s = tw.Schedule(task)
    for stage in ("total", "other"):
        s[stage].vectorize(s[stage].split("k", 32)[1])
    assert expected.mismatch([tw.build(s)(*expected.draw_inputs())]) == ""
    assert "differ" in expected.mismatch([expected.outputs[0] * np.float32(1.01)])


@pytest.mark.parametrize("is_limited", [False, True])
def test_roots_of_differences_that_are_zero_but_for_rounding_are_right(is_limited: bool) -> None:
    """Distances of points from themselves, by their products: zero, some small number, or NaN."""
    X, d = te.placeholder((120, 32), name="X"), te.reduce_axis(32, name="d")
    squares = te.compute((120,), lambda i: te.sum(X[i, d] * X[i, d], axis=d), name="squares")
    products = te.compute((120, 120), lambda i, j: te.sum(X[i, d] * X[j, d], axis=d), name="products")

    def distance(i: Expr, j: Expr) -> Expr:
        square = squares[i] + squares[j] - 2.0 * products[i, j]
        return te.sqrt(te.maximum(square, 0.0) if is_limited else square)

    expected = expected_of(Task([X], te.compute((120, 120), distance, name="D")))
    s = tw.Schedule(expected.task)
    s["squares"].vectorize(s["squares"].split("d", 16)[1])
    assert expected.mismatch([tw.build(s)(*expected.draw_inputs())]) == ""
    assert "differ" in expected.mismatch([expected.outputs[0] + np.float32(1e-3)])
