"""Element types: promotion, storage, and the conversion of bfloat16."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import ExpressionError, te

PROMOTIONS = [
    ("float32", "float32", "float32"),
    ("float32", "float64", "float64"),
    ("float16", "float32", "float32"),
    ("bfloat16", "float32", "float32"),
    ("float16", "bfloat16", "float32"),
    ("int8", "uint8", "int32"),
    ("int8", "int32", "int32"),
    ("uint8", "int64", "int64"),
    ("int64", "float16", "float16"),
    ("int32", "bfloat16", "bfloat16"),
    ("bool", "uint8", "uint8"),
    ("bool", "float32", "float32"),
]


@pytest.mark.parametrize(("a", "b", "expected"), PROMOTIONS)
def test_promotion_is_symmetric(a: str, b: str, expected: str) -> None:
    assert te.promote(a, b) == te.promote(b, a) == expected


def test_every_type_promotes_to_itself() -> None:
    assert all(te.promote(name, name) == name for name in te.DTYPES)


def test_unknown_dtype_names_the_known_ones() -> None:
    with pytest.raises(ExpressionError, match=r"unknown dtype 'float31'; use one of: bool, uint8"):
        te.check_dtype("float31")


def test_storage_has_the_size_of_the_type() -> None:
    for name, dtype in te.DTYPES.items():
        assert te.numpy_dtype(name).itemsize == dtype.bytes


def test_bfloat16_survives_the_way_through_float32() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = te.bfloat16_to_float32(bits)
    back = te.float32_to_bfloat16(values)
    is_nan = np.isnan(values)
    np.testing.assert_array_equal(back[~is_nan], bits[~is_nan])
    assert np.isnan(te.bfloat16_to_float32(back[is_nan])).all()


BFLOAT16_ROUNDING = [
    (1.0, 0x3F80),
    (1.0 + 2.0**-8, 0x3F80),  # a tie, to even
    (1.0 + 3 * 2.0**-8, 0x3F82),  # a tie, to even
    (1.0 + 2.0**-8 + 2.0**-20, 0x3F81),
    (-1.0 - 2.0**-7, 0xBF81),
    (3.4e38, 0x7F80),
    (float("inf"), 0x7F80),
    (float("-inf"), 0xFF80),
    (-0.0, 0x8000),
]


@pytest.mark.parametrize(("value", "bits"), BFLOAT16_ROUNDING)
def test_bfloat16_rounds_to_nearest_even(value: float, bits: int) -> None:
    assert int(te.float32_to_bfloat16([value])[0]) == bits


def test_bfloat16_conversion_keeps_the_shape() -> None:
    assert te.float32_to_bfloat16(np.zeros((2, 0, 3), np.float32)).shape == (2, 0, 3)
    assert te.float32_to_bfloat16(np.float32(1)).shape == ()
    assert te.bfloat16_to_float32(np.zeros((), np.uint16)).shape == ()
