"""Arrays as cold as a context says: a kernel is timed on copies of them, used in turn."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from tilewright.measure.context import Context
from tilewright.runtime import Kernel
from tilewright.runtime.copies import Copies, copy_bytes, new_block
from tilewright.target import Target

_LEAST_COPIES = 2
# Copies are made for every candidate, in some milliseconds; those of a very large network would take longer.
_ALWAYS_COLD = 64 << 20
_MANY_CACHES = 2
_MOST_OF_MEMORY = 0.125


class ColdArrays:
    """Makes copies of the constants of one kernel after the other, in memory that it keeps, and of activations."""

    def __init__(self, context: Context, target: Target) -> None:
        # With more, nothing is colder: no cache of the machine has anything left of them.
        self._enough = max(_ALWAYS_COLD, _MANY_CACHES * target.l3_bytes)
        self._constant_bytes = context.cold_bytes
        self._activation_bytes = min(context.activation_bytes, self._enough)
        self._most_bytes = int(_MOST_OF_MEMORY * _memory_bytes())
        self._block = new_block(0)

    def constants(self, kernel: Kernel) -> Kernel:
        """The kernel with copies of its bound constants, two at least; as it is where they are warm, or it has none.

        There are as many as the constants of the network are times those of the kernel, as the task has them: where
        an algorithm transforms them they grow, and those of the other kernels do, too. The kernel before must not be
        used any more.
        """
        if not kernel.bound_bytes or not self._constant_bytes:
            return kernel
        wanted = math.ceil(self._constant_bytes / kernel.plain_bound_bytes)
        nbytes = max(_LEAST_COPIES, min(wanted, math.ceil(self._enough / kernel.bound_bytes))) * kernel.bound_bytes
        if nbytes > self._most_bytes:
            return kernel
        if len(self._block) < nbytes:
            self._block = new_block(nbytes)
        return kernel.with_copies(self._block[:nbytes])

    def activations(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Copies | None:
        """Copies of the inputs and outputs of a kernel, two at least; None where they are warm.

        In a network another kernel has just written the inputs, on all cores: each finds a part in another one's cache.
        """
        arrays = {**inputs, **outputs}
        one = copy_bytes(array.nbytes for array in arrays.values())
        nbytes = max(_LEAST_COPIES * one, self._activation_bytes)
        if not one or not self._activation_bytes or nbytes > self._most_bytes:
            return None
        return Copies(arrays, new_block(nbytes), produced=inputs.keys())


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
