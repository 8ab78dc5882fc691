"""From loop nests to native code: LLVM IR as text, object code, and the target they are for.

llvmlite is imported by `native` alone; import that where object code is made. What writes LLVM IR is loaded when it is
first used, so that a process that only runs compiled code starts sooner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.codegen.target import Target

if TYPE_CHECKING:
    from tilewright.codegen.module import Entry, GeneratedModule, generate

__all__ = ["Entry", "GeneratedModule", "Target", "generate"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'tilewright.codegen' has no attribute {name!r}")
    from tilewright.codegen import module

    value: object = getattr(module, name)
    globals()[name] = value
    return value
