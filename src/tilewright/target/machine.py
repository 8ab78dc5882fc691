"""What this machine is: the only place that asks the processor, LLVM and Linux about it."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tilewright.errors import CodegenError
from tilewright.target.caches import Caches, default_caches, read_size
from tilewright.target.cpus import CPU_FEATURES, IMPLIED, feature_changes

_CACHES = "sys/devices/system/cpu/cpu0/cache"
_PROCESSORS = "proc/cpuinfo"
_MAX_NAME = 100


class Machine(NamedTuple):
    """A machine as it describes itself. `changes` are made to what the processor's name promises."""

    arch: str
    cpu: str
    changes: tuple[str, ...]
    num_cores: int
    caches: Caches
    processor: str  # the name that its maker gave it; empty where nobody says


def read_machine(root: Path = Path("/")) -> Machine:
    """This machine. `root` is the folder that holds /sys and /proc."""
    arch = this_arch()
    cpu, changes = read_processor(arch)
    return Machine(arch, cpu, changes, _count_cores(), read_caches(root, default_caches(arch, cpu)), read_name(root))


def this_arch() -> str:
    """The architecture of this machine, as triples write it."""
    arch = platform.machine()
    if arch not in CPU_FEATURES:
        raise CodegenError(
            f"code is generated for {', '.join(CPU_FEATURES)}; this machine is {arch}: "
            "name a target of one of those architectures"
        )
    return arch


@lru_cache(maxsize=1)
def read_processor(arch: str) -> tuple[str, tuple[str, ...]]:
    """The processor's name, and the features that it has beside or instead of those that the name promises."""
    from llvmlite import binding

    cpu: str = binding.get_host_cpu_name()
    found: dict[str, bool] = binding.get_host_cpu_features()
    if cpu in CPU_FEATURES[arch]:
        return cpu, feature_changes(arch, CPU_FEATURES[arch][cpu], found)
    # A processor newer than our table: what its name promises is unknown, so say everything.
    return cpu, tuple(("+" if found.get(name) else "-") + name for name in IMPLIED[arch])


def _count_cores() -> int:
    return len(os.sched_getaffinity(0))


@lru_cache(maxsize=8)
def read_caches(root: Path, default: Caches) -> Caches:
    """The data caches that Linux describes; `default` where it describes none, or none that could be."""
    sizes: dict[int, int] = {}
    line_bytes = default.line_bytes
    try:
        for index in sorted((root / _CACHES).glob("index*")):
            if (index / "type").read_text().strip() != "Instruction":
                sizes[int((index / "level").read_text())] = read_size((index / "size").read_text().strip()) or 0
                line_bytes = int((index / "coherency_line_size").read_text())
    except (OSError, ValueError):
        return default
    found = Caches(sizes.get(1, 0), sizes.get(2, 0), sizes.get(3, 0), line_bytes)
    return found if found.are_possible else default


@lru_cache(maxsize=8)
def read_name(root: Path) -> str:
    """What Linux calls the processor; empty where it does not say."""
    with suppress(OSError), (root / _PROCESSORS).open(errors="replace") as lines:
        for line in lines:  # of many cores, the first will do
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "uarch"):
                return " ".join(value.split())[:_MAX_NAME]
    return ""
