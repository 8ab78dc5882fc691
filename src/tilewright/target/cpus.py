"""The processors that a target may name, and the features that change what code generation emits for them.

LLVM only complains on stderr about a name it does not know, and aborts the process on a 32-bit one, so names are
checked here before LLVM sees them. Features that our code can never use (virtualization, paging, AMX tiles) are
left out: a virtual machine that hides them still runs the code. `tests/codegen/test_target.py` compares these
tables with LLVM itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Each feature that `-mattr` accepts, with those it brings along. Taking one away takes those that need it too.
IMPLIED: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "sse3": (),
        "ssse3": ("sse3",),
        "sse4.1": ("ssse3",),
        "sse4.2": ("sse4.1",),
        "popcnt": (),
        "lzcnt": (),
        "movbe": (),
        "bmi": (),
        "bmi2": (),
        "adx": (),
        "gfni": (),
        "avx": ("sse4.2",),
        "f16c": ("avx",),
        "fma": ("avx",),
        "avx2": ("avx",),
        "avxvnni": ("avx2",),
        "avxvnniint8": ("avx2",),
        "avxvnniint16": ("avx2",),
        "avxifma": ("avx2",),
        "avxneconvert": ("avx2",),
        "avx512f": ("avx2", "f16c", "fma"),
        "avx512cd": ("avx512f",),
        "avx512dq": ("avx512f",),
        "avx512bw": ("avx512f",),
        "avx512vl": ("avx512f",),
        "avx512ifma": ("avx512f",),
        "avx512vbmi": ("avx512bw",),
        "avx512vbmi2": ("avx512bw",),
        "avx512vnni": ("avx512f",),
        "avx512bitalg": ("avx512bw",),
        "avx512vpopcntdq": ("avx512f",),
        "avx512bf16": ("avx512bw",),
        "avx512fp16": ("avx512bw",),
        "avx512vp2intersect": ("avx512f",),
    },
    "aarch64": {
        "neon": (),
        "lse": (),
        "rdm": ("neon",),
        "dotprod": ("neon",),
        "fullfp16": (),
        "fp16fml": ("fullfp16",),
        "bf16": (),
        "i8mm": (),
        "sve": ("fullfp16",),
        "sve2": ("sve",),
    },
    "riscv64": {
        "m": (),
        "a": (),
        "f": (),
        "d": ("f",),
        "c": (),
        "zba": (),
        "zbb": (),
        "zbs": (),
        "zfhmin": ("f",),
        "zfh": ("zfhmin",),
        "v": ("d",),
    },
}

GENERIC_CPU = {"x86_64": "x86-64", "aarch64": "generic", "riscv64": "generic-rv64"}

_X86_LINES = """
x86-64:
core2: sse3 ssse3
penryn: core2 sse4.1
x86-64-v2 nehalem westmere: penryn sse4.2 popcnt
silvermont goldmont goldmont-plus: x86-64-v2 movbe
tremont: silvermont gfni
sandybridge: x86-64-v2 avx
ivybridge: sandybridge f16c
x86-64-v3 haswell: ivybridge lzcnt movbe bmi bmi2 fma avx2
broadwell skylake znver1 znver2 znver3: x86-64-v3 adx
gracemont alderlake raptorlake meteorlake: skylake avxvnni gfni
sierraforest grandridge arrowlake: alderlake avxvnniint8 avxifma avxneconvert
clearwaterforest arrowlake-s lunarlake pantherlake: sierraforest avxvnniint16
x86-64-v4: x86-64-v3 avx512f avx512cd avx512dq avx512bw avx512vl
skylake-avx512: x86-64-v4 adx
cascadelake: skylake-avx512 avx512vnni
cooperlake: cascadelake avx512bf16
cannonlake: skylake-avx512 avx512ifma avx512vbmi
icelake-client icelake-server rocketlake: cannonlake avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq gfni
tigerlake: icelake-client avx512vp2intersect
znver4: icelake-client avx512bf16
znver5: znver4 avxvnni avx512vp2intersect
sapphirerapids emeraldrapids graniterapids graniterapids-d: icelake-client avxvnni avx512bf16 avx512fp16
"""

_AARCH64_LINES = """
generic cortex-a34 cortex-a35 cortex-a53 cortex-a57 cortex-a72 cortex-a73 thunderx: neon
thunderx2t99: generic lse rdm
a64fx: thunderx2t99 fullfp16 sve
cortex-a55 cortex-a75 cortex-a76 cortex-a77 cortex-a78 cortex-x1 neoverse-e1 neoverse-n1: thunderx2t99 dotprod fullfp16
apple-a13 apple-a14 apple-m1 tsv110: neoverse-n1 fp16fml
ampere1 ampere1a ampere1b: neoverse-n1 bf16 i8mm
apple-a15 apple-a16 apple-a17 apple-m2 apple-m3 apple-m4 oryon-1: apple-m1 bf16 i8mm
neoverse-v1 neoverse-512tvb: apple-m2 sve
neoverse-n2 neoverse-n3 neoverse-v2 neoverse-v3 grace cobalt-100 gb10: neoverse-v1 sve2
cortex-a510 cortex-a520 cortex-a710 cortex-a715 cortex-a720 cortex-a725: neoverse-n2
cortex-x2 cortex-x3 cortex-x4 cortex-x925: neoverse-n2
"""

# LLVM's generic-rv64 has none of these; Linux distributions require them (rv64gc), so a target always asks for them.
RISCV_BASELINE = ("m", "a", "f", "d", "c")

_RISCV_LINES = """
generic-rv64: m a f d c
sifive-x280: generic-rv64 zba zbb zfhmin zfh v
spacemit-x60 tt-ascalon-d8: sifive-x280 zbs
"""


def _parse(lines: str) -> dict[str, frozenset[str]]:
    """Read `names: features`, where a name of an earlier line stands for that processor's features."""
    table: dict[str, frozenset[str]] = {}
    for line in lines.strip().splitlines():
        names, _, words = line.partition(":")
        features: set[str] = set()
        for word in words.split():
            features |= table.get(word, frozenset((word,)))
        table.update(dict.fromkeys(names.split(), frozenset(features)))
    return table


CPU_FEATURES: dict[str, dict[str, frozenset[str]]] = {
    "x86_64": _parse(_X86_LINES),
    "aarch64": _parse(_AARCH64_LINES),
    "riscv64": _parse(_RISCV_LINES),
}


def apply_features(arch: str, enabled: Iterable[str], changes: Iterable[str]) -> frozenset[str]:
    """The features left on after `changes` ("+avx2", "-fma"), applied in order as LLVM does.

    >>> sorted(apply_features("x86_64", ["sse3", "ssse3"], ["-sse3", "+movbe"]))
    ['movbe']
    """
    implied = IMPLIED[arch]
    result = set(enabled)
    for change in changes:
        sign, name = change[0], change[1:]
        if sign == "+":
            result |= _closure(implied, name)
        else:
            result = {feature for feature in result if name not in _closure(implied, feature)}
    return frozenset(result)


def feature_changes(arch: str, enabled: Iterable[str], wanted: Mapping[str, bool]) -> tuple[str, ...]:
    """The fewest changes ("+fma", "-avx2") that turn `enabled` into `wanted`; features it does not name stay.

    >>> feature_changes("x86_64", ["sse3", "ssse3", "popcnt"], {"sse3": False, "ssse3": False, "movbe": True})
    ('-sse3', '+movbe')
    """
    changes: list[str] = []
    current = frozenset(enabled)
    for feature in IMPLIED[arch]:  # what a feature needs comes before it, so one change covers all that follows
        if wanted.get(feature, feature in current) != (feature in current):
            changes.append(("-" if feature in current else "+") + feature)
            current = apply_features(arch, current, changes[-1:])
    return tuple(changes)


def _closure(implied: Mapping[str, tuple[str, ...]], feature: str) -> set[str]:
    result = {feature}
    for needed in implied.get(feature, ()):
        result |= _closure(implied, needed)
    return result
