"""The text of a target: its options, and what each may say. Nothing here looks at a machine."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping

from tilewright.errors import CodegenError
from tilewright.target.caches import Caches, read_size, write_size
from tilewright.target.cpus import CPU_FEATURES, GENERIC_CPU, IMPLIED, apply_features, feature_changes

SYNTAX = (
    "llvm [-mcpu=NAME] [-mtriple=TRIPLE] [-mattr=+a,-b] [-num-cores=N] [-l1d=SIZE] [-l2=SIZE] [-l3=SIZE] "
    "[-line=BYTES] [-vector-bits=N] [-vector-registers=N] [-core=NAME:NUMBER,...]"
)
CACHE_OPTIONS = ("-l1d", "-l2", "-l3", "-line")

_OPTIONS = (
    "-mcpu", "-mtriple", "-mattr", "-num-cores", *CACHE_OPTIONS, "-vector-bits", "-vector-registers", "-core"
)  # fmt: skip
_TRIPLE = re.compile(r"(x86_64|aarch64|riscv64)-[a-z0-9_]+-(linux|none|freebsd)(-[a-z0-9_]+)?")
_WITHOUT_VENDOR = re.compile(r"([a-z0-9_]+)-((?:linux|freebsd)(?:-[a-z0-9_]+)?)")
_CPU = re.compile(r"[a-z0-9][a-z0-9._-]*")
MAX_CORES = 2**20

# Machines by name. What the processor's name says already, as its caches, is not repeated.
_MACHINES = {
    "raspberry-pi-4": {"-mcpu": "cortex-a72", "-num-cores": "4"},
    "raspberry-pi-5": {"-mcpu": "cortex-a76", "-num-cores": "4"},
    "graviton2": {"-mcpu": "neoverse-n1", "-num-cores": "64"},
    "graviton3": {"-mcpu": "neoverse-v1", "-num-cores": "64"},
    "graviton4": {"-mcpu": "neoverse-v2", "-num-cores": "96"},
}


def read_options(text: str) -> dict[str, str]:
    """The options that a text of the form `SYNTAX` gives, or that one word stands for."""
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
        options[name] = _with_vendor(value) if name == "-mtriple" else value
    return options


def _with_vendor(triple: str) -> str:
    """The triple in full; compilers are called after one without a vendor, such as aarch64-linux-gnu."""
    return _WITHOUT_VENDOR.sub(r"\1-unknown-\2", triple) if _WITHOUT_VENDOR.fullmatch(triple) else triple


def _expand_short_name(name: str) -> dict[str, str]:
    if name in CPU_FEATURES:
        return {"-mtriple": f"{name}-unknown-linux-gnu"}
    if name in _MACHINES:
        return dict(_MACHINES[name])
    if name == "native" or _arch_of(name) is not None:
        return {"-mcpu": name}
    known = ["native", *CPU_FEATURES, *_MACHINES, *_all_cpus()]
    raise CodegenError(
        f"a target of one word names a processor or an architecture; got {name!r}: {suggest(name, known)}, "
        f"or write {SYNTAX!r}"
    )


def asks_for_this_machine(options: Mapping[str, str]) -> bool:
    """Whether the processor is the one at hand: it is called native, or nothing says which it is."""
    return options.get("-mcpu", "generic" if "-mtriple" in options else "native") == "native"


def find_arch(options: Mapping[str, str]) -> str:
    """The architecture of the triple, or of the processor."""
    triple = options.get("-mtriple")
    if triple is not None:
        match = _TRIPLE.fullmatch(triple)
        if match is None:
            raise CodegenError(
                "a triple is ARCH-VENDOR-SYSTEM[-ABI] with one of the architectures x86_64, aarch64, riscv64 and the "
                f"systems linux, freebsd, none; got {triple!r}: write for example aarch64-unknown-linux-gnu"
            )
        return match[1]
    cpu = options["-mcpu"]
    arch = _arch_of(cpu)
    if arch is None:
        raise _unknown_cpu("a processor", cpu, [name for name in _all_cpus() if name != "generic"])
    return arch


def _arch_of(cpu: str) -> str | None:
    """The architecture of a processor by its name; the generic ones of all are called the same."""
    return None if cpu == "generic" else next((arch for arch, table in CPU_FEATURES.items() if cpu in table), None)


def _all_cpus() -> list[str]:
    return [cpu for table in CPU_FEATURES.values() for cpu in table]


def find_cpu(arch: str, options: Mapping[str, str]) -> str:
    """The processor's name in LLVM. One that is not known here must come with all features of its architecture."""
    cpu = options.get("-mcpu", "generic")
    if cpu == "generic":
        return GENERIC_CPU[arch]
    is_described = {change[1:] for change in options.get("-mattr", "").split(",")} >= IMPLIED[arch].keys()
    if cpu not in CPU_FEATURES[arch] and not (is_described and _CPU.fullmatch(cpu)):
        raise _unknown_cpu(f"an {arch} processor", cpu, CPU_FEATURES[arch])
    return cpu


def _unknown_cpu(kind: str, cpu: str, known: Collection[str]) -> CodegenError:
    return CodegenError(
        f"-mcpu names {kind} that is known here; got {cpu!r}: {suggest(cpu, known)}, or use the generic one of an "
        f"architecture with -mattr, such as {' or '.join(f'-mcpu={name}' for name in GENERIC_CPU.values())} "
        "with its -mtriple"
    )


def read_features(arch: str, text: str) -> tuple[str, ...]:
    """The changes that -mattr makes."""
    changes = tuple(text.split(",")) if text else ()
    for change in changes:
        if change[:1] not in ("+", "-") or change[1:] not in IMPLIED[arch]:
            raise CodegenError(
                f"-mattr lists features of {arch}, each with + or -; got {change!r} in {text!r}: "
                f"{suggest(change.lstrip('+-'), IMPLIED[arch])}"
            )
    return changes


def canonical_features(arch: str, cpu: str, changes: tuple[str, ...]) -> tuple[str, ...]:
    """The same changes in one order and without those that change nothing; of an unknown processor, all features."""
    promised = CPU_FEATURES[arch].get(cpu)
    enabled = apply_features(arch, promised or (), changes)
    if promised is None:
        return tuple(("+" if name in enabled else "-") + name for name in IMPLIED[arch])
    return feature_changes(arch, promised, {name: name in enabled for name in IMPLIED[arch]})


def read_number(options: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """The whole number that an option gives."""
    text = options.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
        raise CodegenError(
            f"{name} is a whole number, of at least {least} and at most {most}; got {text[:40]!r}: "
            f"write for example {name}={default}"
        )
    return int(text)


def read_vector_bits(options: Mapping[str, str], most: int) -> int:
    """The length of vectors: a power of two, no more than the registers have."""
    bits = read_number(options, "-vector-bits", most, min(64, most), most)
    if bits.bit_count() != 1:
        raise CodegenError(f"-vector-bits is a power of two; got {bits}: write for example -vector-bits={most}")
    return bits


def read_caches(options: Mapping[str, str], default: Caches) -> Caches:
    """The caches that options give, and the default of the others."""
    sizes = []
    for name, num_bytes in zip(CACHE_OPTIONS, default, strict=True):
        text = options.get(name)
        size = num_bytes if text is None else read_size(text)
        if size is None:
            raise CodegenError(
                f"{name} is a size in bytes, or with K, M or G; got {text!r:.60}: "
                f"write for example {name}={write_size(num_bytes)}"
            )
        sizes.append(size)
    caches = Caches(*sizes)
    if not caches.are_possible:
        raise CodegenError(
            "a cache line is a power of two, at most 4096 and no longer than the first cache, which every processor "
            f"has, and no cache exceeds 1024G; got {write_caches(caches)!r}: correct these"
        )
    return caches


def write_caches(caches: Caches) -> str:
    """The caches as options."""
    return " ".join(f"{name}={write_size(size)}" for name, size in zip(CACHE_OPTIONS, caches, strict=True))


def read_core(text: str | None) -> dict[str, float]:
    """The numbers that -core gives of a core.

    >>> read_core("window:224,mad_latency:5")
    {'window': 224.0, 'mad_latency': 5.0}
    """
    values: dict[str, float] = {}
    for part in text.split(",") if text else ():
        name, _, number = part.partition(":")
        if name in values or not re.fullmatch(r"[0-9]{1,20}(\.[0-9]{1,20})?(e[+-]?[0-9]{1,3})?", number):
            raise CodegenError(
                f"-core lists NAME:NUMBER, each name once, with commas between; got {part!r:.60}: "
                "write for example -core=loads_per_cycle:2,mad_latency:4"
            )
        values[name] = float(number)
    return values


def write_core(values: Mapping[str, float]) -> str:
    """The same as text; every number comes back as it is."""
    return ",".join(f"{name}:{_shortest(value)}" for name, value in values.items())


def _shortest(value: float) -> str:
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def suggest(name: str, known: Collection[str]) -> str:
    """What somebody who wrote `name` may have meant."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}" if near else f"use one such as {', '.join(list(known)[:8])}"
