"""The partition of a network: kernels of one compute-heavy operator and what is fused with it, views and fallbacks.

`clusters.py` says which nodes share a kernel, `stages.py` how they become one tensor expression, `parts.py` what comes
of it.
"""

from tilewright.partition.cutting import partition
from tilewright.partition.parts import Fallback, KernelPart, Part, Partition, View

__all__ = ["Fallback", "KernelPart", "Part", "Partition", "View", "partition"]
