"""What features and the analytical model need to know of a machine."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.target import CoreModel, Target

# Of the core's numbers, those that say how fast it is; the others are what the roofline does with them.
_CORE_NUMBERS = (
    "clock_hz", "arithmetic_per_cycle", "loads_per_cycle", "stores_per_cycle", "instructions_per_cycle", "mad_latency",
    "window", "l2_bytes_per_cycle", "l3_bytes_per_cycle", "memory_bytes_per_cycle", "region_cycles",
)  # fmt: skip
HARDWARE_NAMES = (
    "vector_bits", "num_vector_registers", "has_fma", "l1_bytes", "l2_bytes", "l3_bytes", "line_bytes", "threads",
    "flops_per_cycle", *_CORE_NUMBERS,
)  # fmt: skip
"""What `Hardware.numbers` has."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """One processor as a roofline sees it. Cache sizes are what one core can use.

    A level that does not exist, or holds less than the one before it, is as large as that: nothing comes from it.

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
    core: CoreModel

    @staticmethod
    def from_target(target: Target, threads: int | None = None) -> Hardware:
        """The target's numbers, for a kernel on so many threads (all cores by default)."""
        return Hardware(
            vector_bytes=target.vector_bytes,
            num_vector_registers=target.num_vector_registers,
            has_fma=target.has_fma,
            l1_bytes=target.l1_bytes,
            l2_bytes=max(target.l1_bytes, target.l2_bytes),
            l3_bytes=max(target.caches[:3]),
            line_bytes=target.cache_line_bytes,
            threads=target.num_cores if threads is None else threads,
            core=target.core,
        )

    def lanes(self, element_bytes: int) -> int:
        """How many elements of that size a vector register holds."""
        return max(1, self.vector_bytes // element_bytes)

    @property
    def numbers(self) -> dict[str, float]:
        """The device as a vector: the numbers that a model may need to know it by, each with its name."""
        own = {name: float(getattr(self, name)) for name in HARDWARE_NAMES if hasattr(self, name)}
        core = {name: float(getattr(self.core, name)) for name in _CORE_NUMBERS}
        flops_per_cycle = core["arithmetic_per_cycle"] * self.lanes(4) * (1 + self.has_fma)
        made = {"vector_bits": 8.0 * self.vector_bytes, "flops_per_cycle": flops_per_cycle}
        found = own | core | made
        return {name: found[name] for name in HARDWARE_NAMES}
