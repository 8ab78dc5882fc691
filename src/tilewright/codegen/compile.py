"""From a schedule to a callable kernel. `build` is the whole way; its steps are here to look into."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.codegen import GeneratedModule, generate
from tilewright.codegen.module import SYMBOL_PREFIX
from tilewright.codegen.native import compile_object
from tilewright.ir import Module, lower
from tilewright.schedule import Schedule
from tilewright.target import Target, checked_threads
from tilewright.te import Task


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """Object code of one schedule for one target, with what is needed to run it.

    It is native code: load only what you compiled yourself or trust.
    """

    task: Task
    target: Target
    num_threads: int
    module: Module
    generated: GeneratedModule
    object_code: bytes


def compile_schedule(
    schedule: Schedule,
    target: Target | str = "llvm -mcpu=native",
    threads: int | None = None,
    symbol_prefix: str = SYMBOL_PREFIX,
) -> CompiledKernel:
    """Lower a schedule and compile it to object code, for this machine or another.

    Kernels that are linked into one library need different symbol prefixes.
    """
    chosen = Target.of(target)
    num_threads = checked_threads(threads)
    module = lower(schedule)
    generated = generate(module, chosen, num_threads, symbol_prefix)
    object_code = compile_object(generated.llvm_ir, chosen)
    return CompiledKernel(schedule.task, chosen, num_threads, module, generated, object_code)
