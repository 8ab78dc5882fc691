"""The algorithms by name: where each applies, and how much more it rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.errors import ExpressionError
from tilewright.te.algorithms.convolution import Convolution, find_convolution
from tilewright.te.algorithms.winograd import NUM_TAPS, Rewritten, saving, winograd
from tilewright.te.tensor import Tensor

# Where fewer products are saved, or channels are fewer, the transforms cost more than that.
_LEAST_SAVING = 1.5
_LEAST_CHANNELS = 16
_NUM_WINDOWS = 2


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Winograd's convolution with tiles of `tile` results along each dimension.

    `error_growth` bounds its error: so many times what a sum of the same products may be off.
    """

    name: str
    tile: int
    error_growth: float


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (Algorithm("winograd2", 2, 2.0), Algorithm("winograd4", 4, 8.0), Algorithm("winograd6", 6, 16.0))
}


def rewritten(tensor: Tensor, name: str) -> Rewritten:
    """The tensor computed by the algorithm of that name; ExpressionError says why it cannot be."""
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        raise ExpressionError(f"there is no algorithm {name!r}; use one of: {', '.join(ALGORITHMS)}")
    convolution = _found(tensor)
    if convolution is None:
        raise ExpressionError(
            f"{name} computes convolutions of float32 over two windows of three taps and stride 1, with channels last "
            f"and weights that are constant; {tensor.name} is none"
        )
    return winograd(convolution, algorithm.tile)


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
    for algorithm in ALGORITHMS.values():  # larger tiles round more, and are of no use where they save nothing
        saved = saving(convolution, algorithm.tile)
        if saved > most:
            found.append(algorithm.name)
            most = saved
    return found


def _found(tensor: Tensor) -> Convolution | None:
    found = find_convolution(tensor)
    if found is None or tensor.dtype != "float32" or len(found.windows) != _NUM_WINDOWS:
        return None
    is_float = found.data.dtype == found.weights.dtype == "float32"
    return found if is_float and all(window.tap.extent == NUM_TAPS for window in found.windows) else None
