"""From loop nests to native code: LLVM IR as text, object code, and the target they are for.

llvmlite is imported by `native` alone; import that where object code is made.
"""

from tilewright.codegen.module import Entry, GeneratedModule, generate
from tilewright.codegen.target import Target

__all__ = ["Entry", "GeneratedModule", "Target", "generate"]
