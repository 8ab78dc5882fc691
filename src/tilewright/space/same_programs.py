"""Rows that are the same program: up to how many statements loops are written out often makes no difference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.schedule import MOST_STEPS, Loop, Unrolling
from tilewright.space.knob import IntArray
from tilewright.space.population import Candidate, Population
from tilewright.space.sketch import Sketch


def least_unrolled(population: Population) -> Population:
    """The same programs, each as the row that says of unrolling the least: rows that differ in no more become equal.

    A knob for the pragma of a loop says how many statements its body may become. Of its choices that write out the same
    loops, the row has the one with the fewest statements. What several pragmas could write out, the last one does.
    """
    columns = population.sketch.pragma_columns
    if not columns or not len(population):
        return population
    found = population if len(columns) == 1 else _most_unrolled(population)
    for column in columns:
        steps = _steps(found.sketch, column)
        loops = _pragma_loops(found, column)
        needed = Unrolling(found.schedule).most_needed(loops, steps[found.rows[:, column]])
        rows = found.rows.copy()
        order = np.argsort(steps, kind="stable")
        rows[:, column] = order[np.searchsorted(steps[order], needed)]
        found = Population(found.sketch, rows)
    return found


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


def _most_unrolled(population: Population) -> Population:
    """Each pragma with its largest step that writes out no more loops: which do is no longer to be seen."""
    unrolling = Unrolling(population.schedule)
    rows = population.rows.copy()
    for column in population.sketch.pragma_columns:
        steps = _steps(population.sketch, column)
        order = np.argsort(steps, kind="stable")
        allowed = unrolling.most_allowed(_pragma_loops(population, column))
        rows[:, column] = order[np.searchsorted(steps[order], allowed, side="right") - 1]
    return Population(population.sketch, rows)


def _steps(sketch: Sketch, column: int) -> IntArray:
    """How many statements each choice allows."""
    return np.minimum(sketch.knobs[column].table[:, 0], MOST_STEPS)


def _pragma_loops(population: Population, column: int) -> list[Loop]:
    """The loops whose pragmas the knob decides."""
    sketch = population.sketch
    names = {(step.stage, step.loop) for step in sketch.pragmas_of(sketch.knobs[column])}
    return [loop for stage in population.schedule for loop in stage.pragmas if (stage.name, loop.name) in names]
