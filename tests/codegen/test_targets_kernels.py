"""Whole kernels for many machines: those for older x86 run here, and none calls a library or a wider vector unit."""

from __future__ import annotations

import functools
import itertools
import re

import pytest

from tests.codegen.elf import MACHINE, machine, undefined_symbols
from tests.codegen.kernel_programs import PROGRAMS
from tilewright.codegen import CompiledKernel
from tilewright.codegen.native import assembly, compile_object
from tilewright.target import Target, runs_here

X86 = ["x86-64", "x86-64-v2", "nehalem", "sandybridge", "haswell"]
RISCV = ["riscv64", "llvm -mtriple=riscv64-unknown-linux-gnu -mattr=+v"]
RISCV_HALVES = "llvm -mtriple=riscv64-unknown-linux-gnu -mattr=+v,+zfhmin"
# The widest registers that each may use.
REGISTERS = {"x86-64": "xmm", "x86-64-v2": "xmm", "nehalem": "xmm", "sandybridge": "ymm", "haswell": "ymm"}


@functools.cache
def compiled(name: str, target: str) -> CompiledKernel:
    return PROGRAMS[name].compile(Target.parse(target), threads=2)


@functools.cache
def assembly_of(name: str, target: str) -> str:
    kernel = compiled(name, target)
    return assembly(kernel.generated.llvm_ir, kernel.target)


@pytest.mark.parametrize("target", X86)
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernel_for_an_older_x86_computes_what_numpy_computes(name: str, target: str) -> None:
    if not runs_here(Target.parse(target)):
        pytest.skip(f"this machine does not run code for {target}")
    PROGRAMS[name].run_here(compiled(name, target))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *itertools.product(PROGRAMS, [*X86, "aarch64", *RISCV]),
        ("gemm_float16", RISCV_HALVES),
        ("narrowing_float16", RISCV_HALVES),
    ],
)
def test_object_is_for_its_machine_and_calls_no_library(name: str, target: str) -> None:
    object_code = compiled(name, target).object_code
    assert machine(object_code) == MACHINE[Target.parse(target).arch]
    assert undefined_symbols(object_code) == set()


def test_a_call_into_a_library_would_be_seen() -> None:
    calls = """
declare float @expf(float)
define float @f(float %x) {
  %y = call float @expf(float %x)
  ret float %y
}
"""
    for target in ("x86-64", "aarch64", "riscv64"):
        assert "expf" in undefined_symbols(compile_object(calls, Target.parse(target)))


@pytest.mark.parametrize("target", X86)
@pytest.mark.parametrize("name", ["gemm", "conv2d", "softmax", "gemm_float16", "functions_float32"])
def test_vector_code_calls_only_the_runtime(name: str, target: str) -> None:
    calls = re.findall(r"^\s+callq?\s+(.*)", assembly_of(name, target), re.MULTILINE)
    assert [call for call in calls if not call.startswith("*")] == []


@pytest.mark.parametrize("target", X86)
@pytest.mark.parametrize("name", ["gemm", "conv2d", "softmax", "layer_norm", "gemm_float16"])
def test_vectors_are_as_wide_as_the_target_allows(name: str, target: str) -> None:
    widths = ["xmm", "ymm", "zmm"]
    used = [width for width in widths if f"%{width}" in assembly_of(name, target)]
    assert used[-1] == REGISTERS[target]


@pytest.mark.parametrize(
    ("name", "target", "instruction"),
    [
        ("gemm", "nehalem", r"mulps\s.*%xmm"),
        ("gemm", "sandybridge", r"vmulps\s.*%ymm"),
        ("gemm", "haswell", r"vfmadd\d+ps\s.*%ymm"),
        ("gemm", "aarch64", r"fmla\s+v\d+\.4s"),
        ("gemm", RISCV[0], r"fmadd\.s"),
        ("gemm", RISCV[1], r"vfm(acc|add)\.v[vf]"),
        ("gemm_float16", "haswell", r"vcvtph2ps\s.*%ymm"),
        ("gemm_float16", "aarch64", r"fcvtl\s+v\d+\.4s"),
        ("functions_float32", "x86-64-v2", r"roundps"),
        ("functions_float32", "haswell", r"vroundps\s.*%ymm"),
        ("functions_float32", "aarch64", r"frintm\s+v\d+\.4s"),
    ],
)
def test_kernel_uses_the_instruction_that_the_target_has(name: str, target: str, instruction: str) -> None:
    assert re.search(instruction, assembly_of(name, target))


@pytest.mark.parametrize(
    ("target", "has_rounding"),
    [("x86-64", False), ("core2", False), ("penryn", True), ("nehalem", True), ("aarch64", True), ("riscv64", True)],
)
def test_target_knows_whether_floor_is_written_in_place(target: str, has_rounding: bool) -> None:
    assert Target.parse(target).has_rounding == has_rounding
