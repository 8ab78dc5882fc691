"""The tree of loops says of each candidate what a walk through its one schedule says, and what its nest touches."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.features import populations
from tests.features.one_program import OneProgram, population_of, rows_of
from tests.features.walked import Walked, addresses, main_statements, reads
from tilewright import te
from tilewright.features import LoopTreeEncoder
from tilewright.features.operations import count_operations, flops
from tilewright.schedule import Loop, Schedule, Stage
from tilewright.te import DTYPES, Task
from tilewright.testing.encoder_checks import sketches_of
from tilewright.testing.programs import FAMILIES
from tilewright.testing.schedules import random_schedule

ENCODER = LoopTreeEncoder()


def slow_rows(program: OneProgram) -> list[dict[str, float]]:
    """A node after the other: the program, then for each stage the loops that are new and its statement."""
    stages = program.stages()
    rows = [{"parent": -1.0, "is_program": 1.0, "entered": 1.0} | program.touched(stages, 0)]
    seen: dict[Loop, int] = {}
    for stage in stages:
        parent = 0
        path = program.path(stage)
        for depth, loop in enumerate(path):
            if loop not in seen:
                inside = [other for other in stages if loop in program.path(other)]
                seen[loop] = len(rows)
                around = {"parent": float(parent), "entered": float(program.product(path[:depth]))}
                rows.append(around | loop_row(program, stage, loop) | program.touched(inside, depth))
            parent = seen[loop]
        around = {"parent": float(parent), "entered": float(program.product(path))}
        rows.append(around | statement_row(program, stage) | program.touched([stage], len(path)))
    return [{name: value for name, value in row.items() if value != 0} for row in rows]


def loop_row(program: OneProgram, stage: Stage, loop: Loop) -> dict[str, float]:
    position = program.path(stage).index(loop)
    return {
        "is_loop": 1.0,
        "extent": float(program.extent(loop)),
        "is_reduce": float(loop.is_reduce),
        "is_parallel": float(loop.annotation == "parallel"),
        "is_vectorized": float(loop.annotation == "vectorize"),
        "is_unrolled": float(program.statement(stage).unrolled[position][0]),
        "auto_unroll_max_step": float(loop.stage.pragmas.get(loop, 0)),
    }


def statement_row(program: OneProgram, stage: Stage) -> dict[str, float]:
    counts = count_operations(stage)
    buffers = {stage.name, *(read.tensor.name for read in stage.reads)}
    size = program.touched([stage], len(program.path(stage)) - len(stage.leaves))
    own = {name: float(number) for name, number in counts.items()}
    written = program.statement(stage).accesses[0]
    allocated = written.elements[len(program.path(stage)) - len(stage.leaves)][0] * written.element_bytes
    assert size["written_bytes"] == allocated
    return own | {
        "is_statement": 1.0,
        "flops": float(flops(counts)),
        "is_reduction": float(stage.reduction is not None),
        "element_bytes": float(DTYPES[stage.tensor.dtype].bytes),
        "num_buffers": float(len(buffers)),
        "allocated_bytes": 0.0 if stage.is_output else float(allocated),
    }


def assert_equal(found: list[dict[str, float]], expected: list[dict[str, float]]) -> None:
    assert len(found) == len(expected)
    for mine, slow in zip(found, expected, strict=True):
        assert mine == pytest.approx(slow, rel=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_nodes_of_a_candidate_are_those_of_its_schedule(family: str) -> None:
    for seed in range(2):
        for sketch in sketches_of(family, seed):
            population = sketch.sample(np.random.default_rng(seed), 4)
            for number, values in enumerate(ENCODER.encode(population)):
                assert_equal(rows_of(ENCODER, values), slow_rows(OneProgram.of(population, number)))


@pytest.mark.parametrize("family", FAMILIES)
def test_nodes_of_any_schedule(family: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        schedule = random_schedule(sketches_of(family)[0].task, rng, 10)
        population = population_of(schedule)
        assert_equal(rows_of(ENCODER, ENCODER.encode(population)[0]), slow_rows(OneProgram.of(population, 0)))


@pytest.mark.parametrize("name", ["gemm", "gemm and relu", "packed gemm", "depthwise", "strided conv1d", "softmax"])
def test_a_loop_touches_what_its_nest_touches(name: str) -> None:
    """Every iteration of the lowered nest is walked, and different addresses are counted."""
    family = populations.FAMILIES[name]
    matrix = family.sample(0, 4, is_dividing=True)
    for number in range(len(matrix)):
        schedule = family.concrete(matrix, number)
        tree = Tree(ENCODER.encode(population_of(schedule))[0])
        for statement, (stage, walked) in zip(tree.statements, ordered_nests(schedule), strict=True):
            loops = [row for row in tree.path(statement) if tree.rows[row]["extent"] > 1]
            assert [tree.rows[row]["extent"] for row in loops] == pytest.approx([loop.extent for loop in walked.loops])
            for depth, row in enumerate(loops):
                if tree.num_inside(row) > 1:  # another statement touches the same buffers
                    continue
                found = tree.rows[row].get("read_bytes", 0.0)
                if stage.reduction is not None:
                    found -= tree.rows[row]["written_bytes"]  # the sum itself
                assert found == pytest.approx(bytes_read(walked, depth), rel=1e-4), f"{stage}, loop {depth}, {matrix}"


def bytes_read(walked: Walked, depth: int) -> int:
    """Of different elements, while the outermost loops stand still."""
    total = 0
    for loads in reads(walked).values():
        tables = [addresses(walked.loops, load.buffer, load.indices)[(0,) * depth] for load in loads]
        different = np.unique(np.concatenate([table.reshape(-1) for table in tables]))
        total += len(different) * DTYPES[loads[0].buffer.dtype].bytes
    return total


class Tree:
    def __init__(self, values: NDArray[np.float32]) -> None:
        self.rows = rows_of(ENCODER, values)
        self.statements = [number for number, row in enumerate(self.rows) if "is_statement" in row]

    def path(self, row: int) -> list[int]:
        """The loops around a row, outermost first."""
        parent = int(self.rows[row].get("parent", 0))
        return [] if parent == 0 else [*self.path(parent), parent]

    def num_inside(self, row: int) -> int:
        return sum(row in self.path(statement) for statement in self.statements)


def ordered_nests(schedule: Schedule) -> list[tuple[Stage, Walked]]:
    nests = main_statements(schedule)
    return [(s, nests[s.name]) for s in schedule.active_stages if not schedule.is_prepacked(s)]


def test_a_scalar_has_a_statement_and_no_loop() -> None:
    A = te.placeholder((), name="A")
    population = population_of(Schedule(Task([A], te.compute((), lambda: A[()] * 2.0, name="B"))))
    program, statement = rows_of(ENCODER, ENCODER.encode(population)[0])
    assert program == pytest.approx(
        {"parent": -1, "is_program": 1, "entered": 1, "touched_bytes": 8, "read_bytes": 4, "written_bytes": 4}
    )
    assert statement["float_mul"] == statement["is_statement"] == 1
    assert "parent" not in statement  # the program is row 0
