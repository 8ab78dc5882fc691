"""Callable kernels: of a schedule, which is compiled, or of what was compiled before, maybe in another process."""

from __future__ import annotations

from tilewright.codegen.binary import KernelBinary, PackedInput
from tilewright.codegen.compile import CompiledKernel, compile_schedule
from tilewright.codegen.native import LoadedObject
from tilewright.errors import CodegenError, UsageError
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.spec import Argument, KernelSpec, PackSpec
from tilewright.schedule import Schedule
from tilewright.target import Target, runs_here
from tilewright.te import Task


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
    return load(compile_schedule(plan, target, threads))


def load(compiled: CompiledKernel) -> Kernel:
    """A callable kernel in this process."""
    if not runs_here(compiled.target):
        raise CodegenError(
            f"code for target {compiled.target} cannot run on this machine; use target='llvm -mcpu=native' to run here"
        )
    return load_binary(KernelBinary.of(compiled), compiled.task, compiled.num_threads)


def load_binary(binary: KernelBinary, task: Task, threads: int) -> Kernel:
    """A callable kernel for `task` in this process."""
    loaded = LoadedObject(binary.object_code, *binary.parts)
    packed = {pack.position: _pack_spec(pack, loaded) for pack in binary.packs}
    return Kernel(
        KernelSpec(
            name=task.name,
            inputs=tuple(
                Argument(t.name, t.dtype, t.shape, t.is_constant, packed.get(position))
                for position, t in enumerate(task.inputs)
            ),
            outputs=tuple(Argument(t.name, t.dtype, t.shape) for t in task.outputs),
            entry_address=loaded.address(binary.entry.symbol),
            workspace_bytes=binary.entry.workspace_bytes,
            scratch_bytes=binary.entry.scratch_bytes,
            num_threads=threads,
            keepalive=loaded,
        )
    )


def _pack_spec(pack: PackedInput, loaded: LoadedObject) -> PackSpec:
    return PackSpec(
        entry_address=loaded.address(pack.entry.symbol),
        shape=pack.shape,
        dtype=pack.dtype,
        workspace_bytes=pack.entry.workspace_bytes,
        scratch_bytes=pack.entry.scratch_bytes,
        nbytes=pack.nbytes,
    )
