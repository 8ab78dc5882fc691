"""GridSample at random coordinates, inside and outside of the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.operators.nodes import reference
from tilewright.testing.operators import run_operator

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("size", [(4, 5), (2, 3, 4)])
def test_coordinates_anywhere(size: tuple[int, ...], mode: str, padding: str, align_corners: int) -> None:
    x = RNG.normal(size=(2, 1, *size)).astype(np.float32)
    grid = RNG.uniform(-2.5, 2.5, (2, *(3,) * len(size), len(size))).astype(np.float32)
    attributes: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": align_corners}
    (expected,) = reference("GridSample", [x, grid], opset=22, **attributes)
    (found,) = run_operator("GridSample", x, grid, **attributes)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
