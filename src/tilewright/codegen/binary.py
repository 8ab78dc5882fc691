"""A compiled kernel as plain data, to send from the process that compiles it to the one that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.te import DTYPES

if TYPE_CHECKING:
    from tilewright.codegen.compile import CompiledKernel
    from tilewright.codegen.module import Entry, GeneratedModule
    from tilewright.ir import Module


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
    parts: tuple[bytes, ...] = ()
    """More object files, with functions that the first one calls."""

    @staticmethod
    def of(compiled: CompiledKernel) -> KernelBinary:
        return KernelBinary.made_of(compiled.module, compiled.generated, compiled.object_code)

    @staticmethod
    def made_of(
        module: Module, generated: GeneratedModule, object_code: bytes, parts: tuple[bytes, ...] = ()
    ) -> KernelBinary:
        packs = tuple(
            PackedInput(
                position=pack.position,
                entry=entry,
                shape=pack.packed.shape,
                dtype=pack.packed.dtype,
                nbytes=pack.packed.num_elements * DTYPES[pack.packed.dtype].bytes,
            )
            for pack, entry in zip(module.packs, generated.packs, strict=True)
        )
        return KernelBinary(object_code, generated.kernel, packs, parts)

    @property
    def num_bytes(self) -> int:
        """Of all its object files."""
        return len(self.object_code) + sum(map(len, self.parts))
