"""Candidates of several sketches in one matrix, and candidates by their numbers."""

from __future__ import annotations

from itertools import product

import numpy as np

from tests.search.spaces import SKETCHES, TARGET, sketch_of
from tilewright.search.enumeration import numbered
from tilewright.search.operators import change_sketch, random_rows
from tilewright.search.points import Points, kinds, num_choices
from tilewright.space import Candidate, Population

MIXED = [sketch_of([1, 2, 4], [8, 16]), sketch_of(), sketch_of([2, 4, 8, 16]), sketch_of([1, 2, 4], [8, 16])]
CANDIDATES = [
    Candidate(MIXED[0], (2, 1)),
    Candidate(MIXED[2], (3,)),
    Candidate(MIXED[1], ()),
    Candidate(MIXED[0], (0, 1)),
    Candidate(MIXED[3], (1, 0)),
]


def test_candidates_of_any_sketch_go_in_and_come_out() -> None:
    points = Points.of(MIXED, CANDIDATES)
    assert points.candidates() == CANDIDATES
    assert points[np.asarray([4, 1])].candidates() == [CANDIDATES[4], CANDIDATES[1]]
    assert len(Points.of(MIXED, [])) == 0
    assert Points.of(MIXED[1:2], CANDIDATES[2:3]).candidates() == CANDIDATES[2:3]


def test_populations_are_those_of_the_sketches_that_have_points() -> None:
    found = list(Points.of(MIXED, CANDIDATES[:3]).populations())
    assert [places.tolist() for places, _ in found] == [[0], [2], [1]]
    assert [population for _, population in found] == [
        Population.of([candidate]) for candidate in (CANDIDATES[0], CANDIDATES[2], CANDIDATES[1])
    ]


def test_some_points_are_replaced_by_others() -> None:
    points = Points.of(MIXED, CANDIDATES[:2])
    mask = np.asarray([False, True])
    assert points.where(mask, Points.of(MIXED, CANDIDATES[2:4])).candidates() == [CANDIDATES[0], CANDIDATES[3]]


def test_legality_is_that_of_each_candidate() -> None:
    rng = np.random.default_rng(0)
    candidates = [candidate for sketch in SKETCHES for candidate in sketch.sample(rng, 8)]
    mixed = [candidates[place] for place in rng.permutation(len(candidates))]
    alone = [bool(Population.of([candidate]).legal(TARGET)[0]) for candidate in mixed]
    assert Points.of(SKETCHES, mixed).legal(TARGET).tolist() == alone
    assert 0 < sum(alone) < len(alone)


def test_sketches_with_the_same_tables_are_of_one_kind() -> None:
    assert kinds(MIXED).tolist() == [0, 1, 2, 0]
    assert num_choices(MIXED).tolist() == [[3, 2], [1, 1], [4, 1], [3, 2]]


def test_rows_stay_where_the_new_sketch_has_the_same_choices() -> None:
    rng = np.random.default_rng(0)
    moved = change_sketch(rng, Points.of(MIXED, [CANDIDATES[0]] * 200)).candidates()
    assert {candidate.sketch for candidate in moved} == set(MIXED)
    assert {candidate.row for candidate in moved if candidate.sketch is MIXED[3]} == {(2, 1)}
    assert {candidate.row for candidate in moved if candidate.sketch is MIXED[2]} == {(0,), (1,), (2,), (3,)}


def test_random_rows_are_within_the_tables() -> None:
    owners = np.repeat(np.arange(4), 100)
    rows = random_rows(np.random.default_rng(0), MIXED, owners)
    assert (rows[owners == 0].max(axis=0) == [2, 1]).all()
    assert rows[owners == 1].max() == 0
    assert (rows[owners == 2].max(axis=0) == [3, 0]).all()
    assert rows.min() == 0


def test_numbers_count_through_the_rows_with_the_first_knob_fastest() -> None:
    (sketch,) = MIXED[:1]
    expected = [row[::-1] for row in product(range(2), range(3))]
    assert [candidate.row for candidate in numbered(sketch, 0, 100)] == expected
    assert [candidate.row for candidate in numbered(sketch, 4, 100)] == expected[4:]
    assert len(numbered(sketch, 6, 5)) == 0
    assert [candidate.row for candidate in numbered(MIXED[1], 0, 5)] == [()]


def test_numbers_beyond_64_bits_are_numbers() -> None:
    sketch = sketch_of(*[range(1, 8193)] * 5)
    assert sketch.cardinality == 8192**5 > 2**64
    assert numbered(sketch, 8192**5 - 2, 9).rows.tolist() == [[8190, *[8191] * 4], [8191] * 5]
