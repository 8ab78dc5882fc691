"""From loop nests to native code: LLVM IR as text, object code, and the whole way from a schedule to a binary.

llvmlite is imported by `native` alone; import that where object code is made. What writes LLVM IR is loaded when it is
first used, so that a process that only runs compiled code starts sooner.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.codegen.binary import KernelBinary, PackedInput
    from tilewright.codegen.compile import CompiledKernel, compile_schedule
    from tilewright.codegen.module import Entry, GeneratedModule, generate

__all__ = [
    "CompiledKernel",
    "Entry",
    "GeneratedModule",
    "KernelBinary",
    "PackedInput",
    "compile_schedule",
    "generate",
]

_HOME = {
    "CompiledKernel": "compile",
    "Entry": "module",
    "GeneratedModule": "module",
    "KernelBinary": "binary",
    "PackedInput": "binary",
    "compile_schedule": "compile",
    "generate": "module",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'tilewright.codegen' has no attribute {name!r}; it has {', '.join(__all__)}")
    value: object = getattr(import_module(f"tilewright.codegen.{_HOME[name]}"), name)
    globals()[name] = value
    return value
