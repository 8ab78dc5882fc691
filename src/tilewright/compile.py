"""From a schedule to a callable kernel. `build` is the whole way; its steps are here to look into."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.binary import KernelBinary
from tilewright.codegen import GeneratedModule, Target, generate
from tilewright.codegen.module import SYMBOL_PREFIX
from tilewright.codegen.native import compile_object
from tilewright.errors import CodegenError, UsageError
from tilewright.ir import Module, lower
from tilewright.runtime import Kernel, checked_threads
from tilewright.schedule import Schedule
from tilewright.task import Task


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

    def load(self) -> Kernel:
        """A callable kernel in this process."""
        if not self.target.is_native:
            raise CodegenError(
                f"code for target {self.target} cannot run on this machine; use target='llvm -mcpu=native' to run here"
            )
        return KernelBinary.of(self).load(self.task, self.num_threads)


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


def build(schedule: Schedule | Task, target: Target | str = "llvm -mcpu=native", threads: int | None = None) -> Kernel:
    """A callable kernel for a schedule, on up to `threads` threads (all cores by default).

    >>> import numpy as np, tilewright as tw
    >>> from tilewright import te
    >>> A = te.placeholder((4,), name="A")
    >>> B = te.compute((4,), lambda i: A[i] * A[i] + 1.0, name="B")
    >>> kernel = tw.build(tw.Schedule(tw.Task([A], [B])))
    >>> kernel(np.arange(4, dtype=np.float32))
    array([ 1.,  2.,  5., 10.], dtype=float32)
    """
    plan = Schedule(schedule) if isinstance(schedule, Task) else schedule
    if not isinstance(plan, Schedule):
        raise UsageError(f"build takes a tw.Schedule or a tw.Task, got {type(schedule).__name__}")
    return compile_schedule(plan, target, threads).load()
