"""Populations: values, each the schedules and traces of its rows."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.errors import UsageError
from tilewright.features import StatementEncoder
from tilewright.schedule import Schedule
from tilewright.space import Candidate, Decision, Population, Sketch, SpaceOptions, TileKnob, derive, open_split
from tilewright.te import Task
from tilewright.workloads import parse

TARGET = tw.Target.parse("haswell")
OPTIONS = SpaceOptions(TARGET, threads=2)
SKETCHES = derive(parse("gmm:60x64x48"), OPTIONS)
SKETCH = SKETCHES[0]
RNG = np.random.default_rng


def without_knobs() -> Sketch:
    x = te.placeholder((4, 4), name="X")
    (sketch,) = derive(Task([x], te.compute((4, 4), lambda i, j: x[i, j] + 1.0, "Y")), OPTIONS)
    assert not sketch.knobs
    return sketch


def test_what_the_caller_does_with_his_array_changes_nothing() -> None:
    rows = SKETCH.sample(RNG(0), 4).rows.copy()
    population = Population(SKETCH, rows)
    before = population.trace(0)
    rows[:] = 0
    assert population.trace(0) == before
    assert rows.flags.writeable


def test_rows_cannot_be_written() -> None:
    population = SKETCH.sample(RNG(0), 4)
    with pytest.raises(ValueError, match="read-only"):
        population.rows[0] = 0
    with pytest.raises(AttributeError):
        population.rows = np.zeros_like(population.rows)  # type: ignore[misc]


def test_the_schedule_is_made_once() -> None:
    population = SKETCH.sample(RNG(0), 4)
    assert population.schedule is population.schedule


def test_equal_rows_of_a_sketch_are_equal_populations() -> None:
    first, second = SKETCH.sample(RNG(0), 4), SKETCH.sample(RNG(0), 4)
    assert first == second
    assert hash(first) == hash(second)
    assert first != SKETCH.sample(RNG(1), 4)
    assert first != first[:3]
    assert len({Population(sketch, np.zeros((1, len(sketch.knobs)), np.int64)) for sketch in SKETCHES}) == len(SKETCHES)


def test_parts_of_a_population() -> None:
    population = SKETCH.sample(RNG(0), 6)
    assert population[2:4].rows.tolist() == population.rows[2:4].tolist()
    assert population[np.asarray([4, 4, 0])].rows.tolist() == population.rows[[4, 4, 0]].tolist()
    assert population[population.rows[:, 0] >= 0] == population
    assert len(population[:0]) == 0
    assert population[2] == Candidate(SKETCH, tuple(population.rows[2].tolist()))
    assert population[-1] == list(population)[5]
    with pytest.raises(IndexError):
        population[6]


def test_parts_are_joined_in_order() -> None:
    population = SKETCH.sample(RNG(0), 6)
    assert Population.concatenate([population[:2], population[2:2], population[2:]]) == population
    assert Population.of(list(population)) == population


@pytest.mark.parametrize("parts", [[], [sketch.sample(RNG(0), 2) for sketch in SKETCHES[:2]]])
def test_only_parts_of_one_sketch_are_joined(parts: list[Population]) -> None:
    with pytest.raises(UsageError, match=f"candidates of one sketch, got {len(parts)} sketches.*for each sketch"):
        Population.concatenate(parts)


def test_unique_has_each_candidate_once() -> None:
    population = SKETCH.sample(RNG(0), 6)
    twice = Population.concatenate([population, population])
    assert len(twice.unique()) == len({candidate.row for candidate in population})
    assert set(twice.unique()) == set(population)


def test_a_candidate_has_the_trace_of_its_row() -> None:
    population = SKETCH.sample(RNG(0), 5)
    for number, candidate in enumerate(population):
        assert candidate.trace == population.trace(number) == population[number].trace
        assert SKETCH.candidate_of(candidate.trace) == candidate


def test_whether_a_candidate_is_legal_depends_on_it_alone() -> None:
    population = SKETCH.sample(RNG(0), 64)
    legal = population.legal(TARGET)
    assert 0 < legal.sum() < 64
    assert [bool(population[n : n + 1].legal(TARGET)[0]) for n in range(64)] == legal.tolist()


@pytest.mark.parametrize("sketch", [SKETCH, without_knobs()], ids=["knobs", "no knobs"])
def test_a_population_of_nobody_has_nothing(sketch: Sketch) -> None:
    nobody = sketch.sample(RNG(0), 0)
    assert len(nobody) == len(nobody.unique()) == len(nobody.legal(TARGET)) == len(list(nobody)) == 0
    assert len(StatementEncoder().encode(nobody)) == 0


def test_a_sketch_without_knobs_has_one_candidate() -> None:
    sketch = without_knobs()
    population = sketch.sample(RNG(0), 3)
    assert sketch.cardinality == 1
    assert population.rows.shape == (3, 0)
    assert population.unique().rows.shape == (1, 0)
    assert population.legal(TARGET).shape == (3,)
    assert isinstance(population.trace(2).apply(sketch.task), Schedule)


def test_knobs_of_the_same_name_decide_each_for_itself() -> None:
    x = te.placeholder((64, 64), name="X")
    task = Task([x], te.compute((64, 64), lambda i, j: x[i, j] + 1.0, "Y"))
    first, second = TileKnob("Y.rows", [2, 4]), TileKnob("Y.rows", [8, 16])
    sketch = Sketch(task, (open_split("Y", "i", Decision(first)), open_split("Y", "j", Decision(second))), OPTIONS)
    population = Population(sketch, np.asarray([[0, 1], [1, 0]]))
    assert [population.trace(n).apply(task)["Y"].leaves[1].extent for n in range(2)] == [2, 4]
    assert [population.trace(n).apply(task)["Y"].leaves[3].extent for n in range(2)] == [16, 8]
    assert [sketch.candidate_of(candidate.trace) for candidate in population] == list(population)


NUM_KNOBS = len(SKETCH.knobs)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(NUM_KNOBS, np.int64), r"a matrix of integers, \[candidate, knob\], got int64 \[4\]"),
        (np.zeros((2, NUM_KNOBS)), r"a matrix of integers.*got float64 \[2, 4\]"),
        ([[0] * NUM_KNOBS], r"a matrix of integers.*got list"),
        (np.zeros((2, 3), np.int64), "a choice for each of the 4 knobs of .*, got 3 choices; use rows of this sketch"),
        (np.full((2, NUM_KNOBS), -1), r"choices of C\.cache\.i are 0 to .*, got -1 in row 0"),
        (np.full((2, NUM_KNOBS), 10**6), r"choices of C\.cache\.i are 0 to .*, got 1000000 in row 0"),
    ],
)
def test_what_is_no_population_of_the_sketch_is_refused(rows: np.ndarray, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Population(SKETCH, rows)


def test_small_integers_are_rows_too() -> None:
    rows = np.zeros((2, NUM_KNOBS), np.uint8)
    assert Population(SKETCH, rows) == Population(SKETCH, rows.astype(np.int64))  # type: ignore[arg-type]
