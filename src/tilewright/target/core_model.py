"""`CoreModel`: what the parts of one core do in a cycle. The roofline of `features` counts with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace

from tilewright.errors import CodegenError

# Beyond these a number is no property of a machine, and arithmetic with it might overflow.
LEAST_VALUE, MOST_VALUE = 1e-6, 1e12


@dataclass(frozen=True, slots=True)
class CoreModel:
    """The numbers of a core. An instruction works on a vector register, or on one element.

    Each says where it comes from. *Manuals* are those of x86 servers with AVX-512. *Assumed* is what seemed right for
    such a core, and never was measured alone. *Fitted* was chosen so that the model ranks recorded programs best: of 17
    operators on such a server, or, where it says Zen 4, of the tasks that models learn from in `datasets/zoo`.
    `MEASURED` are those that `tilewright target --calibrate` replaces.

    >>> CoreModel().with_values({"loads_per_cycle": 3}).loads_per_cycle
    3.0
    """

    clock_hz: float = 3.0e9
    """Cycles in a second. Assumed."""
    arithmetic_per_cycle: float = 2.0
    """Arithmetic instructions; a multiply-add is one. Manuals: two vector units."""
    loads_per_cycle: float = 2.0
    """Instructions that read the first cache. Manuals: two ports."""
    stores_per_cycle: float = 1.0
    """Instructions that write the first cache. Manuals: one port for whole vectors."""
    instructions_per_cycle: float = 5.0
    """Instructions of all kinds. Assumed: manuals say six."""
    mad_latency: float = 4.0
    """Cycles until the result of a multiply-add can be used. Manuals."""
    store_to_load_latency: float = 6.0
    """Cycles until a value that was written can be read again. Assumed: manuals say four to seven."""
    window: float = 128.0
    """Arithmetic instructions that wait for their operands while others go on. Fitted, on Zen 4; manuals say 64 to 128:
    it is not the number of all instructions that are under way."""
    l2_bytes_per_cycle: float = 36.0
    """Bytes from the second cache. Fitted."""
    l3_bytes_per_cycle: float = 9.0
    """Bytes from the third cache. Assumed."""
    memory_bytes_per_cycle: float = 4.0
    """Bytes from memory, for one core while the others read too. Assumed."""
    run_lines: float = 4.0
    """A run of neighbours from far away costs as if it were so many lines longer, since prefetching begins anew with
    each. Fitted."""
    loop_instructions: float = 3.0
    """Instructions of an iteration beside its body: add, compare, jump."""
    loop_entry_cycles: float = 6.0
    """Cycles for entering and leaving a loop. Assumed."""
    usable_cache: float = 0.75
    """Of a cache, what the working set may take before lines are lost: others share it, and its sets fill unevenly.
    Assumed."""
    max_decoded: float = 1500.0
    """Straight code of more instructions no longer comes from the cache of decoded ones. Manuals: 1536 of them."""
    max_code: float = 4000.0
    """Straight code of more instructions no longer comes from the first cache: 32 KB, at eight bytes for each."""
    undecoded_loss: float = 0.4
    """How much longer, as a share, it takes to issue instructions that are not there decoded. Assumed."""
    far_code_loss: float = 1.0
    """The same, in addition, for those that are not in the first cache. Assumed."""
    gather_instructions: float = 2.0
    """Loads or stores for each element of a vector that is not in one piece in memory. Assumed."""
    transpose_instructions: float = 0.35
    """The same for each element of a block that is turned in registers. Assumed."""
    load_issue: float = 0.5
    """How many instructions a load counts as when they are issued: many are operands of others. Assumed."""
    unfused_units: float = 1.0
    """As how many arithmetic instructions a multiply-add keeps the units busy, where the target has none. Assumed: such
    cores have units for products and units for sums."""
    unfused_registers: float = 4.0
    """Registers that then hold products, or copies of operands that a product would overwrite. Fitted, on Zen 4 with
    SSE."""
    divmod_instructions: float = 8.0
    """Arithmetic instructions that a division or remainder of integers is worth. Assumed."""
    math_instructions: float = 16.0
    """Arithmetic instructions that a function such as exp is worth. Assumed."""
    bool_instructions: float = 0.5
    """Arithmetic instructions that an operation on truth values is worth. Assumed."""
    select_instructions: float = 4.0
    """Instructions that a choice whose test remains, as at the border of padding, costs beside the test. Assumed."""
    overlap_loss: float = 0.35
    """Of the parts that do not bound a statement, how much still shows: they overlap, but not perfectly. Fitted, on
    Zen 4."""
    l2_overlap_loss: float = 0.08
    """The same for what comes from the second cache, which is fetched ahead of its use. Fitted."""
    region_cycles: float = 9000.0
    """Cycles that a parallel region takes beside its work. Assumed."""
    unevenness: float = 0.15
    """How much later, as a share, the slowest thread is done when each has one piece of work; with more pieces it takes
    fewer of them. Fitted."""

    def with_values(self, values: Mapping[str, object]) -> CoreModel:
        """The same with some numbers changed; CodegenError where there is no such number, or it is out of range."""
        changes: dict[str, float] = {}
        for name, value in values.items():
            if name not in NAMES:
                raise CodegenError(f"the model of a core has no number {name!r:.60}; it has {', '.join(NAMES)}")
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not LEAST_VALUE <= value <= MOST_VALUE:  # type: ignore[operator]
                raise CodegenError(
                    f"{name} of a core is a number from {LEAST_VALUE:g} to {MOST_VALUE:g}; got {value!r:.60}: "
                    "correct it, or leave it out"
                )
            changes[name] = float(value)  # type: ignore[arg-type]
        return replace(self, **changes)

    def changes_from(self, other: CoreModel) -> dict[str, float]:
        """The numbers in which this model differs from another one.

        >>> CoreModel(window=224.0).changes_from(CoreModel())
        {'window': 224.0}
        """
        return {name: getattr(self, name) for name in NAMES if getattr(self, name) != getattr(other, name)}


NAMES = tuple(field.name for field in fields(CoreModel))
MEASURED = (
    "clock_hz", "arithmetic_per_cycle", "loads_per_cycle", "stores_per_cycle", "mad_latency",
    "l2_bytes_per_cycle", "l3_bytes_per_cycle", "memory_bytes_per_cycle", "region_cycles",
)  # fmt: skip
"""The numbers that calibration replaces."""

# All begin with the same numbers, chosen on Zen 4: no machine of the other families has been calibrated yet.
FAMILIES = {name: CoreModel() for name in ("x86", "x86-avx2", "x86-avx512", "aarch64", "riscv64")}

PROCESSORS = {
    # Calibrated on an EPYC of two cores, and rounded. Programs of zero trials are 1.02 times as fast with it by the
    # analytical model, 1.01 times by the one that ships (geometric means of eight networks, in turns).
    "znver5": FAMILIES["x86-avx512"].with_values(
        {
            "clock_hz": 4.4e9,
            "l2_bytes_per_cycle": 60,
            "l3_bytes_per_cycle": 20,
            "memory_bytes_per_cycle": 5.7,
            "region_cycles": 1300,
        }
    ),
}
"""Those that are known to differ from their family."""


def core_of(cpu: str, arch: str, features: Collection[str]) -> CoreModel:
    """The numbers that a processor begins with: its own where they are known, or else those of its family."""
    return PROCESSORS.get(cpu) or FAMILIES[family_of(arch, features)]


def family_of(arch: str, features: Collection[str]) -> str:
    """The family of cores that a processor belongs to, by its architecture and instruction set."""
    if arch != "x86_64":
        return arch
    return "x86-avx512" if "avx512f" in features else "x86-avx2" if "avx2" in features else "x86"
