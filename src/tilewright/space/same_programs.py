"""Rows that are the same program: up to how many statements loops are written out often makes no difference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.schedule import Extent, Unrolling
from tilewright.space.knob import IntArray
from tilewright.space.population import Candidate, Population
from tilewright.space.sketch import Sketch


def least_unrolled(population: Population) -> Population:
    """The same programs, each as the row that says of unrolling the least: rows that differ in no more become equal.

    A knob for the pragma of a loop says how many statements its body may become. Of its choices that write out the same
    loops, the row has the one with the fewest statements.
    """
    sketch = population.sketch
    if not sketch.pragma_columns or not len(population):
        return population
    unrolling = Unrolling(population.schedule)
    rows = population.rows.copy()
    for column in sketch.pragma_columns:
        steps = sketch.knobs[column].table[:, 0]
        rows[:, column] = _least_choices(steps, unrolling.largest_within(steps[rows[:, column]]))
    return Population(sketch, rows)


def as_programs(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Each candidate as the row that stands for its program, in their order."""
    places: dict[Sketch, list[int]] = {}
    for place, candidate in enumerate(candidates):
        places.setdefault(candidate.sketch, []).append(place)
    found = list(candidates)
    for own in places.values():
        population = least_unrolled(Population.of([candidates[place] for place in own]))
        for place, candidate in zip(own, population, strict=True):
            found[place] = candidate
    return found


def _least_choices(steps: IntArray, needed: Extent) -> IntArray:
    """For each candidate the choice with the least step that is as large as needed."""
    order = np.argsort(steps, kind="stable")
    found: IntArray = order[np.searchsorted(steps[order], needed)]
    return found
