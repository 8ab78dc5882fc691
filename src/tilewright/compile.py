"""From a schedule to a callable kernel. `build` is the whole way; its steps are here to look into."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.codegen import GeneratedModule, Target, generate
from tilewright.codegen.native import LoadedObject, compile_object
from tilewright.errors import CodegenError
from tilewright.ir import Module, lower
from tilewright.runtime import Argument, Kernel, KernelSpec, PackSpec, default_threads
from tilewright.schedule import Schedule
from tilewright.task import Task
from tilewright.te import DTYPES


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
        loaded = LoadedObject(self.object_code)
        kernel = self.generated.kernel
        spec = KernelSpec(
            name=self.task.name,
            inputs=self._inputs(loaded),
            outputs=tuple(Argument(t.name, t.dtype, t.shape) for t in self.task.outputs),
            entry_address=loaded.address(kernel.symbol),
            workspace_bytes=kernel.workspace_bytes,
            scratch_bytes=kernel.scratch_bytes,
            num_threads=self.num_threads,
            keepalive=loaded,
        )
        return Kernel(spec)

    def _inputs(self, loaded: LoadedObject) -> tuple[Argument, ...]:
        packed: dict[int, PackSpec] = {}
        for pack, entry in zip(self.module.packs, self.generated.packs, strict=True):
            buffer = pack.packed
            packed[pack.position] = PackSpec(
                entry_address=loaded.address(entry.symbol),
                shape=buffer.shape,
                dtype=buffer.dtype,
                workspace_bytes=entry.workspace_bytes,
                scratch_bytes=entry.scratch_bytes,
                nbytes=buffer.num_elements * DTYPES[buffer.dtype].bytes,
            )
        return tuple(
            Argument(t.name, t.dtype, t.shape, t.is_constant, packed.get(position))
            for position, t in enumerate(self.task.inputs)
        )


def compile_schedule(
    schedule: Schedule, target: Target | str = "llvm -mcpu=native", threads: int | None = None
) -> CompiledKernel:
    """Lower a schedule and compile it to object code, for this machine or another."""
    if not isinstance(target, Target | str):
        raise CodegenError(f"target is {target!r}; use a string such as 'llvm -mcpu=native', or a tw.Target")
    chosen = Target.parse(target) if isinstance(target, str) else target
    num_threads = default_threads() if threads is None else _check_threads(threads)
    module = lower(schedule)
    generated = generate(module, chosen, num_threads)
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
        raise CodegenError(f"build takes a tw.Schedule or a tw.Task, got {type(schedule).__name__}")
    return compile_schedule(plan, target, threads).load()


def _check_threads(threads: object) -> int:
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise CodegenError(f"threads is {threads!r}; it must be a whole number of at least 1")
    return threads
