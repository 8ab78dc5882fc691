"""Copies of the constants of a kernel, so that each of many runs finds them where a cache does not have them any more.

A kernel that runs again and again reads its weights from the cache. In a network, where the weights of all other
kernels are read between two runs of it, it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.errors import UsageError
from tilewright.runtime.aligned_arrays import aligned_empty
from tilewright.runtime.spec import Argument

Block = npt.NDArray[np.uint8]

_ALIGNMENT = 64


def new_block(nbytes: int) -> Block:
    """Memory for copies; its contents are undefined."""
    return aligned_empty((nbytes,), np.dtype(np.uint8), nbytes)


def copy_bytes(constants: Sequence[Argument]) -> int:
    """The bytes of one copy of the constants, each on cache lines of its own."""
    return sum(map(_aligned_bytes, constants))


class ConstantCopies:
    """The constants of a kernel, all of them together as often as they fit into a block of memory.

    `first` are the constants of the first copy, by name. The next copy of each lies `stride` bytes behind the last.
    """

    def __init__(self, constants: Sequence[Argument], bound: Mapping[str, Any], block: Block) -> None:
        """`bound` holds the constants in the form that the entry takes."""
        self.stride = copy_bytes(constants)
        self.count = len(block) // self.stride
        if self.count < 1:
            raise UsageError(f"the constants need {self.stride} bytes, and the block has {len(block)}; make it larger")
        copies = block[: self.count * self.stride].reshape(self.count, self.stride)
        self.first: dict[str, npt.NDArray[Any]] = {}
        offset = 0
        for constant in constants:
            self.first[constant.name] = _copy_to(copies[0, offset:], np.asarray(bound[constant.name]))
            offset += _aligned_bytes(constant)
        copies[1:] = copies[0]
        self._next = 0

    def take(self, number: int, arguments: Sequence[Argument]) -> tuple[int, int, tuple[int, ...]]:
        """What the native timing is told for the next so many runs; `arguments` are all that the entry takes."""
        first, self._next = self._next, (self._next + number) % self.count
        return first, self.count, tuple(self.stride if a.name in self.first else 0 for a in arguments)


def _aligned_bytes(constant: Argument) -> int:
    nbytes = constant.packed.nbytes if constant.packed else constant.nbytes
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _copy_to(memory: Block, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    copy = memory[: array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
