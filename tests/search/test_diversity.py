"""Batches of good candidates that are unlike each other."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tests.search.spaces import SKETCHES, TARGET, bowl_scores, sketch_of
from tilewright.search import EvolutionarySearch, SimulatedAnnealing, choose_diverse
from tilewright.search.scored import ScoredSearch
from tilewright.space import Candidate, Population

SKETCH, TWIN = sketch_of([1, 2, 4, 8], [1, 2, 4]), sketch_of([1, 2, 4, 8], [1, 2, 4])
ROWS = [Candidate(SKETCH, row) for row in ((0, 0), (0, 1), (0, 2), (1, 0), (2, 1), (3, 2))]
FALLING = np.linspace(1.0, 0.0, len(ROWS))


def values_of(candidates: list[Candidate]) -> set[object]:
    """The values of knobs that are among them."""
    return {(position, choice) for candidate in candidates for position, choice in enumerate(candidate.row)}


def test_without_alpha_scores_alone_decide() -> None:
    order = np.random.default_rng(0).permutation(len(ROWS))
    assert choose_diverse([ROWS[place] for place in order], FALLING[order], 4, 0.0) == ROWS[:4]


def test_with_a_great_alpha_as_many_values_as_can_be_are_covered() -> None:
    chosen = choose_diverse(ROWS, FALLING, 3, 100.0)
    most = max(len(values_of(list(some))) for some in combinations(ROWS, 3))
    assert len(values_of(chosen)) == most
    assert chosen[0] == ROWS[0], "scores decide between those that cover as much"


def test_alpha_is_weighed_against_the_scores() -> None:
    covered = [len(values_of(choose_diverse(ROWS, FALLING, 3, alpha))) for alpha in (0.0, 0.4, 100.0)]
    assert covered == sorted(covered)
    assert covered[0] < covered[2]


def test_the_greedy_choice_is_near_the_best_one() -> None:
    rng = np.random.default_rng(0)
    candidates = list(SKETCH.sample(rng, 40).unique())
    scores = rng.random(len(candidates))
    worth = dict(zip(candidates, ((scores - scores.mean()) / scores.std()).tolist(), strict=True))

    def total(chosen: list[Candidate]) -> float:
        return math.fsum(worth[candidate] for candidate in chosen) + 0.5 * len(values_of(chosen))

    best = max(total(list(some)) for some in combinations(candidates, 3))
    assert total(choose_diverse(candidates, scores, 3, 0.5)) >= 0.63 * best


def test_another_sketch_is_a_value_too_but_its_equal_knobs_are_not() -> None:
    candidates = [ROWS[0], Candidate(TWIN, (0, 0)), ROWS[1]]
    assert choose_diverse(candidates, np.zeros(3), 2, 1.0) == candidates[:2]
    candidates = [ROWS[0], Candidate(TWIN, (0, 0)), ROWS[4]]
    assert choose_diverse(candidates, np.zeros(3), 2, 1.0) == [ROWS[0], ROWS[4]]


def test_sketches_may_have_other_knobs_or_none() -> None:
    mixed = [Candidate(sketch_of(), ()), ROWS[0], Candidate(sketch_of([1, 2]), (1,))]
    assert choose_diverse(mixed, np.asarray([3.0, 2.0, 1.0]), 9, 0.1) == mixed
    assert choose_diverse([], np.zeros(0), 3, 1.0) == []
    assert choose_diverse(mixed, np.zeros(3), 0, 1.0) == []


@pytest.mark.parametrize("strategy", [EvolutionarySearch(population=128), SimulatedAnnealing(chains=32, tries=2)])
def test_a_batch_with_alpha_covers_more_values(strategy: ScoredSearch) -> None:
    plain, diverse = (
        replace(strategy, alpha=alpha, epsilon=0.0).begin(SKETCHES[:1], bowl_scores, TARGET, seed=1).ask(12)
        for alpha in (0.0, 2.0)
    )
    assert len(values_of(diverse)) > len(values_of(plain))
    worst = np.median(bowl_scores(SKETCHES[0].sample(np.random.default_rng(0), 200)))
    assert bowl_scores(Population.of(diverse)).mean() > worst, "they are of the best that were found"


def test_with_epsilon_of_one_all_are_random() -> None:
    searches = [EvolutionarySearch(population=64, epsilon=epsilon) for epsilon in (0.0, 1.0)]
    best, drawn = (search.begin(SKETCHES[:1], bowl_scores, TARGET, seed=1).ask(16) for search in searches)
    assert bowl_scores(Population.of(best)).min() > np.median(bowl_scores(Population.of(drawn)))
