"""Scores of a round: the same as without it, and each candidate is looked at once."""

from __future__ import annotations

import numpy as np

from tests.search.spaces import SKETCHES, bowl_scores, sketch_of
from tilewright.search.base import FloatArray
from tilewright.search.known_scores import KnownScores
from tilewright.space import Candidate, Population


def test_each_candidate_is_looked_at_once_and_has_its_score_wherever_it_stands() -> None:
    looked: list[Candidate] = []

    def look(population: Population) -> FloatArray:
        looked.extend(population)
        return bowl_scores(population)

    known = KnownScores(look)
    rng = np.random.default_rng(0)
    for _ in range(4):
        for sketch in SKETCHES:
            drawn = sketch.sample(rng, 40)
            population = drawn[rng.integers(0, len(drawn), 100)]
            assert np.array_equal(known.scores(population), bowl_scores(population))
    assert len(looked) == len(set(looked))


def test_a_population_without_candidates_has_no_scores() -> None:
    population = SKETCHES[0].sample(np.random.default_rng(0), 3)
    known = KnownScores(bowl_scores)
    known.scores(population)
    assert known.scores(population[:0]).shape == (0,)
    assert KnownScores(bowl_scores).scores(population[:0]).shape == (0,)


def test_neighbours_have_scores_of_their_own_in_a_space_past_64_bits() -> None:
    sketch = sketch_of(*[range(1, 129)] * 10)  # 2^70 candidates: twice the first base would leave no remainder by 2^64
    rows = np.zeros((11, 10), np.int64)
    rows[np.arange(10), np.arange(10)] = 2
    population = Population(sketch, rows)
    scores = KnownScores(lambda asked: asked.rows @ np.arange(1.0, 11.0)).scores(population)
    assert scores.tolist() == [*range(2, 21, 2), 0]
