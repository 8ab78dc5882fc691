"""What the figures depend on: the processor and the versions of the libraries. Names no host and no path."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import tilewright

VECTOR_FEATURES = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512vl", "amx_tile", "asimd", "sve", "sve2")


def describe_machine(libraries: Sequence[str] = ("torch",)) -> dict[str, str]:
    """A short description, in the order in which it is printed. `libraries` are those that are compared with."""
    cpuinfo = _cpuinfo()
    features = set((cpuinfo.get("flags") or cpuinfo.get("Features") or "").split())
    return {
        "processor": cpuinfo.get("model name", platform.machine()),
        "cores": str(len(os.sched_getaffinity(0))),
        "vector features": " ".join(f for f in VECTOR_FEATURES if f in features),
        "python": platform.python_version(),
        "tilewright": tilewright.__version__,
        "llvm": _llvm_version(),
        "numpy": version("numpy"),
        "openblas": _openblas_version(),
    } | {library: _installed_version(library) for library in libraries}


def _cpuinfo() -> dict[str, str]:
    """The first processor's entries; all are the same on the machines that matter here."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text().split("\n\n")[0]
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _llvm_version() -> str:
    from llvmlite import binding

    return ".".join(map(str, binding.llvm_version_info))


def _openblas_version() -> str:
    from threadpoolctl import threadpool_info

    found = [f"{pool['version']} ({pool['architecture']})" for pool in threadpool_info() if pool["user_api"] == "blas"]
    return found[0] if found else "not loaded"


def _installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
