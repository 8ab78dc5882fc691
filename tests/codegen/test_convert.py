"""float16 and bfloat16 to float32 and back, for all their values: by instructions, and by integer operations.

The integer operations are those of a target without an instruction for it, such as x86-64.
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.codegen.elementwise_programs import around_halves
from tests.codegen.program import Array
from tilewright import te
from tilewright.runtime.build import build
from tilewright.schedule import Schedule
from tilewright.target import Target, runs_here
from tilewright.te import Task, numpy_dtype

HALF_TYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
LARGEST = {"float16": 0x7BFF, "bfloat16": 0x7F7F}
SIGN = 0x8000


@pytest.fixture(params=["native", "x86-64", "x86-64-v2", "sandybridge"])
def cast(request: pytest.FixtureRequest) -> Callable[[Array, str, str], Array]:
    """Casts an array from one type to another by a vectorized kernel for the target; bfloat16 is held in uint16."""
    target = Target.parse(request.param)
    if not runs_here(target):
        pytest.skip(f"this machine does not run code for {target}")

    def run(values: Array, source: str, wanted: str) -> Array:
        X = te.placeholder(values.shape, source, "X")
        Y = te.compute(values.shape, lambda i: te.cast(X[i], wanted), name="Y")
        s = Schedule(Task([X], [Y], "cast"))
        _, lane = s["Y"].split("i", 32)
        s["Y"].vectorize(lane)
        result: Array = build(s, target, threads=1)(values)
        return result

    return run


def all_halves(dtype: str) -> Array:
    return np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(dtype))


def is_nan(bits: Array, dtype: str) -> Array:
    return (bits & np.uint16(SIGN - 1)) > (0x7C00 if dtype == "float16" else 0x7F80)


@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_every_half_widens_to_its_value(dtype: str, cast: Callable[[Array, str, str], Array]) -> None:
    halves = all_halves(dtype)
    actual = cast(halves, dtype, "float32")
    expected = halves.view(HALF_TYPES[dtype]).astype(np.float32)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual), halves.view(np.uint16) >= SIGN)


@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_every_half_survives_the_way_through_float32(dtype: str, cast: Callable[[Array, str, str], Array]) -> None:
    halves = all_halves(dtype)
    back = cast(cast(halves, dtype, "float32"), "float32", dtype).view(np.uint16)
    is_number = ~is_nan(halves.view(np.uint16), dtype)
    np.testing.assert_array_equal(back[is_number], halves.view(np.uint16)[is_number])


@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_float32_narrows_to_the_nearest_half_and_ties_to_even(
    dtype: str, cast: Callable[[Array, str, str], Array]
) -> None:
    singles = around_halves(dtype)
    actual = cast(singles, "float32", dtype).view(np.uint16)
    with np.errstate(all="ignore"):
        expected = singles.astype(HALF_TYPES[dtype]).view(np.uint16)
    is_number = ~np.isnan(singles)
    np.testing.assert_array_equal(actual[is_number], expected[is_number])


def test_float64_narrows_to_float16_with_one_rounding(cast: Callable[[Array, str, str], Array]) -> None:
    with np.errstate(all="ignore"):
        ties = around_halves("float16").astype(np.float64)
        values = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, np.inf), [1e300, -1e300, 1e-300]])
        expected = values.astype(np.float16)
    np.testing.assert_array_equal(cast(values, "float64", "float16"), expected)


@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_nan_narrows_to_a_quiet_nan_of_the_same_sign(dtype: str, cast: Callable[[Array, str, str], Array]) -> None:
    # The payload of the second is lost in 16 bits; without care it would become an infinity.
    bits = np.array([0x7FC00000, 0x7F800001, 0x7FFFFFFF, 0x7FA00000], np.uint32)
    bits = np.concatenate([bits, bits | np.uint32(1 << 31)])
    actual = cast(bits.view(np.float32), "float32", dtype).view(np.uint16)
    quiet = 0x7E00 if dtype == "float16" else 0x7FC0
    np.testing.assert_array_equal(actual & quiet, quiet)
    np.testing.assert_array_equal(actual >= SIGN, bits >> 31 == 1)


@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_overflow_begins_halfway_beyond_the_largest(dtype: str, cast: Callable[[Array, str, str], Array]) -> None:
    largest, before = (np.array(LARGEST[dtype] - n, np.uint16).view(HALF_TYPES[dtype]) for n in (0, 1))
    tie = np.float32(largest) + (np.float32(largest) - np.float32(before)) / np.float32(2)
    singles = np.array([np.nextafter(tie, np.float32(0)), tie], np.float32)
    actual = cast(np.concatenate([singles, -singles]), "float32", dtype).view(np.uint16)
    finite, infinite = LARGEST[dtype], LARGEST[dtype] + 1
    np.testing.assert_array_equal(actual, [finite, infinite, finite | SIGN, infinite | SIGN])
