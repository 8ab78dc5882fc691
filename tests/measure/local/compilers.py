"""Compilers that do their worst on a trace without steps, and compile every other trace as usual.

They run in builder processes, which find them by name.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tilewright.codegen import Entry, KernelBinary
from tilewright.codegen.native import compile_object
from tilewright.errors import CodegenError
from tilewright.measure.compiler import Compiler, compile_trace
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import Task

LOOPS_FOR_EVER = """
define i32 @kernel(ptr %rt, ptr %args, ptr %workspace) {
entry:
  br label %loop
loop:
  br label %loop
}
"""
WRITES_TO_NOWHERE = """
define i32 @kernel(ptr %rt, ptr %args, ptr %workspace) {
  store volatile i32 1, ptr inttoptr (i64 8 to ptr)
  ret i32 0
}
"""
ABORTS = """
declare void @abort()
define i32 @kernel(ptr %rt, ptr %args, ptr %workspace) {
  call void @abort()
  ret i32 0
}
"""
EXITS = """
declare void @_exit(i32)
define i32 @kernel(ptr %rt, ptr %args, ptr %workspace) {
  call void @_exit(i32 7)
  ret i32 0
}
"""
WRITES_ONE_ELEMENT = """
define i32 @kernel(ptr %rt, ptr %args, ptr %workspace) {
  %slot = getelementptr ptr, ptr %args, i64 1
  %out = load ptr, ptr %slot
  store float 3.0, ptr %out
  ret i32 0
}
"""
FAILS = """
define i32 @kernel(ptr %rt, ptr %args, ptr %workspace) {
  ret i32 5
}
"""
SPOILS_ITS_INPUT_SLOWLY = """
define i32 @kernel(ptr %rt, ptr %args, ptr %workspace) {
entry:
  %in = load ptr, ptr %args
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  store volatile float 1.0e9, ptr %in
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, 50000000
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
"""


def _with_kernel(llvm_ir: str) -> Compiler:
    def compile_candidate(task: Task, trace: Trace, target: Target, threads: int) -> KernelBinary:
        if trace.steps:
            return compile_trace(task, trace, target, threads)
        return KernelBinary(compile_object(llvm_ir, target), Entry("kernel", 0, 0))

    return compile_candidate


def _with_action(act: Callable[[], object]) -> Compiler:
    def compile_candidate(task: Task, trace: Trace, target: Target, threads: int) -> KernelBinary:
        if not trace.steps:
            act()
        return compile_trace(task, trace, target, threads)

    return compile_candidate


def _sleep() -> NoReturn:
    while True:
        time.sleep(60)


def _kill_itself() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def _kill_itself_once() -> None:
    path = Path(os.environ["TILEWRIGHT_TEST_ONCE"])
    if not path.exists():
        path.touch()
        _kill_itself()


def _die_with_words() -> NoReturn:
    os.write(2, b"cannot select this instruction\n")
    os.abort()


def _reject() -> NoReturn:
    raise CodegenError("no code for that")


def _make_a_mistake() -> NoReturn:
    raise KeyError("a mistake in the compiler")


loops_for_ever = _with_kernel(LOOPS_FOR_EVER)
writes_to_nowhere = _with_kernel(WRITES_TO_NOWHERE)
aborts = _with_kernel(ABORTS)
exits = _with_kernel(EXITS)
writes_one_element = _with_kernel(WRITES_ONE_ELEMENT)
fails = _with_kernel(FAILS)
spoils_its_input_slowly = _with_kernel(SPOILS_ITS_INPUT_SLOWLY)
hangs = _with_action(_sleep)
is_killed = _with_action(_kill_itself)
is_killed_once = _with_action(_kill_itself_once)
dies_with_words = _with_action(_die_with_words)
rejects = _with_action(_reject)
makes_a_mistake = _with_action(_make_a_mistake)
