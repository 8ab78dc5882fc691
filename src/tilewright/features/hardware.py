"""What features and the analytical model need to know of a machine."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.target import Target


@dataclass(frozen=True, slots=True)
class Hardware:
    """One processor as a roofline sees it. Cache sizes are what one core can use.

    >>> Hardware.from_target(Target.parse("llvm -mcpu=haswell -num-cores=4"), threads=2).lanes(4)
    8
    """

    vector_bytes: int
    num_vector_registers: int
    has_fma: bool
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    line_bytes: int
    threads: int

    @staticmethod
    def from_target(target: Target, threads: int | None = None) -> Hardware:
        """The target's numbers, for a kernel on so many threads (all cores by default)."""
        return Hardware(
            vector_bytes=target.vector_bytes,
            num_vector_registers=target.num_vector_registers,
            has_fma=target.has_fma,
            l1_bytes=target.l1_bytes,
            l2_bytes=target.l2_bytes,
            l3_bytes=target.l3_bytes,
            line_bytes=target.cache_line_bytes,
            threads=target.num_cores if threads is None else threads,
        )

    def lanes(self, element_bytes: int) -> int:
        """How many elements of that size a vector register holds."""
        return max(1, self.vector_bytes // element_bytes)
