"""The LLVM IR of a lowered module: the kernel, its parallel bodies, and a function for each packed constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.codegen.builder import Value
from tilewright.codegen.module_text import Function, ModuleText, ParallelBody
from tilewright.codegen.statements import FunctionWriter
from tilewright.codegen.streaming import streamed_outputs
from tilewright.ir import Buffer, LoopNest, Module
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
        """What can be an object file of its own: bodies, and entries of packed constants that call nothing."""
        around = {body.name.rpartition(".")[0] for body in self.bodies}
        names = {entry.name for entry in self.text.entries}
        calling = around | {name for name in names if _streamed(name) in names}
        packs = {pack.symbol for pack in self.packs}
        entries = [entry for entry in self.text.entries if entry.name in packs]
        return [each for each in (*self.bodies, *entries) if each.name not in calling]

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
    """The nest as a function of that name; where outputs are streamed, as two, and one that chooses by alignment."""
    streamed = streamed_outputs(nest, module.target)
    past = ModuleText(module.target, module.num_threads, module.shelf)
    fast = _function(past, nest, _streamed(symbol), streamed) if streamed else None
    if fast is None or not past.has_streaming_stores:
        return _function(module, nest, symbol)
    module.include(past)
    plain = _function(module, nest, _plain(symbol))
    module.entries.append(_choice(module, nest, symbol, streamed))
    workspace_bytes = max(fast.workspace_bytes, plain.workspace_bytes)
    return Entry(symbol, workspace_bytes, max(fast.scratch_bytes, plain.scratch_bytes))


def _function(module: ModuleText, nest: LoopNest, symbol: str, streamed: tuple[Buffer, ...] = ()) -> Entry:
    """The nest as a function; the `streamed` outputs, which must be aligned to lines then, past the caches."""
    writer = FunctionWriter(module, symbol)
    header: list[str] = []
    for position, buffer in enumerate(nest.arguments):
        header += _argument(position)
        writer.memory.pointers[buffer] = Value(f"%arg{position}", "ptr", 1)
    writer.memory.arena = Value("%workspace", "ptr", 1)
    writer.memory.streamed = streamed
    writer.builder.label("entry")
    writer.write(nest.body)
    writer.memory.finish_streaming()
    module.declarations.update(writer.declarations)
    text = writer.text(_signature(symbol), header, "  ret i32 0")
    module.entries.append(Function(symbol, text, writer.declarations))
    return Entry(symbol, writer.memory.arena_bytes, writer.scratch_bytes)


def _choice(module: ModuleText, nest: LoopNest, symbol: str, streamed: tuple[Buffer, ...]) -> Function:
    """The function that is called: it goes on with the one whose outputs are streamed where all of them are aligned."""
    lines = [_signature(symbol) + " {", "entry:"]
    bits = []
    for position, buffer in enumerate(nest.arguments):
        if buffer in streamed:
            lines += [*_argument(position), f"  %bits{position} = ptrtoint ptr %arg{position} to i64"]
            bits.append(f"%bits{position}")
    total = bits[0]
    for n, other in enumerate(bits[1:]):
        lines.append(f"  %all{n} = or i64 {total}, {other}")
        total = f"%all{n}"
    lines += [
        f"  %rest = and i64 {total}, {module.target.cache_line_bytes - 1}",
        "  %is_aligned = icmp eq i64 %rest, 0",
        f'  %chosen = select i1 %is_aligned, ptr @"{_streamed(symbol)}", ptr @"{_plain(symbol)}"',
        "  %status = tail call i32 %chosen(ptr %rt, ptr %args, ptr %workspace)",
        "  ret i32 %status",
        "}",
    ]
    return Function(symbol, "\n".join(lines), {})


def _streamed(symbol: str) -> str:
    return f"{symbol}.streamed"


def _plain(symbol: str) -> str:
    return f"{symbol}.plain"


def _signature(symbol: str) -> str:
    return f'define i32 @"{symbol}"(ptr %rt, ptr %args, ptr %workspace) nounwind'


def _argument(position: int) -> list[str]:
    """The pointer that is passed there."""
    return [
        f"  %slot{position} = getelementptr ptr, ptr %args, i64 {position}",
        f"  %arg{position} = load ptr, ptr %slot{position}, align 8",
    ]
