"""`Target`: the machine that code is generated for, read from a string such as "llvm -mcpu=native".

A target is its string and nothing else: two equal strings describe the same machine, wherever they are read. Only
"native" asks LLVM about the processor at hand, so importing this module does not load LLVM.
"""

from __future__ import annotations

import difflib
import os
import platform
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tilewright.errors import CodegenError
from tilewright.target.cpus import CPU_FEATURES, GENERIC_CPU, IMPLIED, RISCV_BASELINE, apply_features, feature_changes
from tilewright.te import DTYPES

SYNTAX = "llvm [-mcpu=NAME] [-mtriple=TRIPLE] [-mattr=+a,-b] [-num-cores=N]"

_OPTIONS = ("-mcpu", "-mtriple", "-mattr", "-num-cores")
_TRIPLE = re.compile(r"(x86_64|aarch64|riscv64)-[a-z0-9_]+-(linux|none|freebsd)(-[a-z0-9_]+)?")
_SYSFS_CACHE = Path("/sys/devices/system/cpu/cpu0/cache")


class Caches(NamedTuple):
    """Bytes of the data caches that one core sees; 0 is a level that does not exist."""

    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    line_bytes: int


# A small core of each architecture: better to block for too little cache than for too much.
_DEFAULT_CACHES = {
    "x86_64": Caches(32 * 2**10, 256 * 2**10, 8 * 2**20, 64),
    "aarch64": Caches(32 * 2**10, 512 * 2**10, 4 * 2**20, 64),
    "riscv64": Caches(32 * 2**10, 512 * 2**10, 2 * 2**20, 64),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A machine to compile for. Made by `Target.parse` or `Target.native`, never by hand.

    >>> target = Target.parse("llvm -mcpu=haswell -num-cores=4")
    >>> str(target)
    'llvm -mcpu=haswell -mtriple=x86_64-unknown-linux-gnu -num-cores=4'
    >>> target.vector_bytes, target.num_vector_registers, target.has_fma, target.lanes("float32")
    (32, 16, True, 8)
    """

    triple: str
    cpu: str
    mattr: tuple[str, ...]  # changes to what the processor's name promises: ("+avx512f", "-fma")
    num_cores: int

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read `text`: the form of `SYNTAX`, or one word that names a processor or an architecture.

        Without a processor it is the one at hand, or the generic one if a triple is given. Without a triple it is
        Linux on the processor's architecture. Without a number of cores it is as many as this process may use if
        the architecture is that of this machine, else 1.
        """
        if not isinstance(text, str):
            raise CodegenError(f"a target is written as a string such as 'llvm -mcpu=native', got {text!r}")
        options = _read_options(text)
        arch = _find_arch(options)
        triple = options.get("-mtriple", f"{arch}-unknown-linux-gnu")
        cpu, changes = _find_cpu(arch, options)
        changes += _check_features(arch, options.get("-mattr", ""))
        return cls(triple, cpu, _canonical_changes(arch, cpu, changes), _count_cores(arch, options))

    @classmethod
    def of(cls, target: Target | str) -> Target:
        """The target, or what its text says."""
        return target if isinstance(target, Target) else cls.parse(target)

    @classmethod
    def native(cls) -> Target:
        """The machine that this process runs on."""
        return cls.parse("native")

    def __str__(self) -> str:
        mattr = f" -mattr={','.join(self.mattr)}" if self.mattr else ""
        return f"llvm -mcpu={self.cpu} -mtriple={self.triple}{mattr} -num-cores={self.num_cores}"

    @property
    def arch(self) -> str:
        """x86_64, aarch64 or riscv64."""
        return self.triple.partition("-")[0]

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
    def vector_bytes(self) -> int:
        """Width of a vector register. Where there are none it is that of a floating-point register."""
        enabled = self.enabled_features
        if self.arch == "x86_64":
            return 64 if "avx512f" in enabled else 32 if "avx" in enabled else 16
        if self.arch == "riscv64":
            return 16 if "v" in enabled else 8
        return 16

    @property
    def num_vector_registers(self) -> int:
        return 16 if self.arch == "x86_64" and "avx512f" not in self.enabled_features else 32

    @property
    def has_fma(self) -> bool:
        """Whether `a * b + c` with one rounding is one instruction; otherwise llvm.fma is a library call."""
        return self.arch != "x86_64" or "fma" in self.enabled_features

    @property
    def has_broadcast_operands(self) -> bool:
        """Whether an arithmetic instruction can take one element from memory for all lanes of an operand."""
        return self.arch == "x86_64" and "avx512f" in self.enabled_features

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
        return self._caches.l1_bytes

    @property
    def l2_bytes(self) -> int:
        return self._caches.l2_bytes

    @property
    def l3_bytes(self) -> int:
        return self._caches.l3_bytes

    @property
    def cache_line_bytes(self) -> int:
        return self._caches.line_bytes

    @property
    def is_native(self) -> bool:
        """Whether code for this target runs in this process."""
        if self.arch != platform.machine():
            return False
        host = _find_host()
        return self.enabled_features <= _enabled_features(self.arch, host.cpu, host.changes)

    @property
    def _caches(self) -> Caches:
        return read_caches(_SYSFS_CACHE, _DEFAULT_CACHES[self.arch]) if self.is_native else _DEFAULT_CACHES[self.arch]

    def lanes(self, dtype: str) -> int:
        """How many elements of `dtype` a vector register holds."""
        return max(1, self.vector_bytes // DTYPES[dtype].bytes)


@lru_cache(maxsize=8)
def read_caches(directory: Path, default: Caches) -> Caches:
    """The data caches that Linux describes in `directory`; `default` where it describes none."""
    sizes: dict[int, int] = {}
    line_bytes = default.line_bytes
    for index in sorted(directory.glob("index*")):
        if (index / "type").read_text().strip() == "Instruction":
            continue
        sizes[int((index / "level").read_text())] = _read_size((index / "size").read_text())
        line_bytes = int((index / "coherency_line_size").read_text())
    if 1 not in sizes:
        return default
    return Caches(sizes[1], sizes.get(2, 0), sizes.get(3, 0), line_bytes)


def _read_size(text: str) -> int:
    number, unit = text.strip()[:-1], text.strip()[-1]
    return int(number) * {"K": 2**10, "M": 2**20, "G": 2**30}[unit]


class _Host(NamedTuple):
    cpu: str
    changes: tuple[str, ...]


@lru_cache(maxsize=1)
def _find_host() -> _Host:
    from llvmlite import binding

    arch = platform.machine()
    cpu: str = binding.get_host_cpu_name()
    found: dict[str, bool] = binding.get_host_cpu_features()
    if cpu in CPU_FEATURES[arch]:
        return _Host(cpu, feature_changes(arch, CPU_FEATURES[arch][cpu], found))
    # A processor newer than our table: what its name promises is unknown, so say everything.
    return _Host(cpu, tuple(("+" if found[name] else "-") + name for name in IMPLIED[arch] if name in found))


@lru_cache(maxsize=64)
def _enabled_features(arch: str, cpu: str, changes: tuple[str, ...]) -> frozenset[str]:
    return apply_features(arch, CPU_FEATURES[arch].get(cpu, frozenset()), changes)


def _canonical_changes(arch: str, cpu: str, changes: tuple[str, ...]) -> tuple[str, ...]:
    if cpu not in CPU_FEATURES[arch]:
        return changes
    promised = CPU_FEATURES[arch][cpu]
    enabled = apply_features(arch, promised, changes)
    return feature_changes(arch, promised, {name: name in enabled for name in IMPLIED[arch]})


def _read_options(text: str) -> dict[str, str]:
    words = text.split()
    if len(words) == 1 and words[0] != "llvm":
        return _expand_short_name(words[0])
    if not words or words[0] != "llvm":
        raise CodegenError(f"a target has the form {SYNTAX!r}; got {text!r}: begin it with 'llvm'")
    options: dict[str, str] = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if name not in _OPTIONS or not equals or not value:
            raise CodegenError(f"a target has the form {SYNTAX!r}; got {word!r} in {text!r}: write -option=value")
        if name in options:
            raise CodegenError(f"a target gives each option once; got {name} twice in {text!r}: remove one")
        options[name] = value
    return options


def _expand_short_name(name: str) -> dict[str, str]:
    if name in CPU_FEATURES:
        return {"-mtriple": f"{name}-unknown-linux-gnu"}
    if name == "native" or any(name in table for table in CPU_FEATURES.values()):
        return {"-mcpu": name}
    known = ["native", *CPU_FEATURES, *(cpu for table in CPU_FEATURES.values() for cpu in table)]
    raise CodegenError(
        f"a target of one word names a processor or an architecture; got {name!r}: {_suggest(name, known)}, "
        f"or write {SYNTAX!r}"
    )


def _find_arch(options: dict[str, str]) -> str:
    triple = options.get("-mtriple")
    if triple is not None:
        match = _TRIPLE.fullmatch(triple)
        if match is None:
            raise CodegenError(
                "a triple is ARCH-VENDOR-SYSTEM[-ABI] with one of the architectures x86_64, aarch64, riscv64 and the "
                f"systems linux, freebsd, none; got {triple!r}: write for example aarch64-unknown-linux-gnu"
            )
        return match[1]
    host_arch = platform.machine()
    cpu = options.get("-mcpu", "native")
    if cpu != "generic" and cpu not in CPU_FEATURES.get(host_arch, {}):
        for arch, table in CPU_FEATURES.items():
            if cpu in table:
                return arch
    if host_arch not in CPU_FEATURES:
        raise CodegenError(
            f"code is generated for {', '.join(CPU_FEATURES)}; this machine is {host_arch}: "
            "name a target of one of those architectures"
        )
    return host_arch


def _find_cpu(arch: str, options: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    cpu = options.get("-mcpu", "generic" if "-mtriple" in options else "native")
    on_host = arch == platform.machine()
    if cpu == "native":
        if not on_host:
            raise CodegenError(
                f"-mcpu=native is the processor at hand, which is {platform.machine()}; got it with the triple "
                f"{options['-mtriple']!r}: name a processor, such as -mcpu={GENERIC_CPU[arch]}"
            )
        return _find_host()
    if cpu == "generic":
        return GENERIC_CPU[arch], ()
    if cpu not in CPU_FEATURES[arch] and not (on_host and cpu == _find_host().cpu):
        raise CodegenError(
            f"-mcpu names an {arch} processor that is known here; got {cpu!r}: {_suggest(cpu, CPU_FEATURES[arch])}, "
            f"or use -mcpu={GENERIC_CPU[arch]} with -mattr"
        )
    return cpu, ()


def _check_features(arch: str, text: str) -> tuple[str, ...]:
    changes = tuple(text.split(",")) if text else ()
    for change in changes:
        if change[:1] not in ("+", "-") or change[1:] not in IMPLIED[arch]:
            raise CodegenError(
                f"-mattr lists features of {arch}, each with + or -; got {change!r} in {text!r}: "
                f"{_suggest(change.lstrip('+-'), IMPLIED[arch])}"
            )
    return changes


def _count_cores(arch: str, options: dict[str, str]) -> int:
    text = options.get("-num-cores")
    if text is None:
        return len(os.sched_getaffinity(0)) if arch == platform.machine() else 1
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise CodegenError(f"-num-cores is a whole number of at least 1; got {text!r}: write for example -num-cores=2")
    return int(text)


def _suggest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}" if near else f"use one such as {', '.join(list(known)[:8])}"
