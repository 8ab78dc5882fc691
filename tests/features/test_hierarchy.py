"""The four levels of a program, next to one candidate's schedule walked in plain Python."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from tests.features.one_program import OneProgram, population_of, rows_of
from tilewright import te
from tilewright.features import (
    HierarchyEncoder,
    Statement,
    access_features,
    hardware_of,
    raw_features,
)
from tilewright.features.operations import KINDS, count_operations, flops
from tilewright.features.statements import ALLOCATION_FEATURES, MACHINE_FEATURES, NEST_FEATURES
from tilewright.schedule import Loop, Schedule, Stage
from tilewright.space import Population
from tilewright.te import DTYPES, Reduce, Task
from tilewright.testing.encoder_checks import sketches_of
from tilewright.testing.programs import FAMILIES

ENCODER = HierarchyEncoder()
Row = dict[str, float]


def slow_rows(population: Population, number: int) -> list[Row]:
    program = OneProgram.of(population, number)
    hardware = hardware_of(population)
    rows = [at_level("program", -1, program_row(population, program))]
    for stage in program.stages():
        statement = program.statement(stage)
        own = len(rows)
        features = {name: scalar(value) for name, value in raw_features(statement, hardware)}
        rows.append(at_level("statement", 0, statement_row(stage, features)))
        for position, loop in enumerate(program.path(stage)):
            rows.append(at_level("loop", own, loop_row(program, stage, loop, position)))
        for name in (stage.name, *dict.fromkeys(read.tensor.name for read in stage.reads)):
            access = next(access for access in statement.accesses if access.buffer == name)
            told = access_features(statement, access, hardware.line_bytes)
            rows.append(
                at_level("buffer", own, {key: scalar(value) for key, value in told.items()} | buffer_row(stage, name))
            )
    return rows


def at_level(level: str, parent: int, cells: Row) -> Row:
    told = {"parent": float(parent), f"is_{level}": 1.0} | {f"{level}.{name}": cells[name] for name in cells}
    return {name: value for name, value in told.items() if value != 0}


def scalar(value: object) -> float:
    return float(np.broadcast_to(np.asarray(value, np.float64), 1)[0])


def program_row(population: Population, program: OneProgram) -> Row:
    task = population.sketch.task
    row = dict.fromkeys(KINDS, 0.0)
    loops: set[Loop] = set()
    for stage in program.stages():
        path = program.path(stage)
        loops |= set(path)
        for kind, count in count_operations(stage).items():
            row[kind] += count * program.product(path)
    sizes = {tensor: math.prod(tensor.shape) * DTYPES[tensor.dtype].bytes for tensor in (*task.inputs, *task.outputs)}
    reduced = [[axis.extent for axis in t.body.axes] for t in task.stages if isinstance(t.body, Reduce)]
    row |= {
        "flop": task.flop,
        "num_statements": len(program.stages()),
        "num_loops": len(loops),
        "input_bytes": sum(sizes[tensor] for tensor in task.inputs if not tensor.is_constant),
        "constant_bytes": sum(sizes[tensor] for tensor in task.inputs if tensor.is_constant),
        "output_bytes": sum(sizes[tensor] for tensor in task.outputs),
        "num_inputs": len(task.inputs),
        "num_outputs": len(task.outputs),
        "largest_spatial": max(math.prod(tensor.shape) for tensor in task.stages),
        "largest_reduce": max(map(math.prod, reduced), default=1),
        "num_knobs": len(population.sketch.knobs),
    }
    steps = Counter(step.name for step in program.schedule.steps)
    return row | {f"num_{name}": float(count) for name, count in steps.items()}


def statement_row(stage: Stage, features: Row) -> Row:
    counts = count_operations(stage)
    kept = {name: features[name] for name in (*NEST_FEATURES, *ALLOCATION_FEATURES, *MACHINE_FEATURES)}
    own = {"flops": float(flops(counts)), "element_bytes": float(DTYPES[stage.tensor.dtype].bytes)}
    return {name: float(count) for name, count in counts.items()} | own | kept


def loop_row(program: OneProgram, stage: Stage, loop: Loop, position: int) -> Row:
    path = program.path(stage)
    statement: Statement = program.statement(stage)
    touched = sum(float(access.elements[position][0]) * access.element_bytes for access in statement.accesses)
    return {
        "extent": float(program.extent(loop)),
        "is_reduce": float(loop.is_reduce),
        "is_parallel": float(loop.annotation == "parallel"),
        "is_vectorized": float(loop.annotation == "vectorize"),
        "is_unrolled": float(statement.unrolled[position][0]),
        "auto_unroll_max_step": float(loop.stage.pragmas.get(loop, 0)),
        "outer": float(program.product(path[:position])),
        "inner": float(program.product(path[position:])),
        "is_around": float(loop.stage is not stage),
        "num_moved": float(sum(position in access.loops for access in statement.accesses)),
        "touched_bytes": touched,
        "working_set": float(statement.working_set[position][0]),
    }


def buffer_row(stage: Stage, name: str) -> Row:
    schedule = stage.schedule
    producer = schedule[name]
    is_local = not producer.is_placeholder and not producer.is_output
    dtype = producer.tensor.dtype
    if is_local and producer.reduction is not None and dtype in ("float16", "bfloat16"):
        dtype = "float32"
    num_reads = sum(read.tensor.name == name for read in stage.reads)
    own = 1 if stage.reduction is None else 2
    return {
        "element_bytes": float(DTYPES[dtype].bytes),
        "num_accesses": float(own if producer is stage else num_reads),
        "is_intermediate": float(is_local and not schedule.is_prepacked(producer)),
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_a_candidate_are_those_of_its_schedule(family: str) -> None:
    for seed in range(2):
        for sketch in sketches_of(family, seed):
            population = sketch.sample(np.random.default_rng(seed), 3)
            for number, values in enumerate(ENCODER.encode(population)):
                found, expected = rows_of(ENCODER, values), slow_rows(population, number)
                assert len(found) == len(expected)
                for mine, slow in zip(found, expected, strict=True):
                    assert mine == pytest.approx(slow, rel=1e-4, abs=1e-5)


def test_a_tensor_that_is_read_twice_is_one_buffer_with_two_accesses() -> None:
    X = te.placeholder((8, 6), name="X")
    k = te.reduce_axis(6, name="k")
    Y = te.compute((8, 8), lambda i, j: te.sum(X[i, k] * X[j, k], axis=k), name="Y")
    rows = rows_of(ENCODER, ENCODER.encode(population_of(Schedule(Task([X], Y))))[0])
    buffers = [row for row in rows if "is_buffer" in row]
    assert [row["buffer.num_accesses"] for row in buffers] == pytest.approx([2, 2])
    assert [row.get("buffer.is_readwrite", 0) for row in buffers] == [1, 0]


def test_weights_that_are_packed_ahead_are_no_statement() -> None:
    X, W = te.placeholder((8, 16), name="X"), te.placeholder((16, 32), name="W", constant=True)
    k = te.reduce_axis(16, name="k")
    s = Schedule(Task([X, W], te.compute((8, 32), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="Y")))
    s["Y"].reorder("j", "i", "k")
    s["W"].pack("Y")
    program, *rows = rows_of(ENCODER, ENCODER.encode(population_of(s))[0])
    assert sum("is_statement" in row for row in rows) == 1
    assert program["program.num_pack"] == 1
    assert program["program.constant_bytes"] == pytest.approx(16 * 32 * 4)
    assert program["program.float_mad"] == pytest.approx(8 * 16 * 32)


def test_a_program_has_a_row_for_each_output_and_its_parts() -> None:
    X = te.placeholder((8, 6), name="X")
    Y = te.compute((8, 6), lambda i, j: X[i, j] + 1.0, name="Y")
    Z = te.compute((8, 6), lambda i, j: X[i, j] * 2.0, name="Z")
    rows = rows_of(ENCODER, ENCODER.encode(population_of(Schedule(Task([X], [Y, Z]))))[0])
    levels = [next(name for name in row if name.startswith("is_"))[3:] for row in rows]
    assert levels == ["program", *["statement", "loop", "loop", "buffer", "buffer"] * 2]
    assert [row.get("parent", 0) for row in rows] == [-1, 0, 1, 1, 1, 1, 0, 6, 6, 6, 6]
