"""Linear forms: one canonical shape, exact bounds, and operations that ranges remove."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.te import Binary, Const, Expr, Var, binary, cast, placeholder, select
from tilewright.te.index import (
    Interval,
    Linear,
    LinearForms,
    Operation,
    bounds,
    clamped,
    combine,
    const,
    of_atom,
    substitute,
    variables,
)

x, y = Var("int64", "x"), Var("int64", "y")
X, Y = of_atom(x), of_atom(y)
RANGES = {x: Interval(0, 5), y: Interval(0, 3)}


def made(op: str, a: Linear, b: Linear | int) -> Linear:
    form = combine(op, a, b if isinstance(b, Linear) else const(b), RANGES)
    assert form is not None
    return form


FORMS: list[tuple[Linear, str, tuple[int, int]]] = [
    (const(3), "3", (3, 3)),
    (X * 2 + Y + 1, "x*2 + y + 1", (1, 14)),
    (X - Y, "x - y", (-3, 5)),
    (X * -3 + 4, "-x*3 + 4", (-11, 4)),
    (X + Y - X, "y", (0, 3)),
    (X - X, "0", (0, 0)),
    (X * 0 + 7, "7", (7, 7)),
    (made("min", X * 2, 7), "min(x*2, 7)", (0, 7)),
    (made("min", X, 9), "x", (0, 5)),
    (made("min", X + 4, X), "x", (0, 5)),
    (made("max", X, 0), "x", (0, 5)),
    (made("max", X + -2, 0), "max(x - 2, 0)", (0, 3)),
    (clamped(X * 2, Interval(0, 7), RANGES), "min(x*2, 7)", (0, 7)),
    (clamped(X + -2, Interval(0, 2), RANGES), "max(min(x - 2, 2), 0)", (0, 2)),
    (made("floordiv", X * 4 + Y, 4), "x", (0, 5)),
    (made("floordiv", X * 4 + Y + 4, 4), "x + 1", (1, 6)),
    (made("floordiv", X, 4), "((x) // 4)", (0, 1)),
    (made("floordiv", X + -4, 4), "((x) // 4) - 1", (-1, 0)),
    (made("mod", X * 4 + Y, 4), "y", (0, 3)),
    (made("mod", X * 4 + Y + -8, 4), "y", (0, 3)),
    (made("mod", X, 4), "((x) % 4)", (0, 3)),
    (made("mod", X + Y * 8, 8), "x", (0, 5)),
]


@pytest.mark.parametrize(("form", "text", "interval"), FORMS)
def test_form_is_simplified_and_bounded(form: Linear, text: str, interval: tuple[int, int]) -> None:
    assert str(form) == text
    assert bounds(form, RANGES) == interval


def test_without_ranges_nothing_is_simplified_but_numbers() -> None:
    form = combine("floordiv", X * 4 + Y, const(4), None)
    assert str(form) == "((x*4 + y) // 4)"
    assert str(combine("mod", const(-7), const(4), None)) == "1"
    assert str(combine("min", const(3), const(2), None)) == "2"


def test_equal_forms_are_equal_and_hash_alike() -> None:
    a, b = X * 2 + Y + 1, Y + 1 + X + X
    assert a == b
    assert hash(a) == hash(b)
    assert a != b + 1
    assert made("min", X * 2, 7) == made("min", X + X, 7)


def test_differences_of_operations_cancel() -> None:
    shifted = made("min", X * 4, 13)
    assert str(shifted + Y - shifted) == "y"


def test_variables_are_found_inside_operations() -> None:
    assert variables(made("min", X * 2, Y + 3)) == {x, y}
    assert variables(const(1)) == set()


def test_substitution_simplifies_again() -> None:
    form = made("min", X * 4, 13) + Y
    assert str(substitute(form, {x: const(1)}, RANGES)) == "y + 4"
    assert str(substitute(form, {x: const(5), y: X}, RANGES)) == "x + 13"


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "min": min,
    "max": max,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
}


def _value(form: Linear, values: dict[Var, int], candidate: int = 0) -> int:
    """The form where its variables have these values; of a population's form, that of one candidate."""
    total = _number(form.const, candidate)
    for atom, coefficient in form.terms.items():
        if isinstance(atom, Var):
            value = values[atom]
        else:
            assert isinstance(atom, Operation)
            value = _OPERATIONS[atom.op](_value(atom.a, values, candidate), _value(atom.b, values, candidate))
        total += _number(coefficient, candidate) * value
    return total


def _number(number: object, candidate: int) -> int:
    array = np.asarray(number)
    return int(array[candidate] if array.ndim else array)


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
    form = LinearForms(ranges=RANGES).of(expr)
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
    assert LinearForms(ranges=RANGES).of(expr) is None


# --- forms of a population --------------------------------------------------------------------------------------------

TILES = np.array([1, 2, 3, 4])


def test_forms_with_equal_arrays_are_equal_and_hash_alike() -> None:
    a, b = X * TILES + Y, Y + X * TILES.copy()
    assert a == b
    assert hash(a) == hash(b)
    assert a != X * (TILES + 1) + Y
    assert a != X * 2 + Y
    assert (a - b).is_const
    atoms = {Operation("min", a, const(TILES)): "found"}
    assert atoms[Operation("min", b, const(TILES.copy()))] == "found"


def test_what_cancels_for_all_candidates_is_gone_and_what_cancels_for_some_stays() -> None:
    assert (X * TILES - X * TILES).is_const
    assert variables(X * TILES - X * 2) == {x}


@pytest.mark.parametrize("ranges", [RANGES, None])
@pytest.mark.parametrize("seed", range(100))
def test_the_form_of_a_population_is_that_of_each_candidate(seed: int, ranges: dict[Var, Interval] | None) -> None:
    """Constants that are arrays: the values, and bounds that hold, for every candidate."""
    rng = np.random.default_rng(seed)
    expr = _random_population_expr(rng, 3)
    form = LinearForms(ranges=ranges).of(expr)
    assert form is not None
    low, high = bounds(form, RANGES)
    for candidate, (u, v) in itertools.product(range(len(TILES)), itertools.product(range(6), range(4))):
        value = _value(form, {x: u, y: v}, candidate)
        assert value == _evaluated(expr, {x: u, y: v}, candidate)
        assert _number(low, candidate) <= value <= _number(high, candidate)


def _random_population_expr(rng: np.random.Generator, depth: int) -> Expr:
    kind = int(rng.integers(7 if depth else 2))
    if kind < 2:
        return (x, y)[kind]
    a = _random_population_expr(rng, depth - 1)
    array = Const("int64", rng.integers(1, 9, len(TILES)))  # type: ignore[arg-type]
    if kind < 5:
        return binary(("mul", "floordiv", "mod")[kind - 2], a, array)
    b = binary("sub", _random_population_expr(rng, depth - 1), array)
    return binary(("add", "sub", "min", "max")[int(rng.integers(4))], a, b)


def _evaluated(e: Expr, values: dict[Var, int], candidate: int) -> int:
    if isinstance(e, Var):
        return values[e]
    if isinstance(e, Const):
        return _number(e.value, candidate)
    assert isinstance(e, Binary)
    return _OPERATIONS[e.op](_evaluated(e.a, values, candidate), _evaluated(e.b, values, candidate))
