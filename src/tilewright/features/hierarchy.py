"""A program on four levels: as a whole, its statements, and the loops and buffers of each.

ATFormer reads "hierarchical features" with coarse and fine attention; what exactly these are is not public. This is our
reconstruction: a row for each thing, with its level, the row of what it belongs to, and columns of its own level.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from tilewright.features.analysis import Statement
from tilewright.features.encoders import Encoder, hardware_of, statements_of
from tilewright.features.hardware import Hardware
from tilewright.features.loop_tree import LOOP_COLUMNS, PARENT, loop_cells
from tilewright.features.operations import KINDS
from tilewright.features.row_table import Cell, RowTable
from tilewright.features.statements import (
    ALLOCATION_FEATURES,
    BUFFER_FEATURES,
    MACHINE_FEATURES,
    NEST_FEATURES,
    access_features,
    allocation_features,
    machine_features,
    nest_features,
)
from tilewright.schedule.steps import STEPS
from tilewright.space import Population, Sketch
from tilewright.te import DTYPES, Reduce, Tensor

LEVELS = ("program", "statement", "loop", "buffer")
PROGRAM_COLUMNS = (
    *KINDS, "flop", "num_statements", "num_loops", "input_bytes", "constant_bytes", "output_bytes",
    "num_inputs", "num_outputs", "largest_spatial", "largest_reduce", "num_knobs",
    *(f"num_{step}" for step in STEPS),
)  # fmt: skip
_COLUMNS = {
    "program": PROGRAM_COLUMNS,
    "statement": (*KINDS, "flops", "element_bytes", *NEST_FEATURES, *ALLOCATION_FEATURES, *MACHINE_FEATURES),
    "loop": (*LOOP_COLUMNS, "outer", "inner", "is_around", "num_moved", "touched_bytes", "working_set"),
    "buffer": (*BUFFER_FEATURES, "element_bytes", "num_accesses", "is_intermediate"),
}  # fmt: skip
HIERARCHY_COLUMNS = (
    PARENT,
    *(f"is_{level}" for level in LEVELS),
    *(f"{level}.{column}" for level, columns in _COLUMNS.items() for column in columns),
)


class HierarchyEncoder(Encoder):
    """Rows of four kinds: the program first, then each statement, followed by its loops and its buffers.

    One of `is_program`, `is_statement`, `is_loop` and `is_buffer` is 1, and the columns of the other levels are 0.
    `parent` is a row: the program's for a statement, the statement's for its loops, outermost first, and its buffers,
    that of the result first. The program's own is -1. A loop around several statements is a row of each. All but
    `parent` are taken as log2(1 + x).
    """

    name = "hierarchy"

    @property
    def columns(self) -> tuple[str, ...]:
        return HIERARCHY_COLUMNS

    def encode(self, population: Population) -> NDArray[np.float32]:
        hardware = hardware_of(population)
        statements = statements_of(population)
        table = RowTable(HIERARCHY_COLUMNS, as_is=[PARENT])
        program = table.add(_row("program", -1, _program(population.sketch, statements)))
        for statement in statements:
            own = table.add(_row("statement", program, _statement(statement, hardware)))
            for position in range(len(statement.path.loops)):
                table.add(_row("loop", own, _loop(statement, position)))
            for number in range(len(statement.accesses)):
                table.add(_row("buffer", own, _buffer(statement, number, hardware)))
        return table.values(len(population))


class ProgramEncoder(Encoder):
    """One row: the program as a whole, with the columns of that level of the hierarchy."""

    name = "program"

    @property
    def columns(self) -> tuple[str, ...]:
        return PROGRAM_COLUMNS

    @property
    def num_rows(self) -> int:
        return 1

    def encode(self, population: Population) -> NDArray[np.float32]:
        table = RowTable(PROGRAM_COLUMNS)
        table.add(_program(population.sketch, statements_of(population)))
        return table.values(len(population))


def _row(level: str, parent: int, cells: dict[str, Cell]) -> dict[str, Cell]:
    return {PARENT: parent, f"is_{level}": 1} | {f"{level}.{name}": cell for name, cell in cells.items()}


def _program(sketch: Sketch, statements: list[Statement]) -> dict[str, Cell]:
    """What is computed, how large it is, and how the sketch is made; operations are those that are executed."""
    task = sketch.task
    operations: dict[str, Cell] = {
        kind: sum(statement.path.iterations * statement.counts[kind] for statement in statements)
        for kind in KINDS
        if any(statement.counts[kind] for statement in statements)
    }
    steps = Counter(step.name for step in sketch.steps)
    return operations | {
        "flop": task.flop,
        "num_statements": len(statements),
        "num_loops": len({loop for statement in statements for loop in statement.path.loops}),
        "input_bytes": sum(_bytes(tensor) for tensor in task.inputs if not tensor.is_constant),
        "constant_bytes": sum(map(_bytes, task.constants)),
        "output_bytes": sum(map(_bytes, task.outputs)),
        "num_inputs": len(task.inputs),
        "num_outputs": len(task.outputs),
        "largest_spatial": max(math.prod(stage.shape) for stage in task.stages),
        "largest_reduce": max(map(_num_reduced, task.stages)),
        "num_knobs": len(sketch.knobs),
        **{f"num_{name}": count for name, count in steps.items()},
    }


def _bytes(tensor: Tensor) -> int:
    return math.prod(tensor.shape) * DTYPES[tensor.dtype].bytes


def _num_reduced(tensor: Tensor) -> int:
    """Over how many values each element of the tensor is reduced; 1 where it is not."""
    return math.prod(axis.extent for axis in tensor.body.axes) if isinstance(tensor.body, Reduce) else 1


def _statement(statement: Statement, hardware: Hardware) -> dict[str, Cell]:
    return {
        **statement.counts,
        "flops": statement.flops,
        "element_bytes": statement.element_bytes,
        **dict(nest_features(statement)),
        **dict(allocation_features(statement)),
        **dict(machine_features(statement, hardware)),
    }


def _loop(statement: Statement, position: int) -> dict[str, Cell]:
    return loop_cells(statement, position) | {
        "outer": statement.path.outer[position],
        "inner": statement.path.inner[position],
        "is_around": position < statement.num_around,
        "num_moved": sum(position in access.loops for access in statement.accesses),
        "touched_bytes": statement.touched_bytes[position],
        "working_set": statement.working_set[position],
    }


def _buffer(statement: Statement, number: int, hardware: Hardware) -> dict[str, Cell]:
    access = statement.accesses[number]
    return {
        **access_features(statement, access, hardware.line_bytes),
        "element_bytes": access.element_bytes,
        "num_accesses": access.num_accesses,
        "is_intermediate": access.is_intermediate,
    }
