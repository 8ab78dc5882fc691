"""The loop nest: statements over buffers, with indices as linear forms of the loop variables.

Values are expressions of `te`, with three more kinds of node: a `Load` from a buffer, an `Index` (a linear form used
as a value) and a `Test` (a comparison of linear forms).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilewright.te import DTYPES, Expr, Var
from tilewright.te.index import Interval, Linear

INPUT, PACKED, OUTPUT, LOCAL = "input", "packed", "output", "local"


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """Contiguous memory of one tensor, or of the part of it that is computed at a time."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: str

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements, row-major."""
        strides: list[int] = []
        step = 1
        for extent in reversed(self.shape):
            strides.append(step)
            step *= extent
        return tuple(reversed(strides))

    @property
    def num_elements(self) -> int:
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def num_bytes(self) -> int:
        return self.num_elements * DTYPES[self.dtype].bytes


@dataclass(frozen=True, eq=False, slots=True)
class Load(Expr):
    buffer: Buffer
    indices: tuple[Linear, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Index(Expr):
    """A linear form as a value of type int64."""

    form: Linear


@dataclass(frozen=True, eq=False, slots=True)
class Test(Expr):
    """`form >= 0`, `form == 0` or `form != 0`, by `op`: ge, eq, ne."""

    op: str
    form: Linear


@dataclass(frozen=True, eq=False, slots=True)
class For:
    """`body` for each value of `var` from `begin`, `extent` of them; `kind` as the schedule's annotation."""

    var: Var
    begin: int
    extent: int
    kind: str
    body: Stmt

    @property
    def interval(self) -> Interval:
        """The values of `var`."""
        return Interval(self.begin, self.begin + self.extent - 1)


@dataclass(frozen=True, eq=False, slots=True)
class Store:
    buffer: Buffer
    indices: tuple[Linear, ...]
    value: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Update:
    """Combine `values` into the buffers at `indices` by the reduction `op`; argmax and argmin hold value and index."""

    op: str
    buffers: tuple[Buffer, ...]
    indices: tuple[Linear, ...]
    values: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Statements in sequence, with the buffers that live as long as they run."""

    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Where:
    """One of several statements, by the range (begin, end) that holds the value of `var`."""

    var: Var
    cases: tuple[tuple[int, int, Stmt], ...]


Stmt: TypeAlias = For | Store | Update | Block | Where


@dataclass(frozen=True, eq=False, slots=True)
class LoopNest:
    """A function: its buffers in the order of the call, and what it does."""

    name: str
    arguments: tuple[Buffer, ...]
    body: Stmt


def block(statements: list[Stmt], buffers: tuple[Buffer, ...] = ()) -> Stmt:
    """The statements as one; a single one stands for itself."""
    return statements[0] if len(statements) == 1 and not buffers else Block(buffers, tuple(statements))
