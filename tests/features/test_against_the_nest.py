"""The population path gives what is counted in the loop nest of each candidate, as it is built and after all passes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.features.populations import FAMILIES, Family
from tests.features.walked import (
    Walked,
    count_operations,
    count_reads,
    count_written,
    lowered_statements,
    main_statements,
    reads,
    register_tile,
)
from tilewright.features import Hardware, Statement, access_features, analyze, raw_features, statement_features
from tilewright.schedule import Schedule, Stage
from tilewright.target import Target
from tilewright.testing import programs
from tilewright.testing.schedules import random_schedule

NUM_ROWS = 16
HARDWARE = Hardware.from_target(Target.parse("llvm -mcpu=haswell -num-cores=2"))
# Where no access begins inside a line and none ends where the next begins, lines are counted exactly.
ALIGNED = ("gemm with pragma",)


class Population:
    """Random candidates of a family: analysed together, and one by one as nests."""

    def __init__(self, family: Family, seed: int, *, is_dividing: bool) -> None:
        self.matrix: NDArray[np.int64] = family.sample(seed, NUM_ROWS, is_dividing=is_dividing)
        self.statements = analyze(family.population(self.matrix), NUM_ROWS, HARDWARE)
        self.raw = {s.stage.name: dict(raw_features(s, HARDWARE)) for s in self.statements}
        self.concrete = [family.concrete(self.matrix, row) for row in range(NUM_ROWS)]

    def candidates(self) -> list[tuple[int, Statement, Walked, Schedule]]:
        found = []
        for row, schedule in enumerate(self.concrete):
            nests = main_statements(schedule)
            assert list(nests.keys() ^ {s.stage.name for s in self.statements}) == []
            found += [(row, s, nests[s.stage.name], schedule) for s in self.statements]
        return found

    def feature(self, statement: Statement, name: str, row: int) -> float:
        return _entry(self.raw[statement.stage.name][name], row)


def _entry(column: object, row: int) -> float:
    return float(np.broadcast_to(np.asarray(column, np.float64), NUM_ROWS)[row])


BOTH = pytest.mark.parametrize("is_dividing", [True, False], ids=["dividing", "not dividing"])
ALL = pytest.mark.parametrize("name", FAMILIES)


@BOTH
@ALL
def test_loops_are_those_of_the_nest(name: str, is_dividing: bool) -> None:
    """Iterations that a tile wastes are executed, and so they count."""
    population = Population(FAMILIES[name], 0, is_dividing=is_dividing)
    for row, statement, walked, _ in population.candidates():
        found = {"iterations": walked.iterations, "num_loops": len(walked.loops)}
        for kind in ("vectorize", "unroll", "parallel"):
            extents = walked.extents_of(kind)
            found[f"{kind}_num"] = len(extents)
            found[f"{kind}_product"] = int(np.prod(extents))
            found[f"{kind}_length"] = extents[-1] if extents else 0
        expected = {key: population.feature(statement, key, row) for key in found}
        assert expected == found, f"{statement.stage.name} with {population.matrix[row].tolist()}"


@BOTH
@ALL
def test_after_all_passes_loops_are_in_pieces_that_make_up_the_whole(name: str, is_dividing: bool) -> None:
    """Loops are cut at conditions and copied; what is written out or in lanes stays what it is in every copy."""
    population = Population(FAMILIES[name], 4, is_dividing=is_dividing)
    for row, schedule in enumerate(population.concrete):
        nests = lowered_statements(schedule)
        for statement in population.statements:
            _check_copies(population.feature, statement, nests[statement.stage.name], row)


def _check_copies(
    feature: Callable[[Statement, str, int], float], s: Statement, copies: list[Walked], row: int
) -> None:
    assert feature(s, "iterations", row) == sum(walked.iterations for walked in copies)
    for walked in copies:
        assert feature(s, "unroll_num", row) == len(walked.extents_of("unroll"))
        assert feature(s, "unroll_product", row) == np.prod(walked.extents_of("unroll"))
        assert feature(s, "parallel_num", row) == len(walked.extents_of("parallel"))


@BOTH
@ALL
def test_register_tiles_are_those_of_the_nest(name: str, is_dividing: bool) -> None:
    population = Population(FAMILIES[name], 5, is_dividing=is_dividing)
    for row, statement, walked, schedule in population.candidates():
        if statement.stage.reduction is not None:
            found = [
                population.feature(statement, key, row)
                for key in ("accumulates_in_registers", "register_tile", "reduction_run")
            ]
            assert found == _expected_tile(schedule[statement.stage.name], walked), f"{population.matrix[row].tolist()}"


def _expected_tile(stage: Stage, walked: Walked) -> list[float]:
    tile = register_tile(walked, {leaf.var for leaf in stage.leaves if leaf.is_reduce})
    return [0, 0, 0] if tile is None else [1, *tile]


@ALL
def test_operations_are_those_of_the_nest(name: str) -> None:
    """Only of tiles that divide: the tests for the end of a reduction are no operations of the statement."""
    population = Population(FAMILIES[name], 1, is_dividing=True)
    for row, statement, walked, _ in population.candidates():
        counted = {kind: number for kind, number in statement.counts.items() if number}
        assert counted == count_operations(walked)
        for kind, number in counted.items():
            assert population.feature(statement, kind, row) == number * walked.iterations


@BOTH
@ALL
def test_bytes_and_strides_are_those_of_the_nest(name: str, is_dividing: bool) -> None:
    """Different elements are counted by their addresses, those out of bounds left out."""
    population = Population(FAMILIES[name], 2, is_dividing=is_dividing)
    for row, statement, walked, schedule in population.candidates():
        written = statement.accesses[0]
        assert written.elements[0][row] * written.element_bytes == count_written(schedule, statement.stage.name)
        for buffer, loads in reads(walked).items():
            access = next(a for a in statement.accesses if a.buffer == buffer)
            features = access_features(statement, access, HARDWARE.line_bytes)
            expected = count_reads(walked, loads)
            for key in ("bytes", "unique_bytes", "stride"):
                where = f"{key} of {buffer} in {statement.stage.name} with {population.matrix[row].tolist()}"
                assert _entry(features[key], row) == expected[key], where


@BOTH
@ALL
def test_different_lines_are_near_those_of_the_nest(name: str, is_dividing: bool) -> None:
    """Exact where rows are whole lines; elsewhere rows may begin anywhere in a line, which is taken on average."""
    population = Population(FAMILIES[name], 3, is_dividing=is_dividing)
    for row, statement, walked, _ in population.candidates():
        for buffer, loads in reads(walked).items():
            access = next(a for a in statement.accesses if a.buffer == buffer)
            expected = count_reads(walked, loads)
            assert expected["unique_lines"] <= access.lines[0][row] + 1e-9
            assert access.lines[0][row] <= 1.5 * expected["unique_lines"]
            if name in ALIGNED and is_dividing:
                features = access_features(statement, access, HARDWARE.line_bytes)
                assert _entry(features["unique_lines"], row) == expected["unique_lines"]
                assert _entry(features["lines"], row) == expected["lines"]


@pytest.mark.parametrize("family", programs.FAMILIES)
def test_loops_of_random_schedules_are_those_of_the_nest(family: str) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        schedule = random_schedule(programs.random_task(family, rng, 3000), rng, 10)
        _add_pragmas(schedule, rng)
        assert np.isfinite(statement_features(schedule, 1, HARDWARE).values).all()
        nests, lowered = main_statements(schedule), lowered_statements(schedule)
        for statement in analyze(schedule, 1, HARDWARE):
            walked = nests[statement.stage.name]
            assert statement.path.iterations[0] == walked.iterations
            features = dict(raw_features(statement, HARDWARE))
            for kind in ("vectorize", "unroll", "parallel"):
                product = np.broadcast_to(np.asarray(features[f"{kind}_product"]), 1)[0]
                assert product == np.prod(walked.extents_of(kind)), f"{kind} in\n{schedule}"
            assert statement.path.iterations[0] == sum(copy.iterations for copy in lowered[statement.stage.name])


def _add_pragmas(schedule: Schedule, rng: np.random.Generator) -> None:
    """On any loops, inside each other or not: more of them than random schedules have."""
    loops = [loop for stage in schedule.active_stages for loop in stage.leaves]
    for at in rng.integers(len(loops), size=2) if loops else ():
        loops[at].stage.pragma(loops[at], auto_unroll_max_step=int(rng.choice([4, 16, 33, 64])))


@pytest.mark.parametrize("family", programs.FAMILIES)
def test_register_tiles_of_random_schedules_are_those_of_the_nest(family: str) -> None:
    """Without pragmas: loops that these unroll might be in registers too, which is not counted."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        schedule = random_schedule(programs.random_task(family, rng, 3000), rng, 14)
        nests = main_statements(schedule)
        has_pragma = any(any(stage.pragmas.values()) for stage in schedule.active_stages)
        for statement in analyze(schedule, 1, HARDWARE):
            if statement.stage.reduction is None or has_pragma:
                continue
            features = dict(raw_features(statement, HARDWARE))
            found = [_entry(features[key], 0) for key in ("accumulates_in_registers", "register_tile", "reduction_run")]
            assert found == _expected_tile(statement.stage, nests[statement.stage.name]), str(schedule)
