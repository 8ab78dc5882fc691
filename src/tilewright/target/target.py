"""`Target`: the machine that code is generated for, read from a string such as "llvm -mcpu=native".

A target is its string and nothing else: two equal strings describe the same machine, wherever they are read. Only
"native" asks the machine at hand (`machine`), and for what was measured of it (`calibration`), when the string is read;
what is found is in the value from then on.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from functools import lru_cache

from tilewright.errors import CodegenError
from tilewright.target import syntax
from tilewright.target.caches import Caches, default_caches
from tilewright.target.calibration import Calibration, find_calibration
from tilewright.target.core_model import CoreModel, core_of, family_of
from tilewright.target.cpus import CPU_FEATURES, GENERIC_CPU, RISCV_BASELINE, apply_features
from tilewright.target.machine import read_machine, read_processor, this_arch
from tilewright.te import DTYPES

_MAX_RECORDED = 4096  # characters; more are no target, and not worth the time to find out why


@dataclass(frozen=True, slots=True)
class Target:
    """A machine to compile for. Made by `Target.parse` or `Target.native`, never by hand.

    >>> target = Target.parse("llvm -mcpu=haswell -num-cores=4 -l3=6M")
    >>> print(target)
    llvm -mcpu=haswell -mtriple=x86_64-unknown-linux-gnu -num-cores=4 -l1d=32K -l2=256K -l3=6M -line=64
    >>> target.vector_bytes, target.num_vector_registers, target.has_fma, target.lanes("float32")
    (32, 16, True, 8)
    """

    triple: str
    cpu: str
    mattr: tuple[str, ...]  # changes to what the processor's name promises: ("+avx512f", "-fma")
    num_cores: int
    caches: Caches
    vector_bytes: int  # the width of a vector register; where there are none, that of a floating-point register
    num_vector_registers: int
    core: CoreModel

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read `text`: the form of `syntax.SYNTAX`, or one word that names a processor, machine or architecture.

        Without a processor it is the one at hand, or the generic one if a triple is given. Without a triple it is
        Linux on the processor's architecture. Without a number of cores it is 1; without caches they are those of the
        processor, or of a small one of its architecture. Of this machine (`native`), all that is read from it, and from
        its calibration (`calibration`) if there is one.
        """
        if not isinstance(text, str):
            raise CodegenError(f"a target is written as a string such as 'llvm -mcpu=native', got {text!r}")
        options = syntax.read_options(text)
        return cls._of_this_machine(options) if syntax.asks_for_this_machine(options) else cls._named(options)

    @classmethod
    def of(cls, target: Target | str) -> Target:
        """The target, or what its text says."""
        return target if isinstance(target, Target) else cls.parse(target)

    @classmethod
    def native(cls) -> Target:
        """The machine that this process runs on, read now."""
        return cls.parse("native")

    @classmethod
    def _named(cls, options: dict[str, str]) -> Target:
        arch = syntax.find_arch(options)
        cpu = syntax.find_cpu(arch, options)
        return cls._make(options, arch, cpu, (), 1, default_caches(arch, cpu))

    @classmethod
    def _of_this_machine(cls, options: dict[str, str]) -> Target:
        arch = syntax.find_arch(options) if "-mtriple" in options else this_arch()
        if arch != this_arch():
            raise CodegenError(
                f"-mcpu=native is the processor at hand, which is {this_arch()}; got it with the triple "
                f"{options['-mtriple']!r}: name a processor, such as -mcpu={GENERIC_CPU[arch]}"
            )
        here = read_machine()
        target = cls._make(options, arch, here.cpu, here.changes, here.num_cores, here.caches)
        found = find_calibration()
        if found is None or not is_calibration_of(found, target, here.processor):
            return target
        own = syntax.read_core(options.get("-core"))
        return replace(target, core=target.uncalibrated.core.with_values({**found.core, **own}))

    @classmethod
    def _make(
        cls, options: dict[str, str], arch: str, cpu: str, changes: tuple[str, ...], num_cores: int, caches: Caches
    ) -> Target:
        """A target of that processor, number of cores and caches, where the options do not say otherwise."""
        changes += syntax.read_features(arch, options.get("-mattr", ""))
        mattr = syntax.canonical_features(arch, cpu, changes)
        enabled = _enabled_features(arch, cpu, mattr)
        num_registers = _num_vector_registers(arch, enabled)
        return cls(
            triple=options.get("-mtriple", f"{arch}-unknown-linux-gnu"),
            cpu=cpu,
            mattr=mattr,
            num_cores=syntax.read_number(options, "-num-cores", num_cores, 1, syntax.MAX_CORES),
            caches=syntax.read_caches(options, caches),
            vector_bytes=syntax.read_vector_bits(options, 8 * _vector_bytes(arch, enabled)) // 8,
            num_vector_registers=syntax.read_number(options, "-vector-registers", num_registers, 8, num_registers),
            core=core_of(cpu, arch, enabled).with_values(syntax.read_core(options.get("-core"))),
        )

    def __str__(self) -> str:
        enabled = self.enabled_features
        parts = [f"llvm -mcpu={self.cpu} -mtriple={self.triple}"]
        if self.mattr:
            parts.append(f"-mattr={','.join(self.mattr)}")
        parts += [f"-num-cores={self.num_cores}", syntax.write_caches(self.caches)]
        if self.vector_bytes != _vector_bytes(self.arch, enabled):
            parts.append(f"-vector-bits={8 * self.vector_bytes}")
        if self.num_vector_registers != _num_vector_registers(self.arch, enabled):
            parts.append(f"-vector-registers={self.num_vector_registers}")
        if changes := self.core.changes_from(self.uncalibrated.core):
            parts.append(f"-core={syntax.write_core(changes)}")
        return " ".join(parts)

    @property
    def arch(self) -> str:
        """x86_64, aarch64 or riscv64."""
        return self.triple.partition("-")[0]

    @property
    def family(self) -> str:
        """The family of cores that this target's is of."""
        return family_of(self.arch, self.enabled_features)

    @property
    def uncalibrated(self) -> Target:
        """The same target with the numbers that its processor begins with."""
        return replace(self, core=core_of(self.cpu, self.arch, self.enabled_features))

    @property
    def features(self) -> str:
        """The features as LLVM reads them, to be used together with `cpu`."""
        baseline = tuple("+" + feature for feature in RISCV_BASELINE) if self.arch == "riscv64" else ()
        return ",".join(baseline + self.mattr)

    @property
    def enabled_features(self) -> frozenset[str]:
        """The names of all features that code for this target may use, of those listed in `cpus.IMPLIED`."""
        return _enabled_features(self.arch, self.cpu, self.mattr)

    @property
    def has_fma(self) -> bool:
        """Whether `a * b + c` with one rounding is one instruction; otherwise llvm.fma is a library call."""
        return self.arch != "x86_64" or "fma" in self.enabled_features

    @property
    def has_broadcast_operands(self) -> bool:
        """Whether an arithmetic instruction can take one element from memory for all lanes of an operand."""
        return self.arch == "x86_64" and "avx512f" in self.enabled_features

    @property
    def has_streaming_stores(self) -> bool:
        """Whether a vector can be written past the caches, by an instruction that is known to be fast."""
        return self.arch == "x86_64"

    @property
    def has_rounding(self) -> bool:
        """Whether llvm.floor and llvm.ceil are written in place; otherwise they are library calls.

        riscv64 has no instruction for them, but LLVM converts to an integer and back there.
        """
        return self.arch != "x86_64" or "sse4.1" in self.enabled_features

    @property
    def has_float16_conversion(self) -> bool:
        """Whether float16 <-> float32 is an instruction; otherwise fpext and fptrunc are library calls."""
        needed = {"x86_64": "f16c", "aarch64": "neon", "riscv64": "zfhmin"}[self.arch]
        return needed in self.enabled_features

    @property
    def l1_bytes(self) -> int:
        return self.caches.l1_bytes

    @property
    def l2_bytes(self) -> int:
        return self.caches.l2_bytes

    @property
    def l3_bytes(self) -> int:
        return self.caches.l3_bytes

    @property
    def last_cache_bytes(self) -> int:
        """Of the largest cache that there is."""
        return max(self.caches[:3])

    @property
    def cache_line_bytes(self) -> int:
        return self.caches.line_bytes

    @property
    def has_known_cpu(self) -> bool:
        """Whether the processor is one of `cpus`; otherwise only LLVM on such a machine is known to know its name."""
        return self.cpu in CPU_FEATURES[self.arch]

    def lanes(self, dtype: str) -> int:
        """How many elements of `dtype` a vector register holds."""
        return max(1, self.vector_bytes // DTYPES[dtype].bytes)


def runs_here(target: Target) -> bool:
    """Whether code for the target runs in this process."""
    if target.arch != platform.machine():
        return False
    return target.enabled_features <= _enabled_features(target.arch, *read_processor(target.arch))


def stands_for(recorded: str, target: Target) -> bool:
    """Whether what was measured for the target of a string, such as that of a record, holds for `target`.

    Both generate the same code, and have the same caches; strings of the version before this one say nothing of caches.
    The number of cores does not matter, since a record has a number of threads, nor does the model of the core.

    >>> stands_for("llvm -mcpu=haswell -mtriple=x86_64-unknown-linux-gnu -num-cores=2", Target.parse("haswell"))
    True
    >>> stands_for("llvm -mcpu=haswell -l2=1M", Target.parse("haswell"))
    False
    """
    found = _read_recorded(recorded) if len(recorded) <= _MAX_RECORDED else None
    if found is None:
        return False
    other, has_caches = found
    return _code_of(other) == _code_of(target) and (not has_caches or other.caches == target.caches)


def is_calibration_of(calibration: Calibration, target: Target, processor: str) -> bool:
    """Whether it was measured on a processor of that name, with code as it is generated for the target."""
    return calibration.processor == processor and stands_for(calibration.target, target)


@lru_cache(maxsize=64)
def _read_recorded(text: str) -> tuple[Target, bool] | None:
    """The target of a string, and whether that says what caches it has; None where it is none, or names none."""
    try:
        options = syntax.read_options(text)
        is_named = not syntax.asks_for_this_machine(options)
        return (Target.parse(text), not options.keys().isdisjoint(syntax.CACHE_OPTIONS)) if is_named else None
    except CodegenError:
        return None


def _code_of(target: Target) -> tuple[object, ...]:
    """What decides which code is generated."""
    return target.triple, target.cpu, target.mattr, target.vector_bytes, target.num_vector_registers


def _vector_bytes(arch: str, enabled: frozenset[str]) -> int:
    """Of the instruction set."""
    if arch == "x86_64":
        return 64 if "avx512f" in enabled else 32 if "avx" in enabled else 16
    if arch == "riscv64":
        return 16 if "v" in enabled else 8
    return 16


def _num_vector_registers(arch: str, enabled: frozenset[str]) -> int:
    """Of the instruction set."""
    return 16 if arch == "x86_64" and "avx512f" not in enabled else 32


@lru_cache(maxsize=64)
def _enabled_features(arch: str, cpu: str, changes: tuple[str, ...]) -> frozenset[str]:
    return apply_features(arch, CPU_FEATURES[arch].get(cpu, frozenset()), changes)
