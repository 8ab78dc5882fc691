"""The matrices of short convolutions are exact."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tilewright.te.algorithms.toom_cook import Row, matrices


def times(rows: tuple[Row, ...], vector: list[Fraction]) -> list[Fraction]:
    return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in rows]


@pytest.mark.parametrize("num_taps", [2, 3, 4])
@pytest.mark.parametrize("num_outputs", [1, 2, 3, 4])
def test_the_products_of_transformed_data_and_taps_are_the_convolution(num_outputs: int, num_taps: int) -> None:
    found = matrices(num_outputs, num_taps)
    data = [Fraction(n * n - 5, 3) for n in range(num_outputs + num_taps - 1)]
    taps = [Fraction(7 - 3 * n, 2) for n in range(num_taps)]
    products = [a * b for a, b in zip(times(found.inputs, data), times(found.taps, taps), strict=True)]
    assert len(products) == num_outputs + num_taps - 1
    direct = [sum(data[n + r] * taps[r] for r in range(num_taps)) for n in range(num_outputs)]
    assert times(found.outputs, products) == direct
