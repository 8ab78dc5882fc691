"""The algorithms by name: where each applies, and how much more it rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from tilewright.errors import ExpressionError
from tilewright.te.algorithms.convolution import Convolution, find_convolution
from tilewright.te.algorithms.winograd import Rewritten, saving, winograd
from tilewright.te.tensor import Tensor

# Where fewer products are saved, or channels are fewer, the transforms cost more than that.
_LEAST_SAVING = 1.5
_LEAST_CHANNELS = 16
_MOST_WINDOWS = 3


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Winograd's convolution for windows of `num_taps` taps, with tiles of `tile` results along the last two.

    The first of three has tiles of `first_tile` results; with 0 it stays a sum. Windows of one tap do not count.
    `error_growth` bounds its error: so many times what a sum of the same products may be off.
    """

    name: str
    tile: int
    error_growth: float
    first_tile: int = 0
    num_taps: int = 3

    def tiles(self, convolution: Convolution) -> tuple[int, ...] | None:
        """The tile of each window; None where the algorithm does not apply."""
        extents = [window.tap.extent for window in convolution.windows]
        num_windows = sum(extent > 1 for extent in extents)
        if not 1 <= num_windows <= _MOST_WINDOWS or not {1, self.num_taps}.issuperset(extents):
            return None
        if self.first_tile and num_windows < _MOST_WINDOWS:
            return None
        tiles = [self.tile if extent > 1 else 0 for extent in extents]
        if num_windows == _MOST_WINDOWS:
            tiles[next(n for n, extent in enumerate(extents) if extent > 1)] = self.first_tile
        return tuple(tiles)


# Those that round less come first.
ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("winograd2", 2, 2.0),
        Algorithm("winograd2x2", 2, 4.0, first_tile=2),
        Algorithm("winograd4", 4, 8.0),
        Algorithm("winograd2of5", 2, 8.0, num_taps=5),
        Algorithm("winograd6", 6, 16.0),
        Algorithm("winograd2x4", 4, 16.0, first_tile=2),
        Algorithm("winograd4of5", 4, 16.0, num_taps=5),
        Algorithm("winograd2of7", 2, 16.0, num_taps=7),
    )
}


@lru_cache(maxsize=16)
def rewritten(tensor: Tensor, name: str) -> Rewritten:
    """The tensor computed by the algorithm of that name; ExpressionError says why it cannot be.

    Every population of a search asks for the same few, and stages are values: they are made once.
    """
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        raise ExpressionError(f"there is no algorithm {name!r}; use one of: {', '.join(ALGORITHMS)}")
    convolution = _found(tensor)
    tiles = None if convolution is None else algorithm.tiles(convolution)
    if convolution is None or tiles is None:
        windows = "three windows" if algorithm.first_tile else "up to three windows"
        raise ExpressionError(
            f"{name} computes convolutions of float32 over {windows} of {algorithm.num_taps} taps and stride 1, with "
            f"channels last and weights that are constant; {tensor.name} is none"
        )
    return winograd(convolution, tiles)


def algorithms_for(tensor: Tensor) -> list[str]:
    """The algorithms that may be faster than the tensor as it is written."""
    convolution = _found(tensor)
    if convolution is None:
        return []
    num_channels = min(math.prod(axis.extent for axis in convolution.channels), tensor.shape[-1])
    if num_channels < _LEAST_CHANNELS:
        return []
    found: list[str] = []
    most = _LEAST_SAVING
    for algorithm in ALGORITHMS.values():  # one that rounds more is of no use where it saves nothing
        tiles = algorithm.tiles(convolution)
        saved = 0.0 if tiles is None else saving(convolution, tiles)
        if saved > most:
            found.append(algorithm.name)
            most = saved
    return found


def _found(tensor: Tensor) -> Convolution | None:
    found = find_convolution(tensor)
    if found is None or tensor.dtype != "float32":
        return None
    return found if found.data.dtype == found.weights.dtype == "float32" else None
