"""The functions of a module as text, before they are put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.target import Target

if TYPE_CHECKING:
    from tilewright.codegen.reuse import CodeShelf

NONTEMPORAL = "!0"  # the mark of a store past the caches


@dataclass(frozen=True, slots=True)
class Function:
    """A function, and the intrinsics that it calls."""

    name: str
    text: str
    declarations: Mapping[str, str]

    def as_module(self) -> str:
        """A module of its own, whose function others can call."""
        function = self.text.replace("define internal ", "define ", 1)
        return "\n\n".join([function, *self.declarations.values()]) + "\n"


@dataclass(frozen=True, slots=True)
class ParallelBody(Function):
    """The body of a parallel loop, which threads run."""

    num_statements: int
    scratch_bytes: int

    @property
    def declaration(self) -> str:
        return f'declare void @"{self.name}"(ptr, i64, i64)'


@dataclass(slots=True)
class ModuleText:
    """The functions of a module as they are written."""

    target: Target
    num_threads: int
    shelf: CodeShelf | None = None
    declarations: dict[str, str] = field(default_factory=dict)
    bodies: list[ParallelBody] = field(default_factory=list)
    entries: list[Function] = field(default_factory=list)
    num_statements: int = 0

    @property
    def has_streaming_stores(self) -> bool:
        return NONTEMPORAL in self.declarations

    def include(self, other: ModuleText) -> None:
        """Take over the functions of another text."""
        self.bodies += other.bodies
        self.entries += other.entries
        self.declarations.update(other.declarations)

    def add(self, body: ParallelBody) -> None:
        self.bodies.append(body)
        self.declarations.update(body.declarations)
