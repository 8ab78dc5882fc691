"""Expressions whose nodes stand in many places: written once, and only where they are legal.

Written out as trees, the long ones here would have 2**31 nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright import te
from tilewright.codegen import generate
from tilewright.ir import format_nest, lower
from tilewright.target import Target
from tilewright.te import Expr
from tilewright.testing.guarded import before_guard_page

DEPTH = 31
SIZE = 100
A = te.placeholder((SIZE,), name="A")
X = np.random.default_rng(3).uniform(0.5, 1.0, SIZE).astype(np.float32)


def schedule_of(value: Callable[[te.Axis], Expr], vectorize: bool) -> tw.Schedule:
    schedule = tw.Schedule(tw.Task([A], te.compute((SIZE,), lambda i: value(i), name="B")))
    if vectorize:
        schedule["B"].vectorize("i")
    return schedule


def repeated(function: Callable[[Expr], Expr]) -> Callable[[te.Axis], Expr]:
    def value(i: te.Axis) -> Expr:
        y = A[i]
        for _ in range(DEPTH):
            y = function(y)
        return y

    return value


def repeated_in_numpy(function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> NDArray[np.float64]:
    y = X.astype(np.float64)
    for _ in range(DEPTH):
        y = function(y)
    return y


@pytest.mark.parametrize("vectorize", [False, True])
class TestLongChains:
    def test_squares(self, vectorize: bool) -> None:
        kernel = tw.build(schedule_of(repeated(lambda y: y * y), vectorize), threads=1)
        expected = repeated_in_numpy(lambda y: y * y)
        np.testing.assert_allclose(kernel(X), expected, rtol=1e-4, atol=1e-30)

    def test_a_function_of_what_is_used_again(self, vectorize: bool) -> None:
        kernel = tw.build(schedule_of(repeated(lambda y: y * te.sigmoid(y)), vectorize), threads=1)
        expected = repeated_in_numpy(lambda y: y / (1 + np.exp(-y)))
        np.testing.assert_allclose(kernel(X), expected, rtol=1e-4)

    def test_a_select_of_what_its_condition_tests(self, vectorize: bool) -> None:
        kernel = tw.build(schedule_of(repeated(lambda y: te.select(y > 0.7, y * 0.9, y * 1.1)), vectorize), threads=1)
        expected = X
        for _ in range(DEPTH):
            expected = np.where(expected > np.float32(0.7), expected * np.float32(0.9), expected * np.float32(1.1))
        np.testing.assert_allclose(kernel(X), expected, rtol=1e-5)

    def test_a_select_by_the_place(self, vectorize: bool) -> None:
        def value(i: te.Axis) -> Expr:
            y = A[i]
            for n in range(DEPTH):
                y = te.select(i % 40 > n, y * 2.0, y + 1.0)
            return y

        expected = X.astype(np.float64)
        for n in range(DEPTH):
            expected = np.where(np.arange(SIZE) % 40 > n, expected * 2, expected + 1)
        np.testing.assert_allclose(tw.build(schedule_of(value, vectorize), threads=1)(X), expected, rtol=1e-5)

    def test_an_index(self, vectorize: bool) -> None:
        def value(i: te.Axis) -> Expr:
            index: Expr = i
            for _ in range(DEPTH):
                index = index + index
            return A[index % SIZE]

        expected = X[(np.arange(SIZE) << DEPTH) % SIZE]
        np.testing.assert_array_equal(tw.build(schedule_of(value, vectorize), threads=1)(X), expected)


def test_every_node_is_written_once() -> None:
    schedule = schedule_of(repeated(lambda y: y * y), vectorize=False)
    text = generate(lower(schedule, check=True), Target.parse("llvm -mcpu=haswell"), 1).llvm_ir
    assert len(re.findall(r"= fmul", text)) == DEPTH
    assert len(re.findall(r"= load float", text)) == 1


def test_what_is_too_long_to_print_is_left_out() -> None:
    schedule = schedule_of(repeated(lambda y: y * y), vectorize=True)
    for text in (str(schedule), str(schedule.task.stages[0]), format_nest(lower(schedule).kernel)):
        assert "... * ..." in text
        assert len(text) < 50_000


@pytest.mark.parametrize("vectorize", [False, True])
class TestGuards:
    """A read that only one branch may make is not made for the other, nor under a wider condition."""

    @pytest.mark.parametrize("limits", [(20, 60), (60, 20)])
    def test_a_read_in_two_branches(self, vectorize: bool, limits: tuple[int, int]) -> None:
        first, second = limits

        def value(i: te.Axis) -> Expr:
            place = i * 37 % SIZE  # which changes too often for loops to be cut there
            after = A[place + 40]
            return te.select(place < first, after * after, 0.0) + te.select(place < second, after, 1.0)

        place = np.arange(SIZE) * 37 % SIZE
        after = X[np.minimum(place + 40, SIZE - 1)]
        expected = np.where(place < first, after * after, 0) + np.where(place < second, after, 1)
        kernel = tw.build(schedule_of(value, vectorize), threads=1)
        np.testing.assert_allclose(kernel(before_guard_page(X)), expected, rtol=1e-6)

    def test_a_read_in_nested_branches_by_data(self, vectorize: bool) -> None:
        def value(i: te.Axis) -> Expr:
            far = A[i + 5000]  # far from any memory of the array
            near = A[i]
            never = te.select(near > 2.0, far * far, near)
            return te.select(near > 0.75, te.select(near > 3.0, far, never), never)

        kernel = tw.build(schedule_of(value, vectorize), threads=1)
        np.testing.assert_array_equal(kernel(before_guard_page(X)), X)

    def test_a_read_first_in_a_branch_and_then_without_one(self, vectorize: bool) -> None:
        def value(i: te.Axis) -> Expr:
            here = A[i]
            return te.select(here > 0.75, here * 2.0, 0.0) + here

        expected = np.where(X > 0.75, X * 2, 0) + X
        np.testing.assert_allclose(tw.build(schedule_of(value, vectorize), threads=1)(X), expected, rtol=1e-6)


def test_a_chain_of_inlined_stages_that_read_twice() -> None:
    stages = [A]
    for n in range(DEPTH):
        before = stages[-1]
        stages.append(te.compute((SIZE,), lambda i, t=before: t[i] * te.sigmoid(t[i]), name=f"S{n}"))
    schedule = tw.Schedule(tw.Task([A], stages[-1]))
    for stage in stages[1:-1]:
        schedule[stage.name].compute_inline()
    expected = repeated_in_numpy(lambda y: y / (1 + np.exp(-y)))
    np.testing.assert_allclose(tw.build(schedule, threads=1)(X), expected, rtol=1e-4, atol=1e-30)
