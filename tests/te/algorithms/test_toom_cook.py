"""The matrices of short convolutions are exact."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tilewright.te.algorithms.toom_cook import Row, matrices


def times(rows: tuple[Row, ...], vector: list[Fraction]) -> list[Fraction]:
    return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in rows]


@pytest.mark.parametrize("num_taps", [2, 3, 4, 5])
@pytest.mark.parametrize("num_outputs", [1, 2, 3, 4])
@pytest.mark.parametrize("stride", [1, 2])
def test_the_products_of_transformed_data_and_taps_are_the_convolution(
    num_outputs: int, num_taps: int, stride: int
) -> None:
    found = matrices(num_outputs, num_taps, stride)
    num_places = (num_outputs - 1) * stride + num_taps
    data = [Fraction(n * n - 5, 3) for n in range(num_places)]
    taps = [Fraction(7 - 3 * n, 2) for n in range(num_taps)]
    transformed = times(found.taps, taps)
    factors = [transformed[min(n, len(transformed) - 1)] for n in range(len(found.inputs))]
    products = [a * b for a, b in zip(times(found.inputs, data), factors, strict=True)]
    assert len(products) == num_places
    direct = [sum(data[n * stride + r] * taps[r] for r in range(num_taps)) for n in range(num_outputs)]
    assert times(found.outputs, products) == direct


def test_products_of_the_same_taps_have_one_row_for_them() -> None:
    found = matrices(4, 3, 2)
    assert len(found.inputs) == 9
    assert list(map(int, found.taps[-1])) == [0, 1, 0]
    assert len(found.taps) == 6


@pytest.mark.parametrize(
    ("arguments", "alike"),
    [
        ((4, 3), ((0,), (1, 2), (3, 4), (5,))),
        ((2, 3), ((0,), (1, 2), (3,))),
        ((2, 3, 2), ((0,), (1,), (2,), (3,), (4,))),
        ((4, 3, 2), ((0,), (1, 2), (3,), (4,), (5,), (6,), (7,), (8,))),
    ],
)
def test_products_of_opposite_points_are_alike(arguments: tuple[int, ...], alike: tuple[tuple[int, ...], ...]) -> None:
    assert matrices(*arguments).alike == alike
