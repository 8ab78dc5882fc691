"""Running compiled kernels: `Kernel` on arrays, the thread pool behind it, and timing.

The pool, the memory of a call and the checks of arguments are in C, in native/; its header tilewright_runtime.h is
the interface that generated code is written against.
"""

from tilewright.runtime.kernel import Array, Kernel
from tilewright.runtime.nearness import Nearness
from tilewright.runtime.spec import Argument, KernelSpec, PackSpec
from tilewright.runtime.timing import Timing, interleave, measure, measure_loop, parallel_region_s

__all__ = [
    "Argument",
    "Array",
    "Kernel",
    "KernelSpec",
    "Nearness",
    "PackSpec",
    "Timing",
    "interleave",
    "measure",
    "measure_loop",
    "parallel_region_s",
]
