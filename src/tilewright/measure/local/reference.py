"""The right answer of a task on the inputs that candidates are measured with, computed once and kept for all runners.

NumPy computes it where that is quick. Where it is not, a kernel with a schedule that leaves the loops as they are
does: it shares the code generator with the candidates, but none of their decisions.
"""

from __future__ import annotations

import math
import mmap
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.runtime.build import build
from tilewright.space import plain_schedule
from tilewright.te import evaluate, numpy_dtype

if TYPE_CHECKING:
    from tilewright.target import Target
    from tilewright.te import Task

_LARGEST_FOR_NUMPY = 3e8  # points of the loop nests; about a second


def reference_outputs(task: Task, inputs: list[NDArray[Any]], target: Target, threads: int) -> list[NDArray[Any]]:
    """The outputs of `task` for `inputs`."""
    if task.num_points <= _LARGEST_FOR_NUMPY:
        return evaluate(task, *inputs)
    outputs = build(plain_schedule(task, target, threads), target, threads)(*inputs)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


class ReferenceStore:
    """The reference outputs in memory that processes share.

    Made before they are forked. A runner reads them through a mapping that it cannot write to, so that no kernel that
    writes where it should not can spoil them.
    """

    def __init__(self, task: Task) -> None:
        self._tensors = task.outputs
        self._sizes = [math.prod(t.shape) * numpy_dtype(t.dtype).itemsize for t in task.outputs]
        self._fd = os.memfd_create("tilewright-reference")

    @property
    def nbytes(self) -> int:
        return sum(self._sizes)

    def is_filled(self) -> bool:
        return os.fstat(self._fd).st_size == self.nbytes

    def save(self, outputs: list[NDArray[Any]]) -> None:
        os.ftruncate(self._fd, 0)
        with os.fdopen(os.dup(self._fd), "wb") as file:
            file.seek(0)
            for array in outputs:
                file.write(np.ascontiguousarray(array).data)

    def load(self) -> list[NDArray[Any]]:
        mapping = mmap.mmap(self._fd, self.nbytes, prot=mmap.PROT_READ)
        arrays: list[NDArray[Any]] = []
        offset = 0
        for tensor, size in zip(self._tensors, self._sizes, strict=True):
            flat = np.frombuffer(mapping, np.uint8, size, offset)
            arrays.append(flat.view(numpy_dtype(tensor.dtype)).reshape(tensor.shape))
            offset += size
        return arrays

    def close(self) -> None:
        os.close(self._fd)


class ReferenceShelf:
    """The stores of the tasks that were measured last, as many as fit into `max_bytes`, and one at least."""

    def __init__(self, max_bytes: int = 512 << 20) -> None:
        self._max_bytes = max_bytes
        self._stores: dict[str, ReferenceStore] = {}  # by the hash of the task, the last used one at the end

    def of(self, task: Task) -> ReferenceStore:
        store = self._stores.pop(task.hash, None) or ReferenceStore(task)
        self._stores[task.hash] = store
        while len(self._stores) > 1 and sum(kept.nbytes for kept in self._stores.values()) > self._max_bytes:
            self._stores.pop(next(iter(self._stores))).close()
        return store
