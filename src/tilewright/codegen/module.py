"""The LLVM IR of a lowered module: the kernel, its parallel bodies, and a function for each packed constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.codegen.builder import Value
from tilewright.codegen.module_text import Function, ModuleText, ParallelBody
from tilewright.codegen.statements import FunctionWriter
from tilewright.ir import LoopNest, Module
from tilewright.target import Target

if TYPE_CHECKING:
    from tilewright.codegen.reuse import CodeShelf

SYMBOL_PREFIX = "tw"


@dataclass(frozen=True, slots=True)
class Entry:
    """A function of the C type tw_kernel, and the memory that it needs."""

    symbol: str
    workspace_bytes: int
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class GeneratedModule:
    """LLVM IR as text, with the entry of the kernel and those of the packed constants in order."""

    text: ModuleText
    kernel: Entry
    packs: tuple[Entry, ...]

    @property
    def llvm_ir(self) -> str:
        return self.without(())

    @property
    def bodies(self) -> Sequence[ParallelBody]:
        """The functions that threads run."""
        return self.text.bodies

    @property
    def separable(self) -> list[Function]:
        """What can be an object file of its own: bodies and the entries of packed constants, if no body is in them."""
        around = {body.name.rpartition(".")[0] for body in self.bodies}
        return [each for each in (*self.bodies, *self.text.entries[1:]) if each.name not in around]

    def without(self, elsewhere: Sequence[Function]) -> str:
        """The text as it is where some of these are in other object files."""
        apart = {function.name for function in elsewhere}
        bodies = [body.declaration if body.name in apart else body.text for body in self.bodies]
        entries = [entry.text for entry in self.text.entries if entry.name not in apart]
        return "\n\n".join([*bodies, *entries, *self.text.declarations.values()]) + "\n"


def generate(
    module: Module,
    target: Target,
    num_threads: int,
    prefix: str = SYMBOL_PREFIX,
    shelf: CodeShelf | None = None,
) -> GeneratedModule:
    """Write a lowered module as LLVM IR; with one thread, parallel loops are plain loops.

    The names of its functions begin with `prefix`, to tell them from those of another module in the same library.
    Bodies of parallel loops that are on the `shelf` are not written again.
    """
    text = ModuleText(target, num_threads, shelf)
    kernel = _entry(text, module.kernel, f"{prefix}_run")
    packs = tuple(_entry(text, pack.nest, f"{prefix}_pack_{pack.position}") for pack in module.packs)
    return GeneratedModule(text, kernel, packs)


def _entry(module: ModuleText, nest: LoopNest, symbol: str) -> Entry:
    writer = FunctionWriter(module, symbol)
    header: list[str] = []
    for position, buffer in enumerate(nest.arguments):
        header.append(f"  %slot{position} = getelementptr ptr, ptr %args, i64 {position}")
        header.append(f"  %arg{position} = load ptr, ptr %slot{position}, align 8")
        writer.memory.pointers[buffer] = Value(f"%arg{position}", "ptr", 1)
    writer.memory.arena = Value("%workspace", "ptr", 1)
    writer.builder.label("entry")
    writer.write(nest.body)
    signature = f'define i32 @"{symbol}"(ptr %rt, ptr %args, ptr %workspace) nounwind'
    module.declarations.update(writer.declarations)
    module.entries.append(Function(symbol, writer.text(signature, header, "  ret i32 0"), writer.declarations))
    return Entry(symbol, writer.memory.arena_bytes, writer.scratch_bytes)
