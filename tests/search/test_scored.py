"""How batches are put together: algorithms that were not tried, neighbours of the fastest, the best by their scores."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.search.spaces import OPTIONS, SKETCHES, TARGET, bowl_scores, sketch_of
from tilewright.search import Best, EvolutionarySearch, ScoredSearch, Scorer, SimulatedAnnealing
from tilewright.search.base import FloatArray
from tilewright.search.operators import neighbours
from tilewright.search.scored import _apart
from tilewright.space import Candidate, Population, derive
from tilewright.workloads import parse

CONVOLUTION = derive(parse("c2d:1x8x8x16,16,3x3,s1,p1"), replace(OPTIONS, exact=False))
ALGORITHMS = {sketch.algorithms for sketch in CONVOLUTION}
SEARCHES = [EvolutionarySearch(population=256), SimulatedAnnealing(chains=64)]


def disliking(times_slower: float) -> Scorer:
    """Scores by which all algorithms but the sums are so many times slower."""

    def scores(population: Population) -> FloatArray:
        dislike = math.log(times_slower) if population.sketch.algorithms else 0.0
        return 0.01 * bowl_scores(population) - dislike

    return scores


def algorithms_of(candidates: list[Candidate]) -> set[tuple[str, ...]]:
    return {candidate.sketch.algorithms for candidate in candidates}


def found_by(search: ScoredSearch, n: int) -> Best:
    """Candidates of each sketch and their scores."""
    best = Best(search.seen, 4 * n)
    for sketch in search.sketches:
        population = search.random_legal(sketch, 2 * n)
        best.offer(population, search.scorer(population))
    return best


def test_the_convolution_has_several_algorithms() -> None:
    assert () in ALGORITHMS
    assert len(ALGORITHMS) > 2


@pytest.mark.parametrize("alpha", [0.0, 0.2])
@pytest.mark.parametrize("strategy", SEARCHES)
def test_the_first_round_tries_each_algorithm_that_the_scores_dislike(strategy: ScoredSearch, alpha: float) -> None:
    search = replace(strategy, alpha=alpha, epsilon=0.0).begin(CONVOLUTION, disliking(3.0), TARGET, seed=1)
    assert algorithms_of(search.ask(16)) == ALGORITHMS


@pytest.mark.parametrize("strategy", SEARCHES)
def test_what_scores_far_below_is_not_tried_for_its_own_sake(strategy: ScoredSearch) -> None:
    sums = [sketch for sketch in CONVOLUTION if not sketch.algorithms]
    others = next(sketch for sketch in CONVOLUTION if sketch.algorithms)
    search = replace(strategy, alpha=0.0, epsilon=0.0).begin([*sums, others], disliking(6.0), TARGET, seed=1)
    best = found_by(search, 16)
    assert algorithms_of(search._of_untried_algorithms(best, best.candidates)) == {()}
    assert algorithms_of(search.ask(2)) == {()}


def test_of_an_algorithm_that_was_not_tried_the_best_comes_first_and_half_of_a_batch_is_theirs_at_most() -> None:
    search = EvolutionarySearch(epsilon=0.0).begin(CONVOLUTION, disliking(2.0), TARGET, seed=1)
    best = found_by(search, 16)
    bests = {used: max(s for c, s in best.scores.items() if c.sketch.algorithms == used) for used in ALGORITHMS}
    candidates = search.batch(best, 16)
    assert [best.scores[candidate] for candidate in candidates[: len(bests)]] == sorted(bests.values(), reverse=True)

    search = EvolutionarySearch(epsilon=0.0).begin(CONVOLUTION, disliking(2.0), TARGET, seed=1)
    assert len(algorithms_of(search.batch(found_by(search, 16), 4))) == 2


def test_an_algorithm_that_was_given_already_is_not_tried_again_for_its_own_sake() -> None:
    search = EvolutionarySearch(epsilon=0.0, near_share=0.0).begin(CONVOLUTION, disliking(3.0), TARGET, seed=1)
    first = search.ask(16)
    assert algorithms_of(search.ask(1)) == {()}, "nothing was told yet"
    search.tell(first, [1e-3] * len(first))
    assert algorithms_of(search.ask(16)) == {()}, "the scores decide"


def test_where_there_is_one_algorithm_it_has_no_places_of_its_own() -> None:
    search = EvolutionarySearch().begin(SKETCHES, bowl_scores, TARGET, seed=1)
    best = found_by(search, 16)
    assert search._of_untried_algorithms(best, best.candidates) == []


def num_changes(first: Candidate, second: Candidate) -> int:
    if first.sketch is not second.sketch:
        return len(first.row)
    return sum(a != b for a, b in zip(first.row, second.row, strict=True))


@pytest.mark.parametrize("strategy", SEARCHES)
def test_a_share_of_a_batch_differs_in_one_knob_from_the_fastest_whatever_its_score(strategy: ScoredSearch) -> None:
    fastest = next(iter(strategy.begin(SKETCHES, bowl_scores, TARGET).random_legal(SKETCHES[0], 1)))
    for share, num in ((0.5, 8), (0.0, 0)):
        search = replace(strategy, near_share=share, epsilon=0.0).begin(SKETCHES, elsewhere(fastest), TARGET, seed=1)
        search.tell([fastest], [1e-3])
        near = set(neighbours(fastest))
        assert sum(candidate in near for candidate in search.ask(16)) == num


def nearest(candidates: list[Candidate]) -> int:
    """How many knobs those two differ in that differ in the fewest."""
    return min(num_changes(a, b) for place, a in enumerate(candidates) for b in candidates[:place])


@pytest.mark.parametrize("strategy", SEARCHES)
def test_with_several_algorithms_the_best_differ_in_two_knobs_from_each_other_and_from_what_was_measured(
    strategy: ScoredSearch,
) -> None:
    search = replace(strategy, epsilon=0.0, near_share=0.0).begin(CONVOLUTION, disliking(2.0), TARGET, seed=1)
    first = search.ask(8)
    search.tell(first, [1e-3] * len(first))
    assert nearest([*first, *search.ask(8)]) >= 2


def test_with_one_algorithm_the_best_may_differ_in_one_knob() -> None:
    search = EvolutionarySearch(epsilon=0.0, near_share=0.0).begin(SKETCHES, bowl_scores, TARGET, seed=1)
    assert nearest(search.ask(16)) == 1


def test_where_all_candidates_are_alike_a_batch_is_full_all_the_same() -> None:
    sketch = next(sketch for sketch in CONVOLUTION if sketch.algorithms)
    centre = next(iter(EvolutionarySearch().begin(CONVOLUTION, bowl_scores, TARGET).random_legal(sketch, 1)))
    alike = [centre, *neighbours(centre)]
    assert len(alike) > 4
    assert _apart(alike, []) == alike, "the first is apart from nothing, the others keep their order behind it"
    assert _apart(alike, [centre]) == alike
    far = next(iter(Population(CONVOLUTION[0], CONVOLUTION[0].sample(np.random.default_rng(0), 1).rows)))
    assert _apart([*alike, far], []) == [centre, far, *alike[1:]]


def elsewhere(fastest: Candidate) -> Scorer:
    """Scores that are lower the less a candidate differs from the fastest one, a little."""

    def scores(population: Population) -> FloatArray:
        if population.sketch is not fastest.sketch:
            return np.zeros(len(population))
        found: FloatArray = 0.001 * np.count_nonzero(population.rows != fastest.row, axis=1) - 1.0
        return found

    return scores


def test_nothing_is_near_what_has_no_neighbours() -> None:
    alone = sketch_of()
    search = EvolutionarySearch().begin([alone, *SKETCHES], bowl_scores, TARGET, seed=1)
    search.tell([Candidate(alone, ())], [1e-3])
    assert len(search.ask(8)) == 8
