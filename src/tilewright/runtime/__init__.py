"""Running compiled kernels: `Kernel` on arrays, the thread pool behind it, and timing.

The pool, the memory of a call and the checks of arguments are in C, in native/; its header tilewright_runtime.h is
the interface that generated code is written against.
"""

from tilewright.runtime.kernel import Array, Kernel
from tilewright.runtime.spec import Argument, KernelSpec, PackSpec
from tilewright.runtime.threads import MAX_THREADS, checked_threads, default_threads, parallel_region_s
from tilewright.runtime.timing import Timing, interleave, measure, measure_loop

__all__ = [
    "MAX_THREADS",
    "Argument",
    "Array",
    "Kernel",
    "KernelSpec",
    "PackSpec",
    "Timing",
    "checked_threads",
    "default_threads",
    "interleave",
    "measure",
    "measure_loop",
    "parallel_region_s",
]
