"""Printing: Python syntax, minimal parentheses, numbers that read back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright import te
from tilewright.te.printer import format_number

A = te.placeholder((4, 8), name="A")
B = te.placeholder((8, 4), name="B", constant=True)
N = te.placeholder((4, 8), "int32", name="N")
i = te.reduce_axis(4, name="i")
j = te.reduce_axis(8, name="j")
k = te.reduce_axis(8, name="k")
a, b, n = A[i, j], B[j, i], N[i, j]

EXPRESSIONS: list[tuple[te.Expr, str]] = [
    (i + 1 + j, "i + 1 + j"),
    (i + (j + 1), "i + (j + 1)"),
    (i - (j - 1), "i - (j - 1)"),
    ((i - j) - 1, "i - j - 1"),
    (i * (j + 1), "i * (j + 1)"),
    (i * j + 1, "i * j + 1"),
    (i // 4 * 4 + i % 4, "i // 4 * 4 + i % 4"),
    (i // (j * 4), "i // (j * 4)"),
    (i + -1, "i - 1"),
    (i - -1, "i - -1"),
    (i * -2, "i * -2"),
    (-i * 2, "-i * 2"),
    (-(i * 2), "-(i * 2)"),
    (-te.unary("neg", i), "--i"),
    (A[n, j], "A[N[i, j], j]"),
    (abs(-a), "abs(-A[i, j])"),
    (a / b / 2.0, "A[i, j] / B[j, i] / 2.0"),
    (a / (b / 2.0), "A[i, j] / (B[j, i] / 2.0)"),
    (a**2.0, "pow(A[i, j], 2.0)"),
    ((i < 3) & (j >= 1), "(i < 3) & (j >= 1)"),
    ((i < 3) | (j >= 1) & (i > 0), "(i < 3) | (j >= 1) & (i > 0)"),
    (((i < 3) | (j >= 1)) & (i > 0), "((i < 3) | (j >= 1)) & (i > 0)"),
    (~((i < 3) & (j >= 1)), "~((i < 3) & (j >= 1))"),
    (te.equal(i + 1, j), "i + 1 == j"),
    (te.not_equal(i < 2, j < 2), "(i < 2) != (j < 2)"),
    (te.maximum(a, 0.0) * 2.0, "max(A[i, j], 0.0) * 2.0"),
    (te.minimum(i, j) // 2, "min(i, j) // 2"),
    (te.select(i > 0, A[i - 1, j], 0.0), "select(i > 0, A[i - 1, j], 0.0)"),
    (te.cast(a + 1.0, "int32"), "int32(A[i, j] + 1.0)"),
    (n * a, "float32(N[i, j]) * A[i, j]"),
    (te.exp(a) + te.rsqrt(b + 1e-5), "exp(A[i, j]) + rsqrt(B[j, i] + 1e-05)"),
    (te.sum(A[i, k] * B[k, i], axis=k), "sum(A[i, k] * B[k, i], axis=[k])"),
    (te.prod(a, axis=[i, j]), "prod(A[i, j], axis=[i, j])"),
    (te.argmax(A[i, k], axis=k), "argmax(A[i, k], axis=[k])"),
    (te.argmin(a, axis=[i, j]), "argmin((A[i, j], i * 8 + j), axis=[i, j])"),
    (te.constant(True, "bool") & (i < 1), "True & (i < 1)"),
]


@pytest.mark.parametrize(("expr", "text"), EXPRESSIONS, ids=[text for _, text in EXPRESSIONS])
def test_expressions_print_with_minimal_parentheses(expr: te.Expr, text: str) -> None:
    assert te.format_expr(expr) == str(expr) == text


def test_integer_expressions_read_back_as_the_same_value() -> None:
    builders: list[Callable[..., object]] = [
        lambda i, j: i - (j - 3) * -2 + (i + j) % 3,
        lambda i, j: -(i // 2 * 3) - (i - (j + 1)),
        lambda i, j: -i // 2 + i * (j // 3 % 2),
    ]
    for build in builders:
        text = str(build(i, j))
        assert all(eval(text, {"i": x, "j": y}) == build(x, y) for x in range(5) for y in range(5)), text


NUMBERS = [
    (0.0, "float32", "0.0"),
    (-0.0, "float32", "-0.0"),
    (1e-5, "float32", "1e-05"),
    (float(np.float32(0.1)), "float32", "0.1"),
    (float(np.float32(0.1)), "float64", "0.10000000149011612"),
    (1 / 3, "float32", "0.33333334"),
    (1 / 3, "float64", "0.3333333333333333"),
    (1234.0, "float32", "1234.0"),
    (float("-inf"), "float32", "-inf"),
    (float("nan"), "float32", "nan"),
    (1e300, "float32", "inf"),
    (-7, "int8", "-7"),
    (True, "bool", "True"),
]


@pytest.mark.parametrize(("value", "dtype", "text"), NUMBERS)
def test_numbers_print_in_the_shortest_form_that_reads_back(value: float, dtype: str, text: str) -> None:
    assert format_number(value, dtype) == text


def test_tensors_print_as_declarations_and_definitions() -> None:
    C = te.compute((4, 4), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="C")
    assert str(A) == "A: float32[4, 8]"
    assert str(B) == "B: float32[8, 4] constant"
    assert te.format_tensor(C) == "C[y, x] = sum(A[y, k] * B[k, x], axis=[k])"
    assert str(te.compute((), lambda: te.max(a, axis=[i, j]), name="S")) == "S[()] = max(A[i, j], axis=[i, j])"


def test_a_deep_expression_is_printed_without_recursion() -> None:
    deep: te.Expr = i
    for _ in range(6000):
        deep = deep + 1
    assert str(deep).startswith("... + 1")
