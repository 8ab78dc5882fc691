"""LLVM IR to object code and into the process: quality of the code, loading, releasing, errors."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding

from tests.codegen.sample_ir import ADD_KERNEL, gemm_tile
from tilewright import CodegenError
from tilewright.codegen import native
from tilewright.codegen.native import LoadedObject, assembly, compile_object, optimized_ir
from tilewright.target import Target
from tilewright.target.cpus import IMPLIED

NATIVE = Target.native()

MEMSET = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @fill(ptr %p, i64 %n) nounwind {
  call void @llvm.memset.p0.i64(ptr %p, i8 7, i64 %n, i1 false)
  ret void
}
"""

CALLS_UNKNOWN = """
declare void @no_such_function()
define void @f() nounwind {
  call void @no_such_function()
  ret void
}
"""


def constant_function(value: int) -> bytes:
    return compile_object(f"define i32 @value() nounwind {{\n  ret i32 {value}\n}}", NATIVE)


def call(loaded: LoadedObject, symbol: str) -> int:
    result: int = ctypes.CFUNCTYPE(ctypes.c_int32)(loaded.address(symbol))()
    return result


# --- the code ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "register"), [("haswell", "ymm"), ("skylake-avx512", "zmm"), ("znver4", "zmm")])
def test_accumulators_stay_in_registers_and_use_fma(text: str, register: str) -> None:
    target = Target.parse(text)
    num_rows, lanes = (6, 8) if register == "ymm" else (14, 16)
    loop = _innermost_loop(assembly(gemm_tile(num_rows, 2, lanes), target))
    fused = [line for line in loop if line.startswith("vfmadd")]
    assert len(fused) == num_rows * 2
    assert all(register in line for line in fused)
    assert not any("rsp" in line for line in loop), "spilled to the stack"


def test_target_without_fma_multiplies_and_adds() -> None:
    text = assembly(gemm_tile(4, 2, 4), Target.parse("nehalem"))
    assert "vfmadd" not in text
    assert "mulps" in text
    assert "addps" in text


def test_allocas_are_gone_after_the_passes() -> None:
    text = optimized_ir(gemm_tile(6, 2, 8), Target.parse("haswell"))
    assert "alloca" not in text
    assert 'target triple = "x86_64-unknown-linux-gnu"' in text
    assert "target datalayout" in text


def test_tile_computes_what_numpy_computes() -> None:
    lanes, depth = NATIVE.lanes("float32"), 50
    loaded = LoadedObject(compile_object(gemm_tile(5, 2, lanes), NATIVE))
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(loaded.address("gemm"))
    rng = np.random.default_rng(0)
    a = rng.standard_normal((depth, 5), np.float32)
    b = rng.standard_normal((depth, 2 * lanes), np.float32)
    c = np.full((5, 2 * lanes), np.nan, np.float32)
    function(a.ctypes.data, b.ctypes.data, c.ctypes.data, depth)
    np.testing.assert_allclose(c, a.T @ b, rtol=1e-4, atol=1e-4)


# --- loading ----------------------------------------------------------------------------------------------


def test_objects_may_define_the_same_names() -> None:
    loaded = [LoadedObject(constant_function(value)) for value in (11, 22, 33)]
    assert [call(item, "value") for item in loaded] == [11, 22, 33]
    assert loaded[0].address("value") == loaded[0].address("value")


def test_library_functions_of_the_process_are_found() -> None:
    loaded = LoadedObject(compile_object(MEMSET, NATIVE))
    data = np.zeros(10, np.uint8)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.address("fill"))(data.ctypes.data, 6)
    assert data.tolist() == [7] * 6 + [0] * 4


def test_memory_is_released_with_the_object() -> None:
    object_code = constant_function(1)
    for _ in range(3):
        LoadedObject(object_code).address("value")
    gc.collect()
    before = _executable_bytes()
    kept = [LoadedObject(object_code) for _ in range(20)]
    assert {call(item, "value") for item in kept} == {1}
    assert _executable_bytes() > before
    del kept
    gc.collect()
    assert _executable_bytes() <= before


def test_threads_compile_and_load_at_the_same_time() -> None:
    results: dict[int, list[int]] = {}

    def work(number: int) -> None:
        results[number] = [call(LoadedObject(constant_function(number * 100 + i)), "value") for i in range(20)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [number * 100 + i for i in range(20)] for number in range(4)}


def test_interpreter_exits_cleanly_with_objects_loaded() -> None:
    program = (
        "from tilewright.codegen.native import LoadedObject, compile_object\n"
        "from tilewright.target.target import Target\n"
        "kept = LoadedObject(compile_object('define void @f() nounwind { ret void }', Target.native()))\n"
        "kept.address('f')\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- errors -----------------------------------------------------------------------------------------------


def test_parse_error_shows_the_lines_around_it() -> None:
    text = "define i32 @f(i32 %x) {\n  %y = add i32 %x, 1\n  %z = fadd i32 %y, %y\n  ret i32 %z\n}\n"
    with pytest.raises(CodegenError, match=r"invalid operand type.*(?s:.*)>     3    %z = fadd i32 %y, %y\n      4  "):
        compile_object(text, NATIVE)


def test_invalid_module_is_refused() -> None:
    text = (
        "define i32 @f(i1 %c) {\n  br i1 %c, label %a, label %b\na:\n  %x = add i32 1, 1\n  br label %b\n"
        "b:\n  ret i32 %x\n}\n"
    )
    with pytest.raises(CodegenError, match="does not dominate all uses"):
        assembly(text, NATIVE)


def test_unknown_symbol_is_named() -> None:
    with pytest.raises(CodegenError, match="'other'.*Symbols not found"):
        LoadedObject(constant_function(1)).address("other")


def test_call_of_a_missing_function_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    loaded = LoadedObject(compile_object(CALLS_UNKNOWN, NATIVE))
    with pytest.raises(CodegenError, match="call only functions that this process has"):
        loaded.address("f")
    assert capfd.readouterr().err == ""


def test_bytes_that_are_no_object_are_refused() -> None:
    with pytest.raises(CodegenError, match="got bytes that begin b'not an o': compile for the native target"):
        LoadedObject(b"not an object file")


def test_truncated_object_is_refused() -> None:
    with pytest.raises(CodegenError, match="must be whole"):
        LoadedObject(constant_function(1)[:100])


def test_object_of_another_architecture_is_refused() -> None:
    other = "aarch64" if NATIVE.arch != "aarch64" else "riscv64"
    with pytest.raises(CodegenError, match=f"got one of {other}"):
        LoadedObject(compile_object(ADD_KERNEL, Target.parse(other)))


def _innermost_loop(assembly_text: str) -> list[str]:
    """The instructions from the label that a conditional jump goes back to, up to that jump."""
    lines = [line.strip() for line in assembly_text.splitlines()]
    for end, line in enumerate(lines):
        jump = re.match(r"j[a-z]+\s+(\.LBB\S+)", line)
        if jump and any(text.startswith(jump[1] + ":") for text in lines[:end]):
            start = next(n for n, text in enumerate(lines) if text.startswith(jump[1] + ":"))
            return [text for text in lines[start + 1 : end + 1] if text and not text.startswith((".", "#"))]
    raise AssertionError(f"no loop in:\n{assembly_text}")


def _executable_bytes() -> int:
    """Of this process; mappings next to each other are one, so that their number says less."""
    total = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, access = line.split()[:2]
        if "x" in access:
            begin, end = (int(number, 16) for number in place.split("-"))
            total += end - begin
    return total


def test_a_processor_that_is_not_known_is_left_to_machines_that_have_it() -> None:
    features = ",".join("-" + name for name in IMPLIED["x86_64"])
    unknown = Target.parse(f"llvm -mcpu=i386 -mtriple=x86_64-unknown-linux-gnu -mattr={features}")
    with pytest.raises(CodegenError, match="got 'i386': compile there"):  # LLVM would end this process
        compile_object(ADD_KERNEL, unknown)


def test_a_long_block_for_aarch64_is_compiled_to_the_same_code_as_with_llvms_own_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those take seconds for blocks of thousands of accesses; they are set back for what is compiled later."""
    target = Target.parse("aarch64")
    lines = [f"  %p{i} = getelementptr float, ptr %a, i64 {i}\n  %x{i} = load float, ptr %p{i}\n  %y{i} = fadd float "
             f"%x{i}, %x{i}\n  store float %y{i}, ptr %p{i}" for i in range(500)]  # fmt: skip
    text = "\n".join(["define void @long(ptr %a) {", *lines, "  ret void", "}"])
    given: list[str] = []
    set_option = binding.set_option

    def noted(name: str, option: str) -> None:
        given.append(option)
        set_option(name, option)

    monkeypatch.setattr(binding, "set_option", noted)
    quick = compile_object(text, target)
    assert given == ["-aarch64-use-aa=false", "-aarch64-use-aa=true"]
    monkeypatch.setattr(native, "_LONG_BLOCK", 10_000)
    assert compile_object(text, target) == quick
    assert len(given) == 2
