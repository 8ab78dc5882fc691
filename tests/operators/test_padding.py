"""Pad in all modes, and its negative paddings."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.operators import NotCompilableError
from tilewright.testing.operators import run_operator

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[0, 1, 2, 1, 0, 1], [0, 0, 3, 0, 0, 3], [1, 2, 0, 0, 5, 9]])
def test_pad_as_numpy_does(mode: str, pads: list[int]) -> None:
    width = list(zip(pads[:3], pads[3:], strict=True))
    (found,) = run_operator("Pad", X, np.array(pads), mode=mode)
    np.testing.assert_array_equal(found, np.pad(X, width, mode=mode))  # type: ignore[call-overload]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_a_negative_padding_takes_elements_off(mode: str) -> None:
    (found,) = run_operator("Pad", X, np.array([0, -1, 1, 0, 0, -2]), mode=mode)
    expected = np.pad(X[:, 1:, :-2], [(0, 0), (0, 0), (1, 0)], mode=mode)  # type: ignore[call-overload]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("pads", [[-1, 2], [1, -1], [-2, 5], [3, -2]])
def test_what_is_taken_off_one_end_does_not_come_back_at_the_other(pads: list[int]) -> None:
    (found,) = run_operator("Pad", X, np.array(pads), np.array(0, np.float32), np.array([-1]), mode="wrap")
    kept = X[..., max(0, -pads[0]) : 4 + min(0, pads[1])]
    expected = np.pad(kept, [(0, 0), (0, 0), (max(0, pads[0]), max(0, pads[1]))], mode="wrap")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("known", [(), (2,)])
def test_the_filling_may_be_known_or_not(known: tuple[int, ...]) -> None:
    operands = np.array([1, 1]), np.array(7.5, np.float32), np.array([-1])
    (found,) = run_operator("Pad", X, *operands, known=known)
    np.testing.assert_array_equal(found, np.pad(X, [(0, 0), (0, 0), (1, 1)], constant_values=7.5))


def test_bools_are_padded_with_false() -> None:
    (found,) = run_operator("Pad", np.array([True, True]), np.array([1, 2]))
    assert found.tolist() == [False, True, True, False, False]


def test_an_unknown_mode_is_not_compiled() -> None:
    with pytest.raises(NotCompilableError, match="mode mirror"):
        run_operator("Pad", X, np.array([1] * 6), mode="mirror")


@pytest.mark.parametrize(("size", "expected"), [(5, [0, 1, 2, 3, 0]), (2, [2, 3]), (1, [2])])
def test_more_of_an_odd_rest_is_at_the_end(size: int, expected: list[int]) -> None:
    x = np.array([1, 2, 3], np.float32) if size != 2 else np.array([1, 2, 3, 4], np.float32)
    assert run_operator("CenterCropPad", x, np.array([size]))[0].tolist() == expected
