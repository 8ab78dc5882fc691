"""Rows that are the same program: up to how many statements loops are written out often makes no difference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.schedule import MOST_STEPS, Extent, Loop, Schedule, Unrolling
from tilewright.space.knob import IntArray
from tilewright.space.population import Candidate, Population
from tilewright.space.sketch import Sketch


def least_unrolled(population: Population) -> Population:
    """The same programs, each as the row that says of unrolling the least: rows that differ in no more become equal.

    A knob for the pragma of a loop says how many statements its body may become. Of its choices that write out the same
    loops, the row has the one with the fewest statements. What several pragmas could write out, the last one does.
    """
    sketch = population.sketch
    if not sketch.pragma_columns or not len(population):
        return population
    rows = population.rows.copy()
    if len(sketch.pragma_columns) > 1:
        _let_all_unroll(population, rows)
    for column in sketch.pragma_columns:
        schedule = Population(sketch, rows).schedule if len(sketch.pragma_columns) > 1 else population.schedule
        steps = _steps(sketch, column)
        needed = Unrolling(schedule).most_needed(_pragma_loops(schedule, sketch, column), steps[rows[:, column]])
        rows[:, column] = _least_choices(steps, needed)
    return Population(sketch, rows)


def _let_all_unroll(population: Population, rows: IntArray) -> None:
    """Each pragma with its largest step that writes out no more loops: which do is no longer to be seen."""
    sketch, schedule = population.sketch, population.schedule
    unrolling = Unrolling(schedule)
    for column in sketch.pragma_columns:
        steps = _steps(sketch, column)
        order = np.argsort(steps, kind="stable")
        allowed = unrolling.most_allowed(_pragma_loops(schedule, sketch, column))
        rows[:, column] = order[np.searchsorted(steps[order], allowed, side="right") - 1]


def _steps(sketch: Sketch, column: int) -> IntArray:
    """How many statements each choice allows."""
    return np.minimum(sketch.knobs[column].table[:, 0], MOST_STEPS)


def _pragma_loops(schedule: Schedule, sketch: Sketch, column: int) -> list[Loop]:
    """The loops whose pragmas the knob decides."""
    names = {(step.stage, step.loop) for step in sketch.pragmas_of(sketch.knobs[column])}
    return [loop for stage in schedule for loop in stage.pragmas if (stage.name, loop.name) in names]


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
