"""The operators of the searches that change candidates, each on a whole population.

Mutation changes a knob to a neighbouring choice; relocation moves candidates to a sketch that computes some stage
elsewhere; crossover takes whole stages from one parent or the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.search.points import IntArray, Points, kinds, num_choices
from tilewright.space import Candidate, Population, Sketch, least_unrolled

_SECOND_CHANGE = 0.4


def mutate(rng: np.random.Generator, population: Population) -> Population:
    """Each candidate with one knob, sometimes two, at a neighbouring choice."""
    knobs = population.sketch.knobs
    if not knobs or not len(population):
        return population
    rows = population.rows.copy()
    weights = np.asarray([knob.mutation_weight for knob in knobs])
    for share in (1.0, _SECOND_CHANGE):
        chosen = rng.choice(len(knobs), size=len(rows), p=weights / weights.sum())
        active = rng.random(len(rows)) < share
        for position, knob in enumerate(knobs):
            here = (chosen == position) & active
            if here.any():
                rows[here, position] = knob.neighbours(rng, rows[here, position])
    return Population(population.sketch, rows)


def neighbours(centre: Candidate) -> Population:
    """All programs that differ from this one in one knob, by a neighbouring choice; some may be illegal.

    However far they are unrolled: what makes no difference to the centre may make one to them.
    """
    rows = [
        (*centre.row[:position], choice, *centre.row[position + 1 :])
        for position, knob in enumerate(centre.sketch.knobs)
        for choice in knob.all_neighbours(centre.row[position]).tolist()
    ]
    found = np.asarray(rows, np.int64).reshape(len(rows), len(centre.row))
    for column in centre.sketch.pragma_columns:
        found = np.repeat(found, num := centre.sketch.knobs[column].cardinality, axis=0)
        found[:, column] = np.arange(len(found)) % num
    return least_unrolled(Population(centre.sketch, found)).unique()


def crossover(rng: np.random.Generator, first: Population, others: Population) -> Population:
    """Each candidate with the knobs of some stages taken from one of the others."""
    if not len(first) or not len(others):
        return first
    second = others[rng.integers(0, len(others), len(first))]
    owners = [knob.name.rsplit(".", 1)[0] for knob in first.sketch.knobs]
    groups = sorted(set(owners))
    if len(groups) == 1:
        take = rng.random(first.rows.shape) < 0.5
    else:
        by_group = rng.random((len(first), len(groups))) < 0.5
        take = by_group[:, [groups.index(owner) for owner in owners]]
    return Population(first.sketch, np.where(take, second.rows, first.rows))


def relocate(rng: np.random.Generator, sketches: Sequence[Sketch], population: Population) -> Population:
    """The candidates in another sketch with the same knobs, if there is one."""
    siblings = [sketch for sketch in sketches if _is_sibling(sketch, population.sketch)]
    if not siblings:
        return population
    return Population(siblings[int(rng.integers(len(siblings)))], population.rows)


def _is_sibling(sketch: Sketch, other: Sketch) -> bool:
    """Whether they are two, and decide the same."""
    if sketch is other or [knob.name for knob in sketch.knobs] != [knob.name for knob in other.knobs]:
        return False
    return all(np.array_equal(a.table, b.table) for a, b in zip(sketch.knobs, other.knobs, strict=True))


def change_sketch(rng: np.random.Generator, points: Points) -> Points:
    """Each point in a random sketch: with its choices where that has the same ones, and random ones elsewhere."""
    kind_of = kinds(points.sketches)
    owners = rng.integers(0, len(points.sketches), len(points))
    is_other = kind_of[owners] != kind_of[points.owners]
    drawn = random_rows(rng, points.sketches, owners)
    return Points(points.sketches, owners, np.where(is_other[:, None], drawn, points.rows))


def random_rows(rng: np.random.Generator, sketches: Sequence[Sketch], owners: IntArray) -> IntArray:
    """Random choices for points of these owners, legal or not."""
    sizes = num_choices(sketches)[owners]
    return (rng.random(sizes.shape) * sizes).astype(np.int64)
