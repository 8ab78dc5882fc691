"""Arrays whose elements start on a cache line, as generated code likes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.runtime._native import AlignedMemory


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int) -> npt.NDArray[Any]:
    """A new array in `nbytes` of memory aligned to 64 bytes; its contents are undefined.

    >>> a = aligned_empty((3, 5), np.dtype("float32"), nbytes=60)
    >>> a.shape, a.dtype.name, a.ctypes.data % 64
    ((3, 5), 'float32', 0)
    """
    memory: Any = AlignedMemory(nbytes)  # NumPy takes any buffer here; its type hints name only the common ones
    return np.ndarray(shape, dtype, memory)
