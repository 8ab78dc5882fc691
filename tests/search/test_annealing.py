"""Simulated annealing: chains that climb the scores, and go on where they were."""

from __future__ import annotations

import numpy as np

from tests.search.spaces import SKETCHES, TARGET, bowl, bowl_scores, sketch_of
from tilewright.search import RandomSearch, Scorer, SimulatedAnnealing
from tilewright.search.base import FloatArray
from tilewright.search.points import Points
from tilewright.space import Population

SMALL = SimulatedAnnealing(chains=32, steps=6, tries=4, epsilon=0.0)


def counted(scorer: Scorer, calls: list[int]) -> Scorer:
    def count(population: Population) -> FloatArray:
        calls.append(len(population))
        return scorer(population)

    return count


def test_with_good_scores_it_finds_better_programs_than_random() -> None:
    annealing = SMALL.begin(SKETCHES, bowl_scores, TARGET, seed=1)
    found = [candidate for _ in range(3) for candidate in annealing.ask(8)]
    random = RandomSearch().begin(SKETCHES, bowl_scores, TARGET, seed=1).ask(100)
    assert np.median(bowl(found)) < min(bowl(random))


def test_the_unit_of_scores_does_not_matter() -> None:
    def scaled(population: Population) -> FloatArray:
        return 1e-6 * bowl_scores(population) + 1000.0

    first, second = (SMALL.begin(SKETCHES, scorer, TARGET, seed=1) for scorer in (bowl_scores, scaled))
    assert first.ask(8) == second.ask(8)


def test_chains_go_on_where_they_were() -> None:
    search = SMALL.begin(SKETCHES, bowl_scores, TARGET, seed=1)
    means = []
    for _ in range(3):
        search.ask(4)
        assert search._points is not None
        means.append(np.mean(bowl(search._points.candidates())))
    assert means[2] < means[0]


def test_without_differences_in_the_scores_the_chains_walk_on() -> None:
    search = SMALL.begin(SKETCHES, lambda population: np.zeros(len(population)), TARGET, seed=1)
    rounds = [search.ask(16) for _ in range(3)]
    assert len({candidate for found in rounds for candidate in found}) == 48
    assert len({candidate.row[0] for found in rounds for candidate in found}) > 12


def test_in_the_cold_no_chain_goes_to_a_lower_score() -> None:
    cold = SimulatedAnnealing(chains=16, steps=1, tries=2, start_temperature=0.0)
    search = cold.begin(SKETCHES, bowl_scores, TARGET, seed=1)
    search.ask(1)
    assert search._points is not None
    for _ in range(5):
        before = bowl(search._points.candidates())
        search.ask(1)
        after = bowl(search._points.candidates())
        assert all(new <= old for new, old in zip(after, before, strict=True))


def test_in_the_heat_some_do() -> None:
    hot = SimulatedAnnealing(chains=16, steps=1, tries=2, start_temperature=100.0)
    search = hot.begin(SKETCHES, bowl_scores, TARGET, seed=1)
    search.ask(1)
    assert search._points is not None
    before = bowl(search._points.candidates())
    search.ask(1)
    assert any(new > old for new, old in zip(bowl(search._points.candidates()), before, strict=True))


def test_chains_leave_a_sketch_that_scores_low() -> None:
    def one_sketch(population: Population) -> FloatArray:
        return np.full(len(population), float(population.sketch is SKETCHES[1]))

    moving = SimulatedAnnealing(chains=32, steps=6, tries=4, relocate_share=0.3)
    search = moving.begin(SKETCHES, one_sketch, TARGET, seed=1)
    for _ in range(3):
        search.ask(2)
    assert search._points is not None
    shares = np.bincount(search._points.owners, minlength=len(SKETCHES)) / len(search._points)
    assert np.argmax(shares) == 1
    assert shares[1] > 2 / len(SKETCHES)


def test_a_round_ends_early_where_nothing_better_is_found() -> None:
    sketch = sketch_of([1, 2, 4], [1, 2, 4])
    calls: list[int] = []
    endless = SimulatedAnnealing(chains=8, steps=500, tries=2, early_stop=5)
    endless.begin([sketch], counted(bowl_scores, calls), TARGET).ask(2)
    assert len(calls) < 40


def test_a_step_scores_each_sketch_once_whatever_the_number_of_tries() -> None:
    calls: list[int] = []
    search = SimulatedAnnealing(chains=16, steps=4, tries=8, early_stop=9)
    search.begin(SKETCHES[:1], counted(bowl_scores, calls), TARGET).ask(4)
    assert len(calls) == 5
    assert calls[0] == 16
    assert all(64 < count <= 128 for count in calls[1:]), "those that come again are known"


def test_a_sketch_that_is_added_gets_its_share_of_the_chains() -> None:
    search = SMALL.begin(SKETCHES[:1], bowl_scores, TARGET)
    search.ask(4)
    search.add(sketch_of([1, 2, 4, 8]))
    assert {candidate.sketch for candidate in search._starts().candidates()} == set(search.sketches)
    assert isinstance(search._starts(), Points)
    search.ask(4)
