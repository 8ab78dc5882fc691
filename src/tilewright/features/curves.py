"""Loop contexts as curves: what the loops of a statement do with its buffers, whatever loops there are.

Each loop, with those inside it, touches so many elements of a buffer, uses each of them so often, and is entered so
often. These are points of two curves over the touch count, which are sampled at fixed counts: of so many elements that
stay at hand, how much reuse there is, and how often they are fetched anew. Programs of any operator have the same
columns with the same meaning, so that a model of them carries over from one to another.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tilewright.features.accesses import Access
from tilewright.features.analysis import Statement
from tilewright.features.encoders import Encoder, statements_of
from tilewright.features.loop_context import STATEMENT_COLUMNS, reuse_of
from tilewright.features.regions import Booleans, Floats
from tilewright.features.row_table import Cell, RowTable
from tilewright.features.statements import innermost_step
from tilewright.schedule import PARALLEL, VECTORIZE
from tilewright.space import Population

NUM_POINTS = 20
"""The touch counts at which curves are sampled: 2^0, 2^1, ..., 2^19 elements."""
MAX_BUFFERS = 4
KINDS_OF_LOOPS = ("parallel", "vectorized", "unrolled")
_BUFFER_COLUMNS = (
    "count", "stride", "vector_stride",
    *(f"{relation}{point}" for relation in ("reuse", "top_down") for point in range(NUM_POINTS)),
)  # fmt: skip
CURVE_COLUMNS = (
    *STATEMENT_COLUMNS, *KINDS_OF_LOOPS,
    *(f"buffer{number}.{name}" for number in range(MAX_BUFFERS) for name in _BUFFER_COLUMNS),
)  # fmt: skip


class CurveEncoder(Encoder):
    """A row for each statement: its operations, the product of its loops of each kind, and the curves of its buffers.

    `buffer0` is what the statement writes, the others what it reads, in the order in which it names them; of more than
    four the rest is left out. `reuse7` is the most reuse of loops that touch at most 2^7 elements of the buffer,
    `top_down7` how often the outermost of these loops is entered. Where a single execution touches more, there is no
    reuse, and it is entered as often as the statement runs. `count` is of all loops together; the strides are those of
    the innermost loop that moves the access, and of the vectorized one. All are taken as log2(1 + x).
    """

    name = "curves"

    @property
    def columns(self) -> tuple[str, ...]:
        return CURVE_COLUMNS

    def encode(self, population: Population) -> NDArray[np.float32]:
        table = RowTable(CURVE_COLUMNS)
        for statement in statements_of(population):
            table.add(dict(_cells(statement)))
        return table.values(len(population))


def _cells(statement: Statement) -> Iterator[tuple[str, Cell]]:
    yield "iterations", statement.path.iterations
    yield from statement.counts.items()
    for name, chosen in zip(KINDS_OF_LOOPS, _loops_by_kind(statement), strict=True):
        yield name, np.where(chosen, statement.path.extents, 1.0).prod(axis=0)
    for number, access in enumerate(statement.accesses[:MAX_BUFFERS]):
        yield from ((f"buffer{number}.{name}", cell) for name, cell in _buffer(statement, access))


def _loops_by_kind(statement: Statement) -> list[Booleans]:
    annotated = [
        np.array([loop.annotation == kind for loop in statement.path.loops], np.bool_).reshape(-1, 1)
        for kind in (PARALLEL, VECTORIZE)
    ]
    return [*annotated, statement.unrolled]


def _buffer(statement: Statement, access: Access) -> Iterator[tuple[str, Cell]]:
    yield "count", access.elements[0]
    yield "stride", innermost_step(statement, access)
    vector = statement.annotated(VECTORIZE)
    if vector is not None:
        yield "vector_stride", access.stride_of(vector, statement.path.extents[vector])
    reuse, entered = reuse_of(statement, access), statement.path.outer
    for point in range(NUM_POINTS):
        fits: Booleans = access.elements <= 2**point
        yield f"reuse{point}", _largest(reuse, fits)
        yield f"top_down{point}", np.where(fits, entered, statement.path.iterations).min(axis=0)


def _largest(table: Floats, chosen: Booleans) -> Floats:
    """Of each column the largest number that is chosen; 0 where none is."""
    found: Floats = np.where(chosen, table, 0.0).max(axis=0)
    return found
