"""The caches of processors: sizes as people write them, and what is assumed where nobody says."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_CACHE_BYTES = 2**40
MAX_LINE_BYTES = 4096

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


class Caches(NamedTuple):
    """Bytes of the data caches that one core can use, shared ones as a whole; 0 is a level that does not exist."""

    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    line_bytes: int

    @property
    def are_possible(self) -> bool:
        """Whether a machine could have them."""
        is_line = 0 < self.line_bytes <= min(self.l1_bytes, MAX_LINE_BYTES) and self.line_bytes.bit_count() == 1
        return is_line and all(0 <= size <= MAX_CACHE_BYTES for size in self[:3])


def read_size(text: str) -> int | None:
    """Bytes of a size such as 512, 32K or 2M; None where it is none.

    >>> read_size("48K"), read_size("two")
    (49152, None)
    """
    match = re.fullmatch(r"([0-9]{1,13})([KMG]?)", text)
    return int(match[1]) * _UNITS[match[2]] if match else None


def write_size(num_bytes: int) -> str:
    """The same size with the largest unit that leaves it whole.

    >>> write_size(1536 * 2**10), write_size(100), write_size(0)
    ('1536K', '100', '0')
    """
    unit = next(u for u in reversed(_UNITS) if num_bytes and num_bytes % _UNITS[u] == 0) if num_bytes else ""
    return f"{num_bytes // _UNITS[unit]}{unit}"


def default_caches(arch: str, cpu: str) -> Caches:
    """Those of the processor, or of a small one of its architecture."""
    return _KNOWN[arch].get(cpu, _SMALL[arch])


# A small core of each architecture: better to block for too little cache than for too much.
_SMALL = {
    "x86_64": Caches(32 * 2**10, 256 * 2**10, 8 * 2**20, 64),
    "aarch64": Caches(32 * 2**10, 512 * 2**10, 4 * 2**20, 64),
    "riscv64": Caches(32 * 2**10, 512 * 2**10, 2 * 2**20, 64),
}

# From the vendors' manuals: first, second and third cache. The last one, which cores share, is that of a small product.
_X86_LINES = """
znver1: 32K 512K 8M
znver2: 32K 512K 16M
znver3: 32K 512K 32M
znver4: 32K 1M 32M
znver5: 48K 1M 32M
skylake-avx512 cascadelake cooperlake: 32K 1M 11M
icelake-client rocketlake: 48K 512K 8M
icelake-server: 48K 1280K 12M
tigerlake: 48K 1280K 8M
alderlake: 48K 1280K 12M
raptorlake meteorlake: 48K 2M 12M
sapphirerapids emeraldrapids graniterapids graniterapids-d: 48K 2M 15M
"""
_AARCH64_LINES = """
cortex-a53: 32K 512K 0
cortex-a72: 32K 1M 0
cortex-a76: 64K 512K 2M
neoverse-n1 neoverse-v1: 64K 1M 32M
neoverse-n2 cobalt-100: 64K 1M 32M
neoverse-v2: 64K 2M 36M
grace: 64K 1M 114M
apple-m1: 128K 12M 8M 128
apple-m2: 128K 16M 8M 128
a64fx: 64K 8M 0 256
"""
_RISCV_LINES = """
spacemit-x60: 32K 512K 0
"""


def _parse(lines: str) -> dict[str, Caches]:
    """Read `names: l1 l2 l3 [line]`."""
    table: dict[str, Caches] = {}
    for line in lines.strip().splitlines():
        names, _, words = line.partition(":")
        l1, l2, l3, line_bytes = (int(read_size(word) or 0) for word in (*words.split(), "64")[:4])
        table.update(dict.fromkeys(names.split(), Caches(l1, l2, l3, line_bytes)))
    return table


_KNOWN = {"x86_64": _parse(_X86_LINES), "aarch64": _parse(_AARCH64_LINES), "riscv64": _parse(_RISCV_LINES)}
