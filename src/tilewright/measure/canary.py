"""Whether the machine is as usual at this moment: a fixed piece of work tells by how long it takes.

Another tenant of a shared machine can halve the speed of a core for a fraction of a second, or leave it for as long. A
candidate that is timed just then looks bad or good for no fault or merit of its own, and the cost model learns
something untrue.
"""

from __future__ import annotations

import statistics
from collections import deque

import numpy as np

from tilewright import te
from tilewright.runtime import Kernel
from tilewright.runtime.build import build
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.te import Task

_NUM_RUNS = 4
# A speed that lasts is the usual one: the median of this many recent times is what the next is compared with.
_MEMORY = 64
_TOLERANCE = 1.15


class Canary:
    """A small matrix product on all threads, about a tenth of a millisecond of it."""

    def __init__(self, target: Target, threads: int) -> None:
        self._kernel = _kernel(target, threads)
        rng = np.random.default_rng(0)
        self._inputs = [rng.random(a.shape, np.float32) for a in self._kernel.inputs]
        self._output = np.empty(self._kernel.outputs[0].shape, np.float32)
        self._recent_s: deque[float] = deque(maxlen=_MEMORY)

    def is_as_usual(self) -> bool:
        """Whether the work takes about as long as it did of late."""
        elapsed_s = self._kernel.time(*self._inputs, number=_NUM_RUNS, out=self._output)
        self._recent_s.append(elapsed_s)
        usual_s = statistics.median(self._recent_s)
        return usual_s / _TOLERANCE <= elapsed_s <= usual_s * _TOLERANCE


def _kernel(target: Target, threads: int) -> Kernel:
    A = te.placeholder((128, 256), name="A")
    B = te.placeholder((256, 128), name="B")
    k = te.reduce_axis(256, "k")
    C = te.compute((128, 128), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), "C")
    schedule = Schedule(Task([A, B], [C], "canary"))
    stage = schedule["C"]
    i, j, _ = stage.loops
    i0, i1 = stage.split(i, 4)
    j0, j1 = stage.split(j, 2 * target.lanes("float32"))
    stage.reorder(i0, j0, "k", i1, j1)
    stage.parallel(i0)
    stage.unroll(i1)
    stage.vectorize(j1)
    return build(schedule, target, threads)
