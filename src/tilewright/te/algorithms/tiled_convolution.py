"""Winograd's convolution as an algorithm: which windows it takes tiles of, and where it pays."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.te.algorithms.algorithm import Algorithm, Rewritten
from tilewright.te.algorithms.convolution import Convolution, find_convolution
from tilewright.te.algorithms.winograd import saving, winograd
from tilewright.te.tensor import Tensor

# Where channels are fewer, the transforms cost more than is saved.
_LEAST_CHANNELS = 16
_MOST_WINDOWS = 3


@dataclass(frozen=True)
class TiledConvolution(Algorithm):
    """Winograd's convolution for windows of `num_taps` taps, with tiles of `tile` results along the last two.

    The first of three has tiles of `first_tile` results; with 0 it stays a sum. Windows of one tap do not count, and
    all others move by `stride`.
    """

    tile: int
    first_tile: int = 0
    num_taps: int = 3
    stride: int = 1

    @property
    def least_saving(self) -> float:
        """Less is enough with a stride: a tile has more data for each result, but half of it is not transformed."""
        return 1.5 if self.stride == 1 else 1.3

    @property
    def what_it_computes(self) -> str:
        windows = "three windows" if self.first_tile else "up to three windows"
        return (
            f"convolutions of float32 over {windows} of {self.num_taps} taps and stride {self.stride}, with channels "
            "last and weights that are constant"
        )

    def saving(self, tensor: Tensor) -> float:
        convolution = _found(tensor)
        if convolution is None:
            return 0.0
        num_channels = min(math.prod(axis.extent for axis in convolution.channels), tensor.shape[-1])
        tiles = self._tiles(convolution)
        return 0.0 if tiles is None or num_channels < _LEAST_CHANNELS else saving(convolution, tiles)

    def rewritten(self, tensor: Tensor) -> Rewritten | None:
        convolution = _found(tensor)
        tiles = None if convolution is None else self._tiles(convolution)
        return None if convolution is None or tiles is None else winograd(convolution, tiles)

    def _tiles(self, convolution: Convolution) -> tuple[int, ...] | None:
        """The tile of each window; None where the algorithm does not apply."""
        extents = [window.tap.extent for window in convolution.windows]
        num_windows = sum(extent > 1 for extent in extents)
        if not 1 <= num_windows <= _MOST_WINDOWS or not {1, self.num_taps}.issuperset(extents):
            return None
        if any(window.stride != self.stride for window in convolution.windows if window.tap.extent > 1):
            return None
        if self.first_tile and num_windows < _MOST_WINDOWS:
            return None
        tiles = [self.tile if extent > 1 else 0 for extent in extents]
        if num_windows == _MOST_WINDOWS:
            tiles[next(n for n, extent in enumerate(extents) if extent > 1)] = self.first_tile
        return tuple(tiles)


def _found(tensor: Tensor) -> Convolution | None:
    found = find_convolution(tensor)
    if found is None or tensor.dtype != "float32":
        return None
    return found if found.data.dtype == found.weights.dtype == "float32" else None
