"""A compiled kernel as plain data, to send from the process that compiles it to the one that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.te import DTYPES

if TYPE_CHECKING:
    from tilewright.codegen.compile import CompiledKernel
    from tilewright.codegen.module import Entry


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
