"""Neighbours of the fastest programs: by what those measured and what the scores say of the difference."""

from __future__ import annotations

import numpy as np

from tests.search.spaces import TARGET, bowl_scores, sketch_of
from tilewright.search.base import FloatArray
from tilewright.search.near import near_fastest
from tilewright.search.operators import neighbours
from tilewright.space import Candidate, Population

SKETCH, OTHER = sketch_of([1, 2, 4, 8, 16], [1, 2, 4]), sketch_of([1, 2, 4, 8, 16], [1, 2, 4])
CENTRE = Candidate(SKETCH, (2, 1))


def alike(population: Population) -> FloatArray:
    return np.zeros(len(population))


def test_neighbours_differ_in_one_knob_by_a_neighbouring_choice() -> None:
    assert {candidate.row for candidate in neighbours(CENTRE)} == {(1, 1), (3, 1), (2, 0), (2, 2)}
    assert len(neighbours(Candidate(sketch_of(), ()))) == 0


def test_before_anything_ran_nothing_is_near() -> None:
    assert near_fastest([], alike, TARGET, set()) == []


def test_what_was_given_is_left_out() -> None:
    near = near_fastest([(CENTRE, 1e-3)], alike, TARGET, {CENTRE, Candidate(SKETCH, (1, 1))})
    assert {candidate.row for candidate in near} == {(3, 1), (2, 0), (2, 2)}


def test_scores_say_which_neighbour_comes_first_and_which_is_not_worth_a_trial() -> None:
    def rising(population: Population) -> FloatArray:
        return 0.2 * population.rows[:, 0] + 0.01 * population.rows[:, 1]

    near = near_fastest([(CENTRE, 1e-3)], rising, TARGET, {CENTRE})
    assert [candidate.row for candidate in near] == [(3, 1), (2, 2), (2, 0)]


def test_a_sketch_that_the_scores_dislike_is_judged_by_what_it_measured() -> None:
    def disliking(population: Population) -> FloatArray:
        return np.full(len(population), -3.0 if population.sketch is SKETCH else 0.0)

    measured = [(CENTRE, 1.00e-3), (Candidate(OTHER, (2, 1)), 1.05e-3), (Candidate(OTHER, (0, 0)), 1.5e-3)]
    near = near_fastest(measured, disliking, TARGET, {candidate for candidate, _ in measured})
    assert [candidate.sketch for candidate in near] == [SKETCH] * 4 + [OTHER] * 4
    assert Candidate(OTHER, (1, 0)) not in near, "its centre is slow"


def test_of_several_centres_that_which_promises_most_counts() -> None:
    between = Candidate(SKETCH, (2, 2))
    measured = [(CENTRE, 1.0e-3), (Candidate(SKETCH, (3, 2)), 1.04e-3)]
    given = {CENTRE, Candidate(SKETCH, (3, 2)), Candidate(SKETCH, (3, 1))}
    near = near_fastest(measured, alike, TARGET, given)
    assert between in near[:3], "the three that are neighbours of the faster one alone or of both"
    assert len(near) == len(set(near))


def test_illegal_neighbours_are_left_out() -> None:
    given = {CENTRE}
    near = near_fastest([(CENTRE, 1e-3)], bowl_scores, TARGET, given)
    assert all(Population.of([candidate]).legal(TARGET).all() for candidate in near)
