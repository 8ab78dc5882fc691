"""Evolutionary search: it finds what the scores say, by operators on populations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import tilewright as tw
from tilewright.search import EvolutionarySearch, RandomSearch
from tilewright.search.operators import crossover, mutate, relocate
from tilewright.space import Decision, Population, Sketch, SpaceOptions, TileKnob, derive, open_split
from tilewright.workloads import parse

TARGET = tw.Target.parse("haswell")
OPTIONS = SpaceOptions(TARGET, threads=2)
SKETCHES = derive(parse("gmm:128x128x128"), OPTIONS)


def near(population: Population) -> npt.NDArray[np.float64]:
    """Scores that prefer one sketch, and choices near the middle of each table."""
    middles = np.asarray([knob.cardinality / 2 for knob in population.sketch.knobs])
    distance = np.abs(population.rows - middles) / middles
    scores: npt.NDArray[np.float64] = -distance.sum(axis=1) + (population.sketch is SKETCHES[1])
    return scores


def test_evolution_climbs_above_random_candidates() -> None:
    evolved = EvolutionarySearch(population=256, epsilon=0.0).begin(SKETCHES, near, TARGET).ask(8)
    random = RandomSearch().begin(SKETCHES, near, TARGET).ask(256)
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
    search = EvolutionarySearch(population=256, near_share=0.0).begin(SKETCHES, near, TARGET)
    first = search.ask(4 * len(SKETCHES))
    assert {id(c.sketch) for c in first[: len(SKETCHES)]} == {id(sketch) for sketch in SKETCHES}
    search.tell(first, [1.0] * len(first))
    later = search.ask(32)
    assert sum(c.sketch is SKETCHES[1] for c in later) > 24


def test_candidates_are_relocated_to_a_sketch_that_decides_the_same() -> None:
    rng = np.random.default_rng(0)
    parents = SKETCHES[0].sample(rng, 5)
    moved = [relocate(rng, SKETCHES, parents) for _ in range(20)]
    siblings = [sketch for sketch in SKETCHES[1:] if names_of(sketch) == names_of(SKETCHES[0])]
    assert {population.sketch for population in moved} == set(siblings)
    assert all(population.rows.tolist() == parents.rows.tolist() for population in moved)
    assert relocate(rng, SKETCHES[:1], parents) == parents, "there is no other"


def names_of(sketch: Sketch) -> list[str]:
    return [knob.name for knob in sketch.knobs]


def test_candidates_stay_where_the_knobs_of_another_sketch_have_other_choices() -> None:
    task = SKETCHES[0].task
    first, second = (
        Sketch(task, (open_split("C", "i", Decision(TileKnob("C.i", sizes))),), OPTIONS) for sizes in ([4, 8], [4])
    )
    parents = first.sample(np.random.default_rng(0), 8)
    assert relocate(np.random.default_rng(0), [first, second], parents) == parents
