"""A compiled kernel as plain data, to send from the process that compiles it to the one that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.runtime import Argument, Kernel, KernelSpec, PackSpec
from tilewright.te import DTYPES

if TYPE_CHECKING:
    from tilewright.codegen import Entry
    from tilewright.codegen.native import LoadedObject
    from tilewright.compile import CompiledKernel
    from tilewright.task import Task


@dataclass(frozen=True, slots=True)
class PackedInput:
    """The packed form of the constant input at `position`, and the entry that writes it."""

    position: int
    entry: Entry
    shape: tuple[int, ...]
    dtype: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class KernelBinary:
    """Object code with its entries. Of `CompiledKernel` it is what running needs."""

    object_code: bytes
    entry: Entry
    packs: tuple[PackedInput, ...] = ()

    @staticmethod
    def of(compiled: CompiledKernel) -> KernelBinary:
        packs = tuple(
            PackedInput(
                position=pack.position,
                entry=entry,
                shape=pack.packed.shape,
                dtype=pack.packed.dtype,
                nbytes=pack.packed.num_elements * DTYPES[pack.packed.dtype].bytes,
            )
            for pack, entry in zip(compiled.module.packs, compiled.generated.packs, strict=True)
        )
        return KernelBinary(compiled.object_code, compiled.generated.kernel, packs)

    def load(self, task: Task, threads: int) -> Kernel:
        """A callable kernel for `task` in this process."""
        from tilewright.codegen.native import LoadedObject

        loaded = LoadedObject(self.object_code)
        packed = {pack.position: _pack_spec(pack, loaded) for pack in self.packs}
        return Kernel(
            KernelSpec(
                name=task.name,
                inputs=tuple(
                    Argument(t.name, t.dtype, t.shape, t.is_constant, packed.get(position))
                    for position, t in enumerate(task.inputs)
                ),
                outputs=tuple(Argument(t.name, t.dtype, t.shape) for t in task.outputs),
                entry_address=loaded.address(self.entry.symbol),
                workspace_bytes=self.entry.workspace_bytes,
                scratch_bytes=self.entry.scratch_bytes,
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
