"""Linear forms: one canonical shape, exact bounds, and operations that ranges remove."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.ir import Linear, bounds, floordiv, minimum, modulo, variables
from tilewright.ir.linear import Operation, const, linearize, maximum, of_var, substitute_linear
from tilewright.te import Const, Expr, Var, binary, cast, placeholder, select

x, y = Var("int64", "x"), Var("int64", "y")
X, Y = of_var(x), of_var(y)
RANGES = {x: (0, 5), y: (0, 3)}

FORMS: list[tuple[Linear, str, tuple[int, int]]] = [
    (const(3), "3", (3, 3)),
    (X * 2 + Y + 1, "x*2 + y + 1", (1, 14)),
    (X - Y, "x - y", (-3, 5)),
    (X * -3 + 4, "-x*3 + 4", (-11, 4)),
    (X + Y - X, "y", (0, 3)),
    (X - X, "0", (0, 0)),
    (X * 0 + 7, "7", (7, 7)),
    (minimum(X * 2, const(7), RANGES), "min(x*2, 7)", (0, 7)),
    (minimum(X, const(9), RANGES), "x", (0, 5)),
    (minimum(X + 4, X, RANGES), "x", (0, 5)),
    (maximum(X, const(0), RANGES), "x", (0, 5)),
    (maximum(X + -2, const(0), RANGES), "max(x - 2, 0)", (0, 3)),
    (floordiv(X * 4 + Y, 4, RANGES), "x", (0, 5)),
    (floordiv(X * 4 + Y + 4, 4, RANGES), "x + 1", (1, 6)),
    (floordiv(X, 4, RANGES), "((x) // 4)", (0, 1)),
    (floordiv(X + -4, 4, RANGES), "((x) // 4) - 1", (-1, 0)),
    (modulo(X * 4 + Y, 4, RANGES), "y", (0, 3)),
    (modulo(X * 4 + Y + -8, 4, RANGES), "y", (0, 3)),
    (modulo(X, 4, RANGES), "((x) % 4)", (0, 3)),
    (modulo(X + Y * 8, 8, RANGES), "x", (0, 5)),
]


@pytest.mark.parametrize(("form", "text", "interval"), FORMS)
def test_form_is_simplified_and_bounded(form: Linear, text: str, interval: tuple[int, int]) -> None:
    assert str(form) == text
    assert bounds(form, RANGES) == interval


def test_equal_forms_are_equal_and_hash_alike() -> None:
    a, b = X * 2 + Y + 1, Y + 1 + X + X
    assert a == b
    assert hash(a) == hash(b)
    assert a != b + 1
    assert minimum(X * 2, const(7), RANGES) == minimum(X + X, const(7), RANGES)


def test_differences_of_operations_cancel() -> None:
    shifted = minimum(X * 4, const(13), RANGES)
    assert str(shifted + Y - shifted) == "y"


def test_variables_are_found_inside_operations() -> None:
    assert variables(minimum(X * 2, Y + 3, RANGES)) == {x, y}
    assert variables(const(1)) == set()


def test_substitution_simplifies_again() -> None:
    form = minimum(X * 4, const(13), RANGES) + Y
    assert str(substitute_linear(form, {x: const(1)}, RANGES)) == "y + 4"
    assert str(substitute_linear(form, {x: const(5), y: X}, RANGES)) == "x + 13"


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "min": min,
    "max": max,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
}


def _value(form: Linear, values: dict[Var, int]) -> int:
    total = form.const
    for atom, coefficient in form.terms.items():
        if isinstance(atom, Var):
            total += values[atom] * coefficient
            continue
        assert isinstance(atom, Operation)
        a, b = _value(atom.a, values), _value(atom.b, values)
        total += coefficient * _OPERATIONS[atom.op](a, b)
    return total


def _random_expr(rng: np.random.Generator, depth: int) -> tuple[Expr, Callable[[int, int], int]]:
    kind = int(rng.integers(8 if depth else 2))
    number = int(rng.integers(1, 9))
    if kind == 0:
        return x, lambda u, v: u
    if kind == 1:
        return y, lambda u, v: v
    a, f = _random_expr(rng, depth - 1)
    b, g = _random_expr(rng, depth - 1)
    if kind == 2:
        return a + b, lambda u, v: f(u, v) + g(u, v)
    if kind == 3:
        return a - b * number, lambda u, v: f(u, v) - g(u, v) * number
    if kind == 4:
        return a // number, lambda u, v: f(u, v) // number
    if kind == 5:
        return a % number, lambda u, v: f(u, v) % number
    if kind == 6:
        return binary("min", a, b + number), lambda u, v: min(f(u, v), g(u, v) + number)
    return binary("max", a, b - number), lambda u, v: max(f(u, v), g(u, v) - number)


@pytest.mark.parametrize("seed", range(200))
def test_linear_form_of_random_index_arithmetic_is_exact(seed: int) -> None:
    expr, function = _random_expr(np.random.default_rng(seed), 3)
    form = linearize(expr, of_var, RANGES)
    assert form is not None
    low, high = bounds(form, RANGES)
    for u, v in itertools.product(range(6), range(4)):
        value = _value(form, {x: u, y: v})
        assert value == function(u, v), f"{expr} as {form} at x={u}, y={v}"
        assert low <= value <= high


NOT_LINEAR: list[Expr] = [
    x * y,
    x // y,
    x % Const("int64", -3),
    x // Const("int64", 0),
    select(x < 3, x, y),
    cast(placeholder((4,), "float32", "F")[0], "int64"),
    placeholder((9,), "int64", "N")[x],
]


@pytest.mark.parametrize("expr", NOT_LINEAR)
def test_what_is_not_index_arithmetic_has_no_form(expr: Expr) -> None:
    assert linearize(expr, of_var, RANGES) is None
