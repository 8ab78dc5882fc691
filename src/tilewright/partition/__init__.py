"""The partition of a network: kernels of one compute-heavy operator and what is fused with it, views and fallbacks.

`clusters.py` says which nodes share a kernel, `stages.py` how they become one tensor expression.
"""

from tilewright.partition.cutting import partition

__all__ = ["partition"]
