"""Search strategies: they find what the scores say, repeat nothing, and are the same for the same seed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import tilewright as tw
from tilewright.search import STRATEGIES, EvolutionarySearch, RandomSearch
from tilewright.search.operators import crossover, mutate
from tilewright.space import Population, SpaceOptions, derive
from tilewright.workloads import parse

TARGET = tw.Target.parse("haswell")
SKETCHES = derive(parse("gmm:128x128x128"), SpaceOptions(TARGET, threads=2))


def near(population: Population) -> npt.NDArray[np.float64]:
    """Scores that prefer one sketch, and choices near the middle of each table."""
    middles = np.asarray([knob.cardinality / 2 for knob in population.sketch.knobs])
    distance = np.abs(population.rows - middles) / middles
    scores: npt.NDArray[np.float64] = -distance.sum(axis=1) + (population.sketch is SKETCHES[1])
    return scores


@pytest.mark.parametrize("name", list(STRATEGIES))
class TestEveryStrategy:
    def test_gives_as_many_as_asked_and_none_twice(self, name: str) -> None:
        search = STRATEGIES[name](SKETCHES, near, TARGET, seed=1)
        found = [c for _ in range(4) for c in search.ask(16)]
        assert len(found) == 64
        assert len({(id(c.sketch), c.row) for c in found}) == 64

    def test_the_same_seed_gives_the_same_candidates(self, name: str) -> None:
        rounds = []
        for _ in range(2):
            search = STRATEGIES[name](SKETCHES, near, TARGET, seed=7)
            first = search.ask(8)
            search.tell(first, [1.0 + n for n in range(8)])
            rounds.append([c.row for c in first + search.ask(8)])
        assert rounds[0] == rounds[1]

    def test_what_was_told_is_not_given_again(self, name: str) -> None:
        told = RandomSearch(SKETCHES, near, TARGET, seed=3).ask(40)
        search = STRATEGIES[name](SKETCHES, near, TARGET, seed=3)
        search.tell(told, [None] * 40)
        assert not {(id(c.sketch), c.row) for c in told} & {(id(c.sketch), c.row) for c in search.ask(40)}


def test_evolution_climbs_above_random_candidates() -> None:
    evolved = EvolutionarySearch(SKETCHES, near, TARGET, seed=0, population=256, random_share=0.0).ask(8)
    random = RandomSearch(SKETCHES, near, TARGET, seed=0).ask(256)
    scores = [[float(near(Population.of([c]))[0]) for c in found] for found in (evolved, random)]
    assert np.mean(scores[0]) > max(scores[1])


def test_mutants_differ_in_at_most_two_knobs_and_stay_in_the_table() -> None:
    rng = np.random.default_rng(0)
    parents = SKETCHES[0].sample(rng, 200)
    children = mutate(rng, parents)
    changed = (parents.rows != children.rows).sum(axis=1)
    assert changed.max() <= 2
    assert changed.mean() > 0.5
    for position, knob in enumerate(SKETCHES[0].knobs):
        assert children.rows[:, position].min() >= 0
        assert children.rows[:, position].max() < knob.cardinality


def test_crossover_takes_every_knob_from_one_of_the_parents() -> None:
    rng = np.random.default_rng(0)
    parents = SKETCHES[0].sample(rng, 50)
    other = Population(SKETCHES[0], np.zeros_like(parents.rows[:1]))
    children = crossover(rng, parents, other)
    assert ((children.rows == parents.rows) | (children.rows == 0)).all()
    assert (children.rows != parents.rows).any()


def test_the_first_round_has_the_best_row_of_every_sketch_then_the_scores_decide() -> None:
    search = EvolutionarySearch(SKETCHES, near, TARGET, population=256)
    first = search.ask(4 * len(SKETCHES))
    assert {id(c.sketch) for c in first[: len(SKETCHES)]} == {id(sketch) for sketch in SKETCHES}
    search.tell(first, [1.0] * len(first))
    later = search.ask(32)
    assert sum(c.sketch is SKETCHES[1] for c in later) > 24
