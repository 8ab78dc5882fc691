"""Code for other machines: it compiles for all of them, and that of aarch64 computes the right thing under qemu."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.qemu import run_under_qemu
from tests.codegen.sample_ir import ADD_KERNEL, SCALE_KERNEL
from tilewright.codegen.native import assembly, compile_object
from tilewright.target import Target

ELF_MACHINE = {"x86_64": 62, "aarch64": 183, "riscv64": 243}


@pytest.mark.parametrize(
    "text", ["x86-64-v2", "nehalem", "haswell", "znver4", "aarch64", "neoverse-v1", "riscv64", "spacemit-x60"]
)
def test_object_is_for_the_architecture_of_the_target(text: str) -> None:
    target = Target.parse(text)
    object_code = compile_object(ADD_KERNEL, target)
    assert object_code[:4] == b"\x7fELF"
    assert int.from_bytes(object_code[18:20], "little") == ELF_MACHINE[target.arch]


def test_aarch64_uses_fused_vector_instructions() -> None:
    assert "fmla" in assembly(ADD_KERNEL, Target.parse("aarch64"))


def test_riscv_passes_doubles_in_registers() -> None:
    flags = int.from_bytes(compile_object(ADD_KERNEL, Target.parse("riscv64"))[48:52], "little")
    assert flags & 0x6 == 0x4, "EF_RISCV_FLOAT_ABI_DOUBLE"


@pytest.mark.qemu
def test_aarch64_kernel_computes_what_numpy_computes() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 64), np.float32)
    (result,) = run_under_qemu(
        compile_object(ADD_KERNEL, Target.parse("aarch64")), "kernel", [a, b, c], [((64,), np.float32)]
    )
    np.testing.assert_allclose(result, a * b + c, rtol=1e-6, atol=1e-6)


@pytest.mark.qemu
def test_aarch64_kernel_calls_back_into_the_runtime() -> None:
    x = np.arange(1000, dtype=np.float64)
    (result,) = run_under_qemu(
        compile_object(SCALE_KERNEL, Target.parse("aarch64")),
        "kernel",
        [x],
        [((1000,), np.float64)],
        workspace_bytes=8,
        scratch_bytes=8,
    )
    np.testing.assert_array_equal(result, x * 2.5)


@pytest.mark.qemu
def test_a_write_outside_an_argument_is_reported() -> None:
    outside = """
define i32 @kernel(ptr %rt, ptr %args, ptr %workspace) nounwind {
  %out = load ptr, ptr %args
  %end = getelementptr i8, ptr %out, i64 16
  store i8 0, ptr %end
  ret i32 0
}
"""
    with pytest.raises(pytest.fail.Exception, match="wrote outside an argument"):
        run_under_qemu(compile_object(outside, Target.parse("aarch64")), "kernel", [], [((4,), np.float32)])
