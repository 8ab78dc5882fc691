"""Loops in their context, as AutoTVM's boosted trees read them: what surrounds a loop, and what it touches.

Of each loop around a statement there are its length, how it runs, its place in the nest, and for each buffer how many
elements are touched while it runs, how often each of them is used, and how far a step of the loop moves. `curves` has
the same in a form that does not depend on how many loops there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tilewright.features.accesses import Access
from tilewright.features.analysis import Statement
from tilewright.features.encoders import Encoder, statements_of
from tilewright.features.loop_tree import LOOP_COLUMNS, loop_cells
from tilewright.features.operations import KINDS
from tilewright.features.regions import Floats
from tilewright.features.row_table import Cell, RowTable
from tilewright.space import Population

STATEMENT_COLUMNS = ("iterations", *KINDS)
NEST_COLUMNS = (*LOOP_COLUMNS, "top_down", "bottom_up", "nest_level")
TOUCH_COLUMNS = ("count", "reuse", "stride")


@dataclass(frozen=True, eq=False)
class LoopContextEncoder(Encoder):
    """A row for each statement, with the context of its loops one beside the other: `loop0` is the innermost.

    `top_down` is the product of the extents from the outermost loop to this one, `bottom_up` from this one to the
    innermost, both with its own; `nest_level` counts the loops down to it that run more than once. `buffer0` is what
    the statement writes, the others what it reads, in the order in which it names them. `count` is how many of its
    elements are touched while the loop runs, `reuse` how often each of them is, `stride` by how many elements a step
    moves. Loops and buffers that a statement does not have are 0, and those beyond `num_loops` and `num_buffers` are
    left out: the outermost ones, of which the products know. All are taken as log2(1 + x).
    """

    name = "loop-context"
    num_loops: int = 24
    num_buffers: int = 4

    def __post_init__(self) -> None:
        self.check_counts()

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns(self.num_loops, self.num_buffers)

    def encode(self, population: Population) -> NDArray[np.float32]:
        table = RowTable(self.columns)
        for statement in statements_of(population):
            table.add(dict(self._cells(statement)))
        return table.values(len(population))

    def _cells(self, statement: Statement) -> Iterator[tuple[str, Cell]]:
        yield "iterations", statement.path.iterations
        yield from statement.counts.items()
        levels = np.cumsum(statement.runs, axis=0, dtype=np.int64)
        innermost_first = range(len(statement.path.loops) - 1, -1, -1)
        for number, position in zip(range(self.num_loops), innermost_first, strict=False):
            for name, cell in (loop_cells(statement, position) | _place(statement, position, levels)).items():
                yield f"loop{number}.{name}", cell
            for buffer, access in enumerate(statement.accesses[: self.num_buffers]):
                for name, cell in _touch(statement, access, position).items():
                    yield f"loop{number}.buffer{buffer}.{name}", cell


@cache
def _columns(num_loops: int, num_buffers: int) -> tuple[str, ...]:
    touches = [f"buffer{number}.{name}" for number in range(num_buffers) for name in TOUCH_COLUMNS]
    loops = [f"loop{number}.{name}" for number in range(num_loops) for name in (*NEST_COLUMNS, *touches)]
    return (*STATEMENT_COLUMNS, *loops)


def _place(statement: Statement, position: int, levels: NDArray[np.int64]) -> dict[str, Cell]:
    return {
        "top_down": statement.path.outer[position + 1],
        "bottom_up": statement.path.inner[position],
        "nest_level": levels[position],
    }


def _touch(statement: Statement, access: Access, position: int) -> dict[str, Cell]:
    return {
        "count": access.elements[position],
        "reuse": reuse_of(statement, access)[position],
        "stride": access.stride_of(position, statement.path.extents[position]),
    }


def reuse_of(statement: Statement, access: Access) -> Floats:
    """How often each element of the buffer that is touched is touched, at every level of the loops."""
    return statement.path.inner * access.num_accesses / access.elements
