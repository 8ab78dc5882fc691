"""Copies of the arrays of a kernel, so that each of many runs finds them where a cache does not have them any more.

A kernel that runs again and again finds its weights and its activations in the cache. In a network, where all other
kernels run between two runs of it, it does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.errors import UsageError
from tilewright.runtime.aligned_arrays import aligned_empty

Block = npt.NDArray[np.uint8]

_ALIGNMENT = 64


def new_block(nbytes: int) -> Block:
    """Memory for copies; its contents are undefined."""
    return aligned_empty((nbytes,), np.dtype(np.uint8), nbytes)


def copy_bytes(sizes: Iterable[int]) -> int:
    """The bytes of one copy of arrays of these sizes, each on cache lines of its own."""
    return sum(map(_aligned, sizes))


class Copies:
    """Arrays of a kernel, all of them together as often as they fit into a block of memory, which is theirs.

    `first` are those of the first copy, by name. The next copy of each lies `stride` bytes behind the last. Those of
    which `produced` has bytes are written anew by all threads before each run, as by the kernel that runs before.
    """

    def __init__(
        self,
        arrays: Mapping[str, Any],
        block: Block,
        sizes: Mapping[str, int] | None = None,
        produced: Collection[str] = (),
    ) -> None:
        """`sizes` are the bytes that arrays take where their elements alone take fewer."""
        sources = {name: np.asarray(array) for name, array in arrays.items()}
        taken = {name: array.nbytes for name, array in sources.items()} | dict(sizes or {})
        self.stride = copy_bytes(taken.values())
        self.count = len(block) // max(self.stride, 1)
        if self.count < 1:
            raise UsageError(f"the arrays need {self.stride} bytes, and the block has {len(block)}; make it larger")
        copies = block[: self.count * self.stride].reshape(self.count, self.stride)
        self.first: dict[str, npt.NDArray[Any]] = {}
        offset = 0
        for name, array in sources.items():
            self.first[name] = _copy_to(copies[0, offset:], array)
            offset += _aligned(taken[name])
        copies[1:] = copies[0]
        self.produced = {name: sources[name].nbytes for name in produced}

    def turns_of(self, name: str) -> tuple[int, int, int]:
        """What the native timing is told of an array: how many there are, how far apart, and what is produced."""
        return self.count, self.stride, self.produced.get(name, 0)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _copy_to(memory: Block, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    copy = memory[: array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
