"""Arrays next to memory that must not be touched, to catch kernels that leave their arguments."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SENTINEL = 0xA5
_ZONE_BYTES = 256
_PROT_NONE = 0


def before_guard_page(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that ends where a page without access begins: a read or write past its end is a segmentation fault.

    The copy is aligned to its elements and no more. Linux and other POSIX systems only.
    """
    page = mmap.PAGESIZE
    room = -(-max(array.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, room + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(start + room), ctypes.c_size_t(page), _PROT_NONE) != 0:
        raise OSError(ctypes.get_errno(), "mprotect failed")
    copy: NDArray[Any] = np.ndarray(array.shape, array.dtype, memory, offset=room - array.nbytes)
    copy[...] = array
    return copy


class SentinelArray:
    """An uninitialised `array` within a zone of known bytes; `check` tells whether they are still there."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._name = name
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._zone = np.full(nbytes + 2 * _ZONE_BYTES, _SENTINEL, np.uint8)
        self._end = _ZONE_BYTES + nbytes
        self.array: NDArray[Any] = self._zone[_ZONE_BYTES : self._end].view(dtype).reshape(shape)

    def check(self) -> None:
        """Raise AssertionError if a byte before or after the array was written."""
        changed = np.flatnonzero(self._zone != _SENTINEL)
        outside = changed[(changed < _ZONE_BYTES) | (changed >= self._end)]
        if outside.size:
            where = f"{_ZONE_BYTES - outside[0]} bytes before" if outside[0] < _ZONE_BYTES else "after"
            raise AssertionError(f"the kernel wrote {outside.size} bytes outside of {self._name}, first {where} it")
