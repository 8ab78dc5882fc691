"""Sums of products of bytes are the instruction that a target has for them."""

from __future__ import annotations

import pytest

from tests.codegen.kernel_programs import PROGRAMS
from tilewright.codegen.native import assembly
from tilewright.target import Target, runs_here

# The instruction that multiplies, for each way there is.
INSTRUCTIONS = {
    "znver4": "vpdpbusd",
    "alderlake": "vpdpbusd",
    "skylake-avx512": "vpmaddwd",
    "haswell": "vpmaddwd",
    "nehalem": "pmaddwd",
    "llvm -mcpu=neoverse-v1 -mtriple=aarch64-unknown-linux-gnu": "usdot",
    "llvm -mcpu=neoverse-n1 -mtriple=aarch64-unknown-linux-gnu": "sdot",
    "llvm -mcpu=cortex-a72 -mtriple=aarch64-unknown-linux-gnu": "mla",
}


@pytest.mark.parametrize("target", INSTRUCTIONS)
def test_words_are_multiplied_by_one_instruction(target: str) -> None:
    compiled = PROGRAMS["gemm_words"].compile(Target.parse(target), threads=1)
    assert INSTRUCTIONS[target] in assembly(compiled.generated.llvm_ir, compiled.target)
    if runs_here(compiled.target):
        PROGRAMS["gemm_words"].run_here(compiled)


def test_words_of_a_population_cost_what_floats_do() -> None:
    """So that the models that have learned from floats know them."""
    from tilewright.features.operations import count_operations

    schedule = PROGRAMS["gemm_words"].schedule(Target.parse("znver4"), 1)
    assert {kind: n for kind, n in count_operations(schedule["C"]).items() if n} == {"float_mad": 1}
