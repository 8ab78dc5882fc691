"""Loop contexts, curves and knobs say of each candidate what a walk through its one schedule says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.features import populations
from tests.features.one_program import OneProgram, population_of, told
from tests.features.walked import addresses, main_statements, reads
from tilewright import te
from tilewright.errors import UsageError
from tilewright.features import CurveEncoder, Encoder, KnobsEncoder, LoopContextEncoder
from tilewright.features.operations import count_operations
from tilewright.schedule import Loop, Schedule, Stage
from tilewright.te import Task
from tilewright.testing.encoder_checks import EncoderChecks, sketches_of
from tilewright.testing.programs import FAMILIES
from tilewright.testing.schedules import random_schedule

CONTEXT, CURVES, KNOBS = LoopContextEncoder(), CurveEncoder(), KnobsEncoder()


class TestLoopContextEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return LoopContextEncoder()


class TestShortLoopContextEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return LoopContextEncoder(num_loops=2, num_buffers=1)


class TestCurveEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return CurveEncoder()


class TestKnobsEncoder(EncoderChecks):
    def make(self) -> Encoder:
        return KnobsEncoder()


# --- the slow way -----------------------------------------------------------------------------------------------------


def context_row(program: OneProgram, stage: Stage) -> dict[str, float]:
    path = program.path(stage)
    row = statement_cells(program, stage)
    for number, loop in enumerate(reversed(path)):
        position = len(path) - 1 - number
        cells = loop_cells(program, stage, loop) | {
            "top_down": program.product(path[: position + 1]),
            "bottom_up": program.product(path[position:]),
            "nest_level": sum(program.extent(other) > 1 for other in path[: position + 1]),
        }
        row |= {f"loop{number}.{name}": float(value) for name, value in cells.items()}
        for buffer, (count, reuse) in enumerate(touches(program, stage, position)):
            access = program.statement(stage).accesses[buffer]
            step = access.span[position][0] - access.span[position + 1][0]
            row[f"loop{number}.buffer{buffer}.count"] = count
            row[f"loop{number}.buffer{buffer}.reuse"] = reuse
            row[f"loop{number}.buffer{buffer}.stride"] = step / max(program.extent(loop) - 1, 1)
    return {name: value for name, value in row.items() if value != 0 and name in CONTEXT.columns}


def curve_row(program: OneProgram, stage: Stage) -> dict[str, float]:
    path, statement = program.path(stage), program.statement(stage)
    row = statement_cells(program, stage)
    row["parallel"] = program.product([loop for loop in path if loop.annotation == "parallel"])
    row["vectorized"] = program.product([loop for loop in path if loop.annotation == "vectorize"])
    row["unrolled"] = program.product([loop for n, loop in enumerate(path) if statement.unrolled[n][0]])
    levels = [touches(program, stage, position) for position in range(len(path) + 1)]
    for buffer, access in enumerate(statement.accesses[:4]):
        points = [(levels[level][buffer], program.product(path[:level])) for level in range(len(path) + 1)]
        row[f"buffer{buffer}.count"] = points[0][0][0]
        for t in range(20):
            fitting = [(reuse, entered) for (count, reuse), entered in points if count <= 2**t]
            row[f"buffer{buffer}.reuse{t}"] = max((reuse for reuse, _ in fitting), default=0.0)
            fewest = min((entered for _, entered in fitting), default=program.product(path))
            row[f"buffer{buffer}.top_down{t}"] = float(fewest)
        for position, loop in enumerate(path):
            step = (access.span[position][0] - access.span[position + 1][0]) / max(program.extent(loop) - 1, 1)
            if position in access.loops and program.extent(loop) > 1:
                row[f"buffer{buffer}.stride"] = step
            if loop.annotation == "vectorize":
                row[f"buffer{buffer}.vector_stride"] = step
    return {name: value for name, value in row.items() if value != 0}


def statement_cells(program: OneProgram, stage: Stage) -> dict[str, float]:
    counts = {name: float(number) for name, number in count_operations(stage).items()}
    return {"iterations": float(program.product(program.path(stage)))} | counts


def loop_cells(program: OneProgram, stage: Stage, loop: Loop) -> dict[str, float]:
    position = program.path(stage).index(loop)
    return {
        "extent": program.extent(loop),
        "is_reduce": loop.is_reduce,
        "is_parallel": loop.annotation == "parallel",
        "is_vectorized": loop.annotation == "vectorize",
        "is_unrolled": program.statement(stage).unrolled[position][0],
        "auto_unroll_max_step": float(loop.stage.pragmas.get(loop, 0)),
    }


def touches(program: OneProgram, stage: Stage, level: int) -> list[tuple[float, float]]:
    """Of each buffer how many elements the loops from `level` on touch, and how often each of them."""
    found = []
    for access in program.statement(stage).accesses:
        count = float(access.elements[level][0])
        executions = program.product(program.path(stage)[level:])
        found.append((count, executions * access.num_accesses / count))
    return found


# --- compared ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_a_candidate_are_those_of_its_schedule(family: str) -> None:
    for sketch in sketches_of(family)[:3]:
        population = sketch.sample(np.random.default_rng(1), 3)
        contexts, curves = CONTEXT.encode(population), CURVES.encode(population)
        for number in range(len(population)):
            assert_rows(OneProgram.of(population, number), contexts[number], curves[number])


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_any_schedule(family: str) -> None:
    schedule = random_schedule(sketches_of(family)[0].task, np.random.default_rng(2), 10)
    population = population_of(schedule)
    assert_rows(OneProgram.of(population, 0), CONTEXT.encode(population)[0], CURVES.encode(population)[0])


def assert_rows(program: OneProgram, contexts: np.ndarray, curves: np.ndarray) -> None:
    stages = program.stages()
    assert len(stages) == len(contexts) == len(curves)
    for stage, context, curve in zip(stages, contexts, curves, strict=True):
        assert told(CONTEXT.columns, context) == pytest.approx(context_row(program, stage), rel=1e-4, abs=1e-4)
        assert told(CURVES.columns, curve) == pytest.approx(curve_row(program, stage), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", ["gemm", "packed gemm", "depthwise", "strided conv1d"])
def test_counts_and_strides_are_those_of_the_addresses(name: str) -> None:
    """Every iteration of the nest is walked: different addresses are counted, and their distances taken."""
    family = populations.FAMILIES[name]
    matrix = family.sample(0, 3, is_dividing=True)
    for number in range(len(matrix)):
        schedule = family.concrete(matrix, number)
        walked = main_statements(schedule)
        stages = [s for s in schedule.active_stages if not schedule.is_prepacked(s)]
        rows = CONTEXT.encode(population_of(schedule))[0]
        for stage, row in zip(stages, rows, strict=True):
            found = told(CONTEXT.columns, row)
            running = [n for n in range(24) if found.get(f"loop{n}.extent", 0) > 1.5]  # innermost first
            loops = walked[stage.name].loops
            assert [found[f"loop{n}.extent"] for n in reversed(running)] == pytest.approx([f.extent for f in loops])
            order = list(dict.fromkeys(read.tensor.name for read in stage.reads))
            for buffer, loads in reads(walked[stage.name]).items():
                if buffer not in order or len(loads) > 1:
                    continue
                slot = 1 + order.index(buffer)
                table = addresses(loops, loads[0].buffer, loads[0].indices)
                for depth, n in enumerate(reversed(running)):
                    inside = table[(0,) * depth]
                    assert found[f"loop{n}.buffer{slot}.count"] == pytest.approx(len(np.unique(inside)), rel=1e-4)
                    step = abs(int(inside.reshape(len(inside), -1)[1, 0] - inside.reshape(len(inside), -1)[0, 0]))
                    assert found.get(f"loop{n}.buffer{slot}.stride", 0.0) == pytest.approx(step, rel=1e-4)


def test_curves_of_a_product_by_hand() -> None:
    """C[4, 8] = A[4, 16] B[16, 8] in the order i, j, k: a row of A is used for 8 columns, B as a whole for each i."""
    A, B = te.placeholder((4, 16), name="A"), te.placeholder((16, 8), name="B")
    k = te.reduce_axis(16, name="k")
    task = Task([A, B], te.compute((4, 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C"))
    (row,) = CURVES.encode(population_of(Schedule(task)))[0]
    found = told(CURVES.columns, row)
    reuse = [round(found.get(f"buffer1.reuse{t}", 0.0), 2) for t in range(8)]
    assert reuse == [1, 1, 1, 1, 8, 8, 8, 8]  # with 16 elements of A at hand, each is used for all j
    entered = [round(found[f"buffer2.top_down{t}"]) for t in range(8)]
    assert entered == [512, 512, 512, 512, 32, 32, 32, 1]  # B: one column from 16 on, all of it from 128 on
    assert round(found["buffer2.reuse7"]) == 4


def test_curves_are_as_wide_for_any_operator() -> None:
    widths = {CURVES.encode(sketches_of(f)[0].sample(np.random.default_rng(0), 2)).shape[2] for f in FAMILIES}
    assert widths == {len(CURVES.columns)}


def test_loops_and_buffers_beyond_the_width_are_left_out() -> None:
    population = max(sketches_of("conv2d"), key=lambda s: len(s.steps)).sample(np.random.default_rng(0), 3)
    whole, cut = CONTEXT, LoopContextEncoder(num_loops=3, num_buffers=2)
    kept = [whole.columns.index(name) for name in cut.columns]
    np.testing.assert_array_equal(cut.encode(population), whole.encode(population)[:, :, kept])


def test_a_scalar_has_no_loops() -> None:
    A = te.placeholder((), name="A")
    population = population_of(Schedule(Task([A], te.compute((), lambda: A[()] * 2.0, name="B"))))
    (context,), (curve,) = CONTEXT.encode(population)[0], CURVES.encode(population)[0]
    assert told(CONTEXT.columns, context) == pytest.approx({"iterations": 1.0, "float_mul": 1.0})
    assert told(CURVES.columns, curve)["buffer1.reuse0"] == 1.0


def test_knobs_are_the_numbers_that_were_chosen() -> None:
    for sketch in sketches_of("gemm"):
        population = sketch.sample(np.random.default_rng(0), 4)
        for number, (row,) in enumerate(KNOBS.encode(population)):
            found = told(KNOBS.columns, row)
            for k, knob in enumerate(sketch.knobs):
                for column, value in enumerate(knob.table[population.rows[number, k]]):
                    assert found.get(f"knob{k}.{column}", 0.0) == pytest.approx(float(value), rel=1e-4)
            assert found["num_split"] == pytest.approx(sum(step.name == "split" for step in sketch.steps))


@pytest.mark.parametrize("encoder", [LoopContextEncoder, KnobsEncoder])
@pytest.mark.parametrize("value", [0, -1, 257, 2.0, "3", True, math.inf])
def test_sizes_are_whole_numbers(encoder: type[Encoder], value: object) -> None:
    option = next(iter(encoder().options))
    with pytest.raises(UsageError, match=f"{option} of the encoder {encoder.name} is from 1 to 256, got"):
        encoder(**{option: value})
