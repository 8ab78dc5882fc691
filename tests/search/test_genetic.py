"""The genetic algorithm: children of what was measured."""

from __future__ import annotations

import numpy as np

from tests.search.spaces import SKETCHES, TARGET, bowl, no_scores, sketch_of
from tilewright.search import GeneticSearch, RandomSearch, SearchStrategy
from tilewright.space import Candidate

WIDE = sketch_of([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8])


def best_of(search: SearchStrategy, num_rounds: int) -> float:
    best = np.inf
    for _ in range(num_rounds):
        found = search.ask(10)
        search.tell(found, bowl(found))
        best = min([best, *bowl(found)])
    return best


def test_it_finds_better_programs_than_random() -> None:
    genetic = [best_of(GeneticSearch(population=20).begin(SKETCHES, no_scores, TARGET, seed), 15) for seed in range(3)]
    random = [best_of(RandomSearch().begin(SKETCHES, no_scores, TARGET, seed), 15) for seed in range(3)]
    assert np.median(genetic) < np.median(random)


def test_without_mutation_children_have_the_first_knobs_of_one_parent_and_the_others_of_a_second() -> None:
    parents = [Candidate(WIDE, row) for row in ((0, 0, 0), (1, 1, 1))]
    search = GeneticSearch(population=2, mutation=0.0).begin([WIDE], no_scores, TARGET)
    search.tell(parents, [1e-3, 1e-3])
    bred = {candidate.row for _ in range(20) for candidate in search._children()}
    assert bred == {(0, 0, 0), (1, 1, 1), (0, 1, 1), (0, 0, 1), (1, 0, 0), (1, 1, 0)}


def test_with_mutation_they_have_other_choices_too() -> None:
    search = GeneticSearch(population=50, mutation=0.5).begin([WIDE], no_scores, TARGET)
    search.tell([Candidate(WIDE, (0, 0, 0))], [1e-3])
    children = [candidate.row for candidate in search._children()]
    assert len(set(children)) > 25


def test_faster_parents_have_more_children() -> None:
    search = GeneticSearch(population=100, mutation=0.0, elite=0).begin([WIDE], no_scores, TARGET)
    search.tell([Candidate(WIDE, (0, 0, 0)), Candidate(WIDE, (7, 7, 7))], [1e-3, 9e-3])
    first = [candidate.row[0] for candidate in search._children()]
    assert first.count(0) > 4 * first.count(7)


def test_the_best_stay_parents_for_ever() -> None:
    for elite, expected in ((1, True), (0, False)):
        search = GeneticSearch(population=2, mutation=0.0, elite=elite).begin([WIDE], no_scores, TARGET)
        search.tell([Candidate(WIDE, (0, 0, 0))], [1e-6])
        for choice in (1, 2, 3):
            search.tell([Candidate(WIDE, (choice,) * 3)], [1e-3])
        bred = {choice for _ in range(10) for candidate in search._children() for choice in candidate.row}
        assert (0 in bred) is expected


def test_parents_of_sketches_with_other_knobs_are_not_crossed() -> None:
    other = sketch_of([1, 2, 3, 4])
    search = GeneticSearch(population=40, mutation=0.0).begin([WIDE, other], no_scores, TARGET)
    search.tell([Candidate(WIDE, (5, 5, 5)), Candidate(other, (3,))], [1e-3, 1e-3])
    assert {(candidate.sketch, candidate.row) for candidate in search._children()} == {
        (WIDE, (5, 5, 5)),
        (other, (3,)),
    }
