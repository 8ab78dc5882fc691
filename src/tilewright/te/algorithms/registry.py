"""The algorithms by name: where each applies, and how much more it rounds."""

from __future__ import annotations

from functools import lru_cache

from tilewright.errors import ExpressionError
from tilewright.te.algorithms.algorithm import Algorithm, Rewritten
from tilewright.te.algorithms.byte_products import ByteProducts
from tilewright.te.algorithms.tiled_convolution import TiledConvolution
from tilewright.te.tensor import Tensor

# Those that round less come first.
ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        ByteProducts("dot4", 1.0),
        TiledConvolution("winograd2", 2.0, tile=2),
        TiledConvolution("winograd2s2", 2.0, tile=2, stride=2),
        TiledConvolution("winograd2x2", 4.0, tile=2, first_tile=2),
        TiledConvolution("winograd4s2", 4.0, tile=4, stride=2),
        TiledConvolution("winograd4", 8.0, tile=4),
        TiledConvolution("winograd2of5", 8.0, tile=2, num_taps=5),
        TiledConvolution("winograd6", 16.0, tile=6),
        TiledConvolution("winograd2x4", 16.0, tile=4, first_tile=2),
        TiledConvolution("winograd4of5", 16.0, tile=4, num_taps=5),
        TiledConvolution("winograd2of7", 16.0, tile=2, num_taps=7),
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
    found = algorithm.rewritten(tensor)
    if found is None:
        raise ExpressionError(f"{name} computes {algorithm.what_it_computes}; {tensor.name} is none")
    return found


def algorithms_for(tensor: Tensor, exact: bool = False) -> list[str]:
    """The algorithms that may be faster than the tensor as it is written; those that give the same, if `exact`."""
    found: list[str] = []
    most = 0.0
    for algorithm in ALGORITHMS.values():  # one that rounds more is of no use where it saves nothing
        if exact and not algorithm.is_exact:
            continue
        saved = algorithm.saving(tensor)
        if saved > max(most, algorithm.least_saving):
            found.append(algorithm.name)
            most = saved
    return found


def is_exact(name: str) -> bool:
    """Whether the algorithm of that name gives the numbers of the sums; one that is not known may not."""
    algorithm = ALGORITHMS.get(name)
    return algorithm is not None and algorithm.is_exact
