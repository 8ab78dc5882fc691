"""Rows that differ only in how far pragmas may unroll are often the same program."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.ir import format_nest, lower
from tilewright.schedule import Trace
from tilewright.schedule.steps import PragmaStep
from tilewright.space import (
    Candidate,
    Decision,
    Population,
    Sketch,
    SpaceOptions,
    TileKnob,
    UnrollKnob,
    as_programs,
    derive,
    least_unrolled,
    open_pragma,
    open_split,
)
from tilewright.target import Target
from tilewright.te import Task
from tilewright.workloads import parse

TARGET = Target.parse("llvm -mcpu=haswell")
WORKLOADS = (
    "gmm:24x36x40",
    "c2d:1x9x9x5,8,3x3,s1,p1+relu",
    "c2d:1x8x8x16,16,3x3,s1,p1",
    "dep:1x12x12x16,3x3,s1,p1",
    "t2d:1x4x4x8,8,4x4,s2,p1",
    "nrm:2x4x50",
    "sfm:2x6x40",
)


def code_of(trace: Trace, task: Task) -> str:
    module = lower(trace.apply(task))
    return "\n".join(map(format_nest, (module.kernel, *(pack.nest for pack in module.packs))))


def sketches_of(workload: str) -> list[Sketch]:
    return derive(parse(workload), SpaceOptions(TARGET, 2))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_row_of_a_program_lowers_to_the_same_loops_and_says_no_more_of_unrolling(workload: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in sketches_of(workload):
        population = sketch.sample(rng, 64)
        population = population[population.legal(TARGET)][:12]
        programs = least_unrolled(population)
        for place in range(len(population)):
            assert code_of(population.trace(place), sketch.task) == code_of(programs.trace(place), sketch.task)
        for column, knob in enumerate(sketch.knobs):
            if column in sketch.pragma_columns:
                assert (knob.table[programs.rows[:, column]] <= knob.table[population.rows[:, column]]).all()
            else:
                assert np.array_equal(programs.rows[:, column], population.rows[:, column])
        assert least_unrolled(programs) == programs


@pytest.mark.parametrize("workload", ["gmm:24x36x40", "c2d:1x8x8x16,16,3x3,s1,p1"])
def test_rows_of_one_tiling_are_one_program_where_their_loops_are_the_same_and_else_several(workload: str) -> None:
    nums = set()
    for sketch in sketches_of(workload):
        (column,) = sketch.pragma_columns or (None,)
        if column is None:
            continue
        population = sketch.sample(np.random.default_rng(1), 64)
        for row in population[population.legal(TARGET)].rows[:6]:
            rows = np.repeat(row[None], sketch.knobs[column].cardinality, axis=0)
            rows[:, column] = np.arange(len(rows))
            alike = Population(sketch, rows)
            num_codes = len({code_of(alike.trace(place), sketch.task) for place in range(len(alike))})
            assert len(least_unrolled(alike).unique()) == num_codes
            nums.add(num_codes)
    assert len(nums) > 1, "how many choices differ is not the same for all tilings"


def test_a_knob_that_decides_something_else_too_is_left_alone() -> None:
    A = te.placeholder((64,), name="A")
    task = Task([A], [te.compute((64,), lambda i: A[i] + 1.0, name="B")])
    knob = UnrollKnob("B.both", [2, 4, 8])
    steps = (open_split("B", "i", Decision(knob)), open_pragma("B", "i.0", Decision(knob)))
    sketch = Sketch(task, steps, SpaceOptions(TARGET, 1))
    assert sketch.pragma_columns == ()
    population = Population(sketch, np.arange(3)[:, None])
    assert least_unrolled(population) is population


def test_choices_of_a_knob_may_stand_in_any_order_and_more_than_once() -> None:
    A = te.placeholder((8, 64), name="A")
    task = Task([A], [te.compute((8, 64), lambda i, j: A[i, j] + 1.0, name="B")])
    knob = UnrollKnob("B.unroll", [1024, 0, 64, 16, 0, 64])
    sketch = Sketch(task, (open_pragma("B", "i", Decision(knob)),), SpaceOptions(TARGET, 1))
    programs = least_unrolled(Population(sketch, np.arange(6)[:, None]))
    assert programs.rows[:, 0].tolist() == [2, 1, 2, 1, 1, 2]


def pragmas_in_each_other(*, knob_in_both: bool, fixed: int | None = None) -> Sketch:
    """A tiling with pragmas around its loops, and a loop of another stage."""
    A = te.placeholder((4, 6), name="A")
    B = te.compute((4, 6), lambda i, j: A[i, j] + 1.0, name="B")
    task = Task([A], [te.compute((4, 6), lambda i, j: B[i, j] * 2.0, name="C")])
    inner = UnrollKnob("C.inner", [0, 2, 16, 64, 2**40])
    outer = inner if knob_in_both else UnrollKnob("C.outer", [1024, 0, 64, 4, 8, 16])
    pragmas = [open_pragma("C", "i", Decision(outer)), open_pragma("C", "j.0", Decision(inner))]
    if fixed is not None:
        pragmas[0] = PragmaStep("C", "i", fixed)
    steps = (open_split("C", "j", Decision(TileKnob("C.j", [1, 2, 3, 6]))), *pragmas)
    return Sketch(task, (*steps, PragmaStep("B", "i", 6)), SpaceOptions(TARGET, 1))


@pytest.mark.parametrize(
    "sketch",
    [
        pragmas_in_each_other(knob_in_both=False),
        pragmas_in_each_other(knob_in_both=True),
        pragmas_in_each_other(knob_in_both=False, fixed=0),
        pragmas_in_each_other(knob_in_both=False, fixed=6),
        pragmas_in_each_other(knob_in_both=False, fixed=1000),
    ],
)
def test_pragmas_in_each_other_are_one_program_where_their_loops_are_the_same(sketch: Sketch) -> None:
    rows = np.array(list(np.ndindex(*(knob.cardinality for knob in sketch.knobs))))
    population = Population(sketch, rows)
    programs = least_unrolled(population)
    codes = [code_of(population.trace(place), sketch.task) for place in range(len(rows))]
    pairs = set(zip(codes, map(tuple, programs.rows.tolist()), strict=True))
    assert codes == [code_of(programs.trace(place), sketch.task) for place in range(len(rows))]
    assert len(pairs) == len(set(codes)) == len(programs.unique()) > 1
    assert least_unrolled(programs) == programs


def test_candidates_of_several_sketches_keep_their_order() -> None:
    sketches = sketches_of("gmm:24x36x40")
    candidates = [next(iter(sketch.sample(np.random.default_rng(place), 1))) for place, sketch in enumerate(sketches)]
    candidates += candidates[::-1]
    programs = as_programs(candidates)
    assert [program.sketch for program in programs] == [candidate.sketch for candidate in candidates]
    assert programs == [next(iter(least_unrolled(Population.of([candidate])))) for candidate in candidates]
    assert as_programs([]) == []


def test_what_has_no_knobs_is_its_own_program() -> None:
    sketch = Sketch(parse("gmm:4x4x4"), (), SpaceOptions(TARGET, 1))
    assert as_programs([Candidate(sketch, ())]) == [Candidate(sketch, ())]
    empty = sketches_of("gmm:24x36x40")[0].sample(np.random.default_rng(0), 0)
    assert len(least_unrolled(empty)) == 0
