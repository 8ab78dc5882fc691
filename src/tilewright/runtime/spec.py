"""What code generation says about a compiled kernel: its arguments, its entry, and the memory it needs.

An entry has the C type `tw_kernel` of native/tilewright_runtime.h. Its arguments are the inputs in the order of the
task, each constant that the schedule packs in its packed form, and then the outputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.te import DTYPES


@dataclass(frozen=True, slots=True)
class PackSpec:
    """The packed form of a constant input, and the entry, with the arguments (plain, packed), that writes it.

    `nbytes` may exceed what `shape` needs, for a kernel that reads whole vectors past the last element.
    """

    entry_address: int
    shape: tuple[int, ...]
    dtype: str
    workspace_bytes: int
    scratch_bytes: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Argument:
    """One input or output. A constant input can be bound; `packed` tells how, if its layout changes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_constant: bool = False
    packed: PackSpec | None = None

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * DTYPES[self.dtype].bytes

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A compiled kernel. `keepalive` is whatever must stay alive for the addresses to be valid."""

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    entry_address: int
    workspace_bytes: int
    scratch_bytes: int
    num_threads: int
    keepalive: object = None
