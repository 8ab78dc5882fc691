"""Kernels written in C, compiled once, to test the runtime without the compiler."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tilewright import runtime
from tilewright.runtime import Argument, Kernel, KernelSpec

KernelMaker: TypeAlias = Callable[..., Kernel]
AddressOf: TypeAlias = Callable[[str], int]


@pytest.fixture(scope="session")
def kernel_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled kernels.c, as a shared library."""
    library = tmp_path_factory.mktemp("kernels") / "kernels.so"
    include = Path(runtime.__file__).parent / "native"
    source = Path(__file__).parent / "kernels.c"
    command = ["gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread"]
    subprocess.run([*command, f"-I{include}", str(source), "-o", str(library)], check=True)
    return library


@pytest.fixture(scope="session")
def address_of(kernel_library: Path) -> AddressOf:
    """The address of a function in kernels.c."""
    library = ctypes.CDLL(str(kernel_library))

    def find(entry: str) -> int:
        address = ctypes.cast(getattr(library, entry), ctypes.c_void_p).value
        assert address is not None
        return address

    return find


@pytest.fixture(scope="session")
def make_kernel(address_of: AddressOf) -> KernelMaker:
    """make_kernel(entry, inputs, outputs): a Kernel of a function in kernels.c."""

    def make(
        entry: str,
        inputs: tuple[Argument, ...],
        outputs: tuple[Argument, ...],
        *,
        workspace_bytes: int = 0,
        scratch_bytes: int = 0,
        num_threads: int = 1,
    ) -> Kernel:
        spec = KernelSpec(entry, inputs, outputs, address_of(entry), workspace_bytes, scratch_bytes, num_threads)
        return Kernel(spec)

    return make


@pytest.fixture(scope="session")
def add(make_kernel: KernelMaker) -> Kernel:
    """C = A + B, all float32[4, 6]."""
    shape = (4, 6)
    return make_kernel(
        "add", (Argument("A", "float32", shape), Argument("B", "float32", shape)), (Argument("C", "float32", shape),)
    )


@pytest.fixture
def run_python(kernel_library: Path) -> Callable[[str], str]:
    """Run a program in a process of its own, with `count(extent, num_threads)` at hand; returns what it prints."""
    prelude = f"""
import ctypes, os, sys, threading, time
import numpy as np
from tilewright.runtime import Argument, Kernel, KernelSpec
address = ctypes.cast(ctypes.CDLL({str(kernel_library)!r}).count, ctypes.c_void_p).value
def count(extent, num_threads, scratch_bytes=0):
    inputs, outputs = (Argument("extent", "int64", (1,)),), (Argument("counts", "int32", (extent,)),)
    kernel = Kernel(KernelSpec("count", inputs, outputs, address, 0, scratch_bytes, num_threads))
    counts = np.zeros(extent, np.int32)
    kernel(np.array([extent]), out=counts)
    return bool((counts == 1).all())
"""

    def run(program: str) -> str:
        # Newer Pythons warn that a process with threads forks, which is what is tested.
        command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", prelude + program]
        environment = os.environ | {"PYTHONPATH": str(Path(runtime.__file__).parents[2])}
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        return result.stdout

    return run
