"""Products with small matrices as formulas."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tilewright import te
from tilewright.te import Axis, Const, Expr, Tensor, format_expr
from tilewright.te.algorithms import choices
from tilewright.te.algorithms.formulas import by_pairs, by_parity, choose
from tilewright.te.algorithms.toom_cook import Row, matrices

X = te.placeholder((8,), name="x")


def element(n: int) -> Expr:
    return X[n]


def row(*numbers: float) -> Row:
    return tuple(map(Fraction, numbers))


@pytest.mark.parametrize(
    ("numbers", "formula"),
    [
        (row(4, 0, -5, 0, 1, 0), "x[4] - x[2] * 5.0 + x[0] * 4.0"),
        (row(0, -4, -4, 1, 1, 0), "x[4] - x[2] * 4.0 + (x[3] - x[1] * 4.0)"),
        (row(0, 4, -4, -1, 1, 0), "x[4] - x[2] * 4.0 - (x[3] - x[1] * 4.0)"),
        (row(0, -2, -1, 2, 1, 0), "(x[3] - x[1]) * 2.0 + (x[4] - x[2])"),
        (row(0, 2, -1, -2, 1, 0), "x[4] - x[2] - (x[3] - x[1]) * 2.0"),
        (row(0, 0, -1), "x[2] * -1.0"),
    ],
)
def test_rows_of_opposite_points_share_their_even_and_odd_parts(numbers: Row, formula: str) -> None:
    assert format_expr(by_parity(numbers, element)) == formula


def test_with_a_stride_every_other_place_is_even() -> None:
    """Of the places that a row has, 0, 2, 4 and 6, those are 0 and 4."""
    assert format_expr(by_parity(row(0, 0, -2, 0, -1, 0, 1), element, stride=2)) == "x[6] - x[2] * 2.0 - x[4]"


def test_results_share_the_sums_and_differences_of_pairs() -> None:
    found = matrices(4, 3)
    assert [format_expr(by_pairs(r, element, found.alike)) for r in found.outputs] == [
        "x[0] + (x[1] + x[2]) + (x[3] + x[4])",
        "(x[3] - x[4]) * 2.0 + (x[1] - x[2])",
        "(x[3] + x[4]) * 4.0 + (x[1] + x[2])",
        "(x[3] - x[4]) * 8.0 + (x[1] - x[2]) + x[5]",
    ]


def chosen(values: list[Expr]) -> Tensor:
    return te.compute((len(values), 2), lambda i, j: choose(_axis(i), values), "chosen")


def _axis(e: Expr) -> Axis:
    assert isinstance(e, Axis)
    return e


def test_what_was_chosen_from_is_found_again() -> None:
    values = [X[3], X[1] * 2.0, X[0]]
    tensor = chosen(values)
    assert tensor.body is not None
    assert choices(tensor.body, tensor.axes) == (tensor.axes[0], values)


@pytest.mark.parametrize(
    "function",
    [
        lambda i, j: X[i],
        lambda i, j: te.select(i < 1, X[1], X[2]),
        lambda i, j: te.select(te.equal(i, 0), X[1], X[2]),  # of three values two have one formula
        lambda i, j: te.select(te.equal(i, 1), X[1], te.select(te.equal(i, 0), X[2], X[3])),
        lambda i, j: te.select(te.equal(i, 0), X[1], te.select(te.equal(j, 1), X[2], X[3])),
        lambda i, j: te.select(te.equal(i, j), X[1], X[2]),
    ],
)
def test_other_conditions_are_no_choice(function: object) -> None:
    tensor = te.compute((3, 3), function, "other")  # type: ignore[arg-type]
    assert tensor.body is not None
    assert choices(tensor.body, tensor.axes) is None


def test_one_value_is_chosen_without_a_condition() -> None:
    value = Const("float32", 1.0)
    assert choose(Axis("int64", "i", 1, False), [value]) is value
