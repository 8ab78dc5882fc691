"""Runs a cross-compiled kernel under qemu's user-mode emulation, with NumPy arrays in and out."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tilewright

Array = npt.NDArray[Any]

_PACKAGE = Path(tilewright.__file__).parent
_MAIN = _PACKAGE / "measure" / "fleet" / "emulated_main.c"
_RUNTIME_HEADERS = _PACKAGE / "runtime" / "native"
_TIMEOUT_S = 120
# Without a choice qemu emulates all of aarch64, but of riscv64 not the vectors.
_EMULATED_CPU = {"riscv64": "rv64,v=true"}


def run_under_qemu(
    object_code: bytes,
    symbol: str,
    inputs: Sequence[Array],
    outputs: Sequence[tuple[tuple[int, ...], npt.DTypeLike]],
    *,
    workspace_bytes: int = 0,
    scratch_bytes: int = 0,
    arch: str = "aarch64",
) -> list[Array]:
    """Call the kernel `symbol` of `object_code` with `inputs` and then outputs of the given shapes and types.

    Returns the outputs. A missing emulator or compiler fails the test: deselect these with `-m "not qemu"`.
    """
    compiler = _require(f"{arch}-linux-gnu-gcc", f"gcc-{arch}-linux-gnu and its C library")
    emulator = _require(f"qemu-{arch}", "qemu-user")
    # All bits set is a NaN in every float type: an element that was not written is seen.
    blank = [np.full(int(np.prod(shape)) * np.dtype(dtype).itemsize, 0xFF, np.uint8) for shape, dtype in outputs]
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "kernel.o").write_bytes(object_code)
        (folder / "input").write_bytes(_pack([*inputs, *blank], workspace_bytes, scratch_bytes))
        program = folder / "program"
        _run(compiler, "-O1", "-Wall", "-static", f"-DKERNEL={symbol}", f"-I{_RUNTIME_HEADERS}", "-o", str(program),
             str(_MAIN), str(folder / "kernel.o"))  # fmt: skip
        cpu = ["-cpu", _EMULATED_CPU[arch]] if arch in _EMULATED_CPU else []
        _run(emulator, *cpu, str(program), str(folder / "input"), str(folder / "output"), "0", "0")
        data = (folder / "output").read_bytes()
    offset = sum(array.nbytes for array in inputs)
    results: list[Array] = []
    for shape, dtype in outputs:
        count = int(np.prod(shape))
        results.append(np.frombuffer(data, dtype, count, offset).reshape(shape))
        offset += results[-1].nbytes
    return results


def _pack(arguments: Sequence[Array], workspace_bytes: int, scratch_bytes: int) -> bytes:
    parts = [np.array([len(arguments), workspace_bytes, scratch_bytes], np.int64).tobytes()]
    for array in arguments:
        parts += [np.int64(array.nbytes).tobytes(), array.tobytes()]
    return b"".join(parts)


def _require(program: str, package: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.fail(f"{program} is not installed; install {package}, or deselect these tests with -m 'not qemu'")
    return path


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
