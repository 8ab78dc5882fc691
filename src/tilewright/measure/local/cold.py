"""Constants as cold as a context says: a kernel is timed on copies of them, used in turn."""

from __future__ import annotations

import os

from tilewright.measure.context import Context
from tilewright.runtime import Kernel
from tilewright.runtime.copies import new_block
from tilewright.target import Target

_LEAST_COPIES = 2
# Copies are made for every candidate, in some milliseconds; those of a very large network would take longer.
_ALWAYS_COLD = 64 << 20
_MANY_CACHES = 2
_MOST_OF_MEMORY = 0.125


class ColdConstants:
    """Makes copies of the constants of one kernel after the other, in memory that it keeps."""

    def __init__(self, context: Context, target: Target) -> None:
        # With more, nothing is colder: no cache of the machine has anything left of them.
        self._cold_bytes = min(context.cold_bytes, max(_ALWAYS_COLD, _MANY_CACHES * target.l3_bytes))
        self._most_bytes = int(_MOST_OF_MEMORY * _memory_bytes())
        self._block = new_block(0)

    def of(self, kernel: Kernel) -> Kernel:
        """The kernel with copies of its bound constants, two at least; as it is where it is warm, or has none.

        The kernel before must not be used any more.
        """
        nbytes = max(_LEAST_COPIES * kernel.bound_bytes, self._cold_bytes)
        if not kernel.bound_bytes or not self._cold_bytes or nbytes > self._most_bytes:
            return kernel
        if len(self._block) < nbytes:
            self._block = new_block(nbytes)
        return kernel.with_copies(self._block[:nbytes])


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
