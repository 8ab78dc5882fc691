"""Division, remainders, powers and bits, of integers of both signs and of floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.testing.operators import run_operator

RNG = np.random.default_rng(0)


def integers(dtype: str, size: int = 64) -> NDArray[Any]:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, size, dtype=dtype, endpoint=True)


def non_zero(dtype: str) -> NDArray[Any]:
    low = 1 if dtype == "uint8" else -7
    found = RNG.integers(low, 8, 64).astype(dtype)
    return np.where(found == 0, 1, found).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_divide_towards_zero(dtype: str) -> None:
    a, b = integers(dtype) // np.array(2, dtype), non_zero(dtype)
    expected = [abs(int(x)) // abs(int(y)) * (-1 if (x < 0) != (y < 0) else 1) for x, y in zip(a, b, strict=True)]
    assert run_operator("Div", a, b)[0].tolist() == expected


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_remainders_of_integers_have_the_sign_that_is_asked_for(dtype: str) -> None:
    a, b = integers(dtype), non_zero(dtype)
    np.testing.assert_array_equal(run_operator("Mod", a, b)[0], np.mod(a, b))
    np.testing.assert_array_equal(run_operator("Mod", a, b, fmod=1)[0], np.fmod(a, b))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_floats_are_exact(dtype: str) -> None:
    a = np.array([5.3, -5.3, 5.3, -5.3, 1e9, 7, 1e-3, 3, -0.3, 1e7], dtype)
    b = np.array([2.1, 2.1, -2.1, -2.1, 0.7, 7, 3, np.inf, np.inf, 0.1], dtype)
    np.testing.assert_array_equal(run_operator("Mod", a, b, fmod=1)[0], np.fmod(a, b))
    np.testing.assert_allclose(run_operator("Mod", a[:8], b[:8])[0], np.mod(a[:8], b[:8]), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_integer_powers_multiply(dtype: str) -> None:
    bases = [0, 1, 2, 3, 5] if dtype == "uint8" else [0, 1, -1, 2, -2, 3, -3, 10]
    x = np.array(bases, dtype)[:, None]
    y = np.array([0, 1, 2, 3, 5], "int32")
    np.testing.assert_array_equal(run_operator("Pow", x, y)[0], np.power(x, y.astype(dtype)))


def test_large_exponents_of_one_keep_the_sign() -> None:
    x, y = np.array([-1, -1, 1, 0], np.int64), np.array([1001, 1000, 1001, 1000], np.int64)
    assert run_operator("Pow", x, y)[0].tolist() == [-1, 1, 1, 0]


def test_an_integer_to_a_float_power_is_whole_where_it_should_be() -> None:
    x = np.arange(1, 60, dtype=np.int32)
    (found,) = run_operator("Pow", x, np.array(3.0, np.float32))
    np.testing.assert_array_equal(found, x**3)
    assert run_operator("Pow", np.array([2, 4], np.int32), np.array([0.5, 0.5], np.float32))[0].tolist() == [1, 2]


@pytest.mark.parametrize("known", [(), (1,)])
@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, -1.0, 0.5, 1.7])
def test_powers_of_floats_agree_with_numpy(exponent: float, known: tuple[int, ...]) -> None:
    x = np.array([[0.3, 1, 2.5], [100, np.inf, -2]], np.float32)
    with np.errstate(invalid="ignore"):
        expected = np.power(x, np.float32(exponent))
    (found,) = run_operator("Pow", x, np.array([[exponent]], np.float32), known=known)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_power_may_have_more_dimensions_than_its_base() -> None:
    x = np.array([2, 3], np.float32)
    (found,) = run_operator("Pow", x, np.full((1, 1, 1), 2, np.float32), known=[1])
    assert found.tolist() == [[[4, 9]]]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_shifts_by_any_amount(dtype: str) -> None:
    bits = np.iinfo(dtype).bits
    x = np.concatenate([integers(dtype, 8), np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 1], dtype)])[:, None]
    amounts = np.array([0, 1, bits // 2, bits - 2, bits - 1, bits, bits + 3]).astype(dtype)
    wrapped = [[_wrapped(int(v) << int(n) if n < bits else 0, dtype) for n in amounts] for v in x[:, 0]]
    assert run_operator("BitShift", x, amounts, direction="LEFT")[0].tolist() == wrapped
    right = [[int(v) >> int(n) for n in amounts] for v in x[:, 0]]
    assert run_operator("BitShift", x, amounts, direction="RIGHT")[0].tolist() == right


def _wrapped(value: int, dtype: str) -> int:
    bits = np.iinfo(dtype).bits
    rest = value % (1 << bits)
    return rest - (1 << bits) if dtype != "uint8" and rest >> (bits - 1) else rest


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_bit_operations_on_all_bits(dtype: str) -> None:
    limits = np.iinfo(dtype)
    extremes = np.array([limits.min, limits.max, 0, 1], dtype)
    a, b = np.concatenate([integers(dtype, 8), extremes])[:, None], np.concatenate([integers(dtype, 8), extremes])
    np.testing.assert_array_equal(run_operator("BitwiseAnd", a, b)[0], a & b)
    np.testing.assert_array_equal(run_operator("BitwiseOr", a, b)[0], a | b)
    np.testing.assert_array_equal(run_operator("BitwiseXor", a, b)[0], a ^ b)
    np.testing.assert_array_equal(run_operator("BitwiseNot", a)[0], ~a)


def test_division_by_zero_of_floats_is_infinite() -> None:
    (found,) = run_operator("Div", np.array([1, -1, 0], np.float32), np.zeros(3, np.float32))
    assert found[:2].tolist() == [math.inf, -math.inf]
    assert math.isnan(found[2])
