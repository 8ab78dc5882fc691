"""Whole kernels for other machines compute under qemu what NumPy computes."""

from __future__ import annotations

import shutil

import pytest

from tests.codegen.kernel_programs import PROGRAMS
from tilewright.target import Target

pytestmark = pytest.mark.qemu

RISCV_VECTORS = "llvm -mtriple=riscv64-unknown-linux-gnu -mattr=+v"
HAS_RISCV_COMPILER = shutil.which("riscv64-linux-gnu-gcc") is not None


@pytest.mark.parametrize("name", PROGRAMS)
def test_aarch64_kernel_computes_what_numpy_computes(name: str) -> None:
    program = PROGRAMS[name]
    program.run_emulated(program.compile(Target.parse("aarch64"), threads=2))


@pytest.mark.parametrize("name", ["gemm", "conv2d"])
def test_aarch64_kernel_without_threads_computes_what_numpy_computes(name: str) -> None:
    program = PROGRAMS[name]
    program.run_emulated(program.compile(Target.parse("aarch64"), threads=1))


@pytest.mark.parametrize("name", ["gemm", "gemm_float16", "softmax", "narrowing_float16"])
def test_kernel_for_a_newer_aarch64_computes_what_numpy_computes(name: str) -> None:
    program = PROGRAMS[name]
    program.run_emulated(program.compile(Target.parse("neoverse-v1"), threads=2))


@pytest.mark.skipif(not HAS_RISCV_COMPILER, reason="needs the Debian package gcc-riscv64-linux-gnu")
@pytest.mark.parametrize("target", ["riscv64", RISCV_VECTORS])
@pytest.mark.parametrize("name", ["gemm", "conv2d", "softmax", "functions_float32", "narrowing_float16"])
def test_riscv64_kernel_computes_what_numpy_computes(name: str, target: str) -> None:
    program = PROGRAMS[name]
    program.run_emulated(program.compile(Target.parse(target), threads=2))
