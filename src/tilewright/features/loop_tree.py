"""The loop nest of a program as a tree, as TreeGRU reads it: loops, and the statements inside them.

Nothing is lowered: the nest is that of the schedule, before lowering cuts loops at borders. All candidates of a sketch
have the same tree; a loop that runs once for some of them is a loop of extent 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.features.accesses import READ, WRITE
from tilewright.features.analysis import Statement
from tilewright.features.encoders import Encoder, statements_of
from tilewright.features.operations import KINDS
from tilewright.features.regions import Floats
from tilewright.features.row_table import Cell, RowTable
from tilewright.features.statements import allocation_features
from tilewright.schedule import PARALLEL, VECTORIZE, Loop
from tilewright.space import Population

PARENT = "parent"
LOOP_COLUMNS = ("extent", "is_reduce", "is_parallel", "is_vectorized", "is_unrolled", "auto_unroll_max_step")
TREE_COLUMNS = (
    PARENT, "is_program", "is_loop", "is_statement", "entered", "touched_bytes", "read_bytes", "written_bytes",
    *LOOP_COLUMNS, *KINDS, "flops", "is_reduction", "element_bytes", "num_buffers", "allocated_bytes",
)  # fmt: skip
Level: TypeAlias = tuple[Statement, int]
"""A statement while the loops from this position of its path on run."""


class LoopTreeEncoder(Encoder):
    """A row for each node: the program, its loops and its statements, parents before children.

    `parent` is the row of the node around it, and -1 for the program, which is row 0. `entered` is how often a node
    runs, and its bytes are those of different elements that it touches while it runs once. A loop has its extent, how
    it runs and the limit of a pragma; a statement has what it computes once. All but `parent` are taken as log2(1 + x).
    """

    name = "loop-tree"

    @property
    def columns(self) -> tuple[str, ...]:
        return TREE_COLUMNS

    def encode(self, population: Population) -> NDArray[np.float32]:
        statements = statements_of(population)
        inside = _levels_of_loops(statements)
        table = RowTable(TREE_COLUMNS, as_is=[PARENT])
        everything = _touched([(statement, 0) for statement in statements])
        program = table.add({PARENT: -1, "is_program": 1, "entered": 1} | everything)
        rows: dict[Loop, int] = {}
        for statement in statements:
            parent = program
            for position, loop in enumerate(statement.path.loops):
                if loop not in rows:
                    rows[loop] = table.add({PARENT: parent} | _loop_node(statement, position) | _touched(inside[loop]))
                parent = rows[loop]
            table.add({PARENT: parent} | _statement_node(statement))
        return table.values(len(population))


def loop_cells(statement: Statement, position: int) -> dict[str, Cell]:
    """The LOOP_COLUMNS of a loop around the statement."""
    loop = statement.path.loops[position]
    return {
        "extent": statement.path.extents[position],
        "is_reduce": loop.is_reduce,
        "is_parallel": loop.annotation == PARALLEL,
        "is_vectorized": loop.annotation == VECTORIZE,
        "is_unrolled": statement.unrolled[position],
        "auto_unroll_max_step": loop.stage.pragmas.get(loop, 0),
    }


def _loop_node(statement: Statement, position: int) -> dict[str, Cell]:
    return {"is_loop": 1, "entered": statement.path.outer[position]} | loop_cells(statement, position)


def _statement_node(statement: Statement) -> dict[str, Cell]:
    return {
        "is_statement": 1,
        "entered": statement.path.iterations,
        **statement.counts,
        "flops": statement.flops,
        "is_reduction": statement.stage.reduction is not None,
        "element_bytes": statement.element_bytes,
        "num_buffers": len(statement.accesses),
        "allocated_bytes": dict(allocation_features(statement))["allocated_bytes"],
        **_touched([(statement, len(statement.path.loops))]),
    }


def _levels_of_loops(statements: Sequence[Statement]) -> dict[Loop, list[Level]]:
    """For each loop the statements inside it, while it runs."""
    inside: dict[Loop, list[Level]] = {}
    for statement in statements:
        for position, loop in enumerate(statement.path.loops):
            inside.setdefault(loop, []).append((statement, position))
    return inside


def _touched(levels: Sequence[Level]) -> dict[str, Cell]:
    """Bytes that the statements touch together; of a buffer that several use, what the one that uses most does."""
    found: dict[str, dict[str, Floats]] = {"touched_bytes": {}, "read_bytes": {}, "written_bytes": {}}
    for statement, level in levels:
        for access in statement.accesses:
            size = access.elements[level] * access.element_bytes
            for name, other in (("touched_bytes", None), ("read_bytes", WRITE), ("written_bytes", READ)):
                if access.kind != other:
                    known = found[name].get(access.buffer)
                    found[name][access.buffer] = size if known is None else np.maximum(known, size)
    n = levels[0][0].n
    return {name: sum(sizes.values(), np.zeros(n)) for name, sizes in found.items()}
