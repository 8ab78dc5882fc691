"""GridSample: elements of an image at coordinates that are data, interpolated between the places around them.

For each dimension two stages hold, for each output place, the places of the image that it reads and their weights; the
output is the weighted sum over the places of all dimensions.
"""

from __future__ import annotations

import functools
import operator as python_operator
from collections.abc import Callable, Sequence

from tilewright import te
from tilewright.operators.elementwise import round_half_even
from tilewright.operators.registry import Call, NotCompilableError, operator
from tilewright.operators.resize import cubic_weight, linear_weight
from tilewright.te import Expr, Tensor

# What ONNX called the modes before opset 20 and since; each with the number of places along a dimension.
_TAPS = {"nearest": 1, "bilinear": 2, "linear": 2, "bicubic": 4, "cubic": 4}
_CUBIC_COEFFICIENT = -0.75


@operator("GridSample")
def grid_sample(call: Call) -> Tensor:
    """X[n, c, *places] at the coordinates grid[n, *outputs, :], which count from -1 to 1, the last dimension first."""
    X, grid = call.tensor(0), call.tensor(1)
    mode = call.attribute("mode", "linear" if call.node.opset >= 20 else "bilinear")
    sizes, outputs = X.shape[2:], grid.shape[1:-1]
    if mode not in _TAPS or grid.shape[-1] != len(sizes) or len(outputs) != len(sizes):
        raise NotCompilableError(f"GridSample has the mode {mode} and a grid of shape {grid.shape} for {X.shape}")
    taps = _TAPS[mode]
    samplers = [_Sampler(call, grid, d, size, taps) for d, size in enumerate(sizes)]
    places = [sampler.places() for sampler in samplers]
    weights = [sampler.weights() for sampler in samplers]
    axes = [te.reduce_axis(taps, f"k{d}") for d in range(len(sizes))]

    def weighted(i: Sequence[Expr], chosen: Sequence[te.ExprLike]) -> Expr:
        n, c, *place = i
        found = X[(n, c, *(P[(n, *place, k)] for P, k in zip(places, chosen, strict=True)))]
        factors = [W[(n, *place, k)] for W, k in zip(weights, chosen, strict=True)]
        return found * te.cast(functools.reduce(python_operator.mul, factors), X.dtype)

    shape = (*X.shape[:2], *outputs)
    if taps == 1:
        return te.compute(shape, lambda *i: weighted(i, [0] * len(sizes)), call.name())
    return te.compute(shape, lambda *i: te.sum(weighted(i, axes), axis=axes), call.name())


class _Sampler:
    """One dimension of the image: where each output place lies in it."""

    def __init__(self, call: Call, grid: Tensor, dimension: int, size: int, taps: int) -> None:
        self._call = call
        self._size = size
        self._taps = taps
        self._padding = call.attribute("padding_mode", "zeros")
        self._is_aligned = bool(call.attribute("align_corners", 0))
        # The pixels' outer borders, or the centres of the outermost pixels.
        self._low, self._high = (0.0, size - 1.0) if self._is_aligned else (-0.5, size - 0.5)
        last = grid.shape[-1] - 1 - dimension
        self._shape = grid.shape[:-1]
        self._coordinates = te.compute(
            self._shape, lambda *i: self._coordinate(grid[(*i, last)]), call.name(f"coordinate{dimension}")
        )

    def _coordinate(self, normalized: Expr) -> Expr:
        number = te.cast(normalized, "float64" if normalized.dtype == "float64" else "float32") + 1.0
        span = number * 0.5 * (self._size - 1.0) if self._is_aligned else (number * float(self._size) - 1.0) * 0.5
        x = round_half_even(span) if self._taps == 1 else span
        # Cubics stay outside, and each of their taps is moved: so do PyTorch and onnxruntime.
        if self._padding == "border" and self._taps < 4:
            inside = te.minimum(te.maximum(x, 0.0), self._size - 1.0)
            return te.select((x < self._low) | (x > self._high), inside, x)
        return self._reflected(x) if self._padding == "reflection" else x

    def _reflected(self, x: Expr) -> Expr:
        period = 2.0 * (self._high - self._low)
        if period == 0.0:
            return te.constant(0, x.dtype)
        distance = te.abs(x - self._low)
        rest = distance - te.floor(distance * (1.0 / period)) * period
        return te.minimum(rest, period - rest) + self._low

    def _tap(self, i: Sequence[Expr], tap: Expr) -> Expr:
        """The place of a tap, which may lie outside of the image."""
        return te.cast(te.floor(self._coordinates[tuple(i)]), "int64") + tap - max(self._taps // 2 - 1, 0)

    def places(self) -> Tensor:
        """Where each tap reads, as [*output places, tap]."""

        def inside(place: Expr) -> Expr:
            if self._padding == "reflection":
                return _reflected_place(place, self._size, self._is_aligned)
            return te.minimum(te.maximum(place, 0), self._size - 1)

        shape = (*self._shape, self._taps)
        return te.compute(shape, lambda *i: inside(self._tap(i[:-1], i[-1])), self._call.name("places"))

    def weights(self) -> Tensor:
        """The weight of each tap, as [*output places, tap]; zero where zeros are around the image."""

        def weight(*i: Expr) -> Expr:
            x = self._coordinates[i[:-1]]
            place = self._tap(i[:-1], i[-1])
            found = self._filter()(te.abs(te.cast(place, x.dtype) - x))
            if self._padding != "zeros":
                return found
            return te.select((place >= 0) & (place < self._size), found, te.constant(0, x.dtype))

        return te.compute((*self._shape, self._taps), weight, self._call.name("weights"))

    def _filter(self) -> Callable[[Expr], Expr]:
        if self._taps == 1:
            return lambda distance: te.constant(1, distance.dtype)
        return linear_weight if self._taps == 2 else lambda distance: cubic_weight(distance, _CUBIC_COEFFICIENT)


def _reflected_place(place: Expr, size: int, is_aligned: bool) -> Expr:
    """A place outside of the image as its mirror image: the outermost pixel is repeated unless corners are aligned."""
    if size == 1:
        return te.constant(0, "int64")
    period = 2 * (size - 1) if is_aligned else 2 * size
    rest = place % period
    return te.minimum(rest, (period if is_aligned else period - 1) - rest)
