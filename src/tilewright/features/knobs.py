"""Choices of knobs in columns that all sketches share, as AutoTVM's "knob" features: the quickest to compute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tilewright.features.encoders import Encoder
from tilewright.features.row_table import Cell, RowTable
from tilewright.schedule.steps import STEPS
from tilewright.space import Population


@dataclass(frozen=True, eq=False)
class KnobsEncoder(Encoder):
    """One row: the numbers that each knob has chosen, one knob beside the other, and how many steps of each kind.

    The steps tell sketches apart, most of the time. Knobs beyond `num_knobs`, and numbers beyond `num_numbers` of one,
    are left out; those that a sketch does not have are 0. Numbers are taken as log2(1 + x). The columns mean the same
    for programs of one sketch; for other tasks, little.
    """

    name = "knobs"
    num_knobs: int = 16
    num_numbers: int = 4

    def __post_init__(self) -> None:
        self.check_counts()

    @property
    def columns(self) -> tuple[str, ...]:
        return _columns(self.num_knobs, self.num_numbers)

    @property
    def num_rows(self) -> int:
        return 1

    def encode(self, population: Population) -> NDArray[np.float32]:
        table = RowTable(self.columns)
        table.add(dict(self._cells(population)))
        return table.values(len(population))

    def _cells(self, population: Population) -> Iterator[tuple[str, Cell]]:
        for name, count in Counter(step.name for step in population.sketch.steps).items():
            yield f"num_{name}", count
        for number, knob in enumerate(population.sketch.knobs[: self.num_knobs]):
            chosen = np.abs(knob.table[population.rows[:, number]])
            for column in range(min(self.num_numbers, chosen.shape[1])):
                yield f"knob{number}.{column}", chosen[:, column]


@cache
def _columns(num_knobs: int, num_numbers: int) -> tuple[str, ...]:
    steps = [f"num_{step}" for step in STEPS]
    return (*steps, *(f"knob{knob}.{number}" for knob in range(num_knobs) for number in range(num_numbers)))
