"""Candidates of several sketches in one matrix, so that what is done to each is done to all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.space import Candidate, Population, Sketch
from tilewright.target import Target

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Points:
    """`owners[point]` is the number of its sketch, `rows[point]` its choices; zeros follow if others have more knobs.

    `points[mask]` and `points[numbers]` are points.
    """

    sketches: Sequence[Sketch]
    owners: IntArray
    rows: IntArray

    @staticmethod
    def of(sketches: Sequence[Sketch], candidates: Sequence[Candidate]) -> Points:
        """The candidates, which are of these sketches, in order."""
        numbers = {sketch: number for number, sketch in enumerate(sketches)}
        rows = np.zeros((len(candidates), num_choices(sketches).shape[1]), np.int64)
        for place, candidate in enumerate(candidates):
            rows[place, : len(candidate.row)] = candidate.row
        return Points(sketches, np.asarray([numbers[c.sketch] for c in candidates], np.int64), rows)

    def __len__(self) -> int:
        return len(self.owners)

    def __getitem__(self, which: IntArray | BoolArray) -> Points:
        return Points(self.sketches, self.owners[which], self.rows[which])

    def where(self, mask: BoolArray, others: Points) -> Points:
        """Those of the others where the mask is set, and its own elsewhere."""
        owners = np.where(mask, others.owners, self.owners)
        return Points(self.sketches, owners, np.where(mask[:, None], others.rows, self.rows))

    def populations(self) -> Iterator[tuple[IntArray, Population]]:
        """The points of each sketch that has any, as a population, after their numbers."""
        for owner in np.unique(self.owners).tolist():
            places = np.flatnonzero(self.owners == owner)
            sketch = self.sketches[owner]
            yield places, Population(sketch, self.rows[places, : len(sketch.knobs)])

    def legal(self, target: Target) -> BoolArray:
        """For each point, whether it is worth building for the target."""
        found = np.zeros(len(self), np.bool_)
        for places, population in self.populations():
            found[places] = population.legal(target)
        return found

    def candidates(self) -> list[Candidate]:
        sketches = [self.sketches[owner] for owner in self.owners.tolist()]
        rows = zip(sketches, self.rows.tolist(), strict=True)
        return [Candidate(sketch, tuple(row[: len(sketch.knobs)])) for sketch, row in rows]


def num_choices(sketches: Sequence[Sketch]) -> IntArray:
    """`[sketch, column]`: how many choices the knob of a column has; 1 where there is none, which is its zero."""
    width = max(len(sketch.knobs) for sketch in sketches)
    return np.asarray([[k.cardinality for k in s.knobs] + [1] * (width - len(s.knobs)) for s in sketches], np.int64)


def kinds(sketches: Sequence[Sketch]) -> IntArray:
    """A number for each sketch, the same for those whose knobs have the same tables: they can exchange rows."""
    tables = [[(knob.table.shape, knob.table.tobytes()) for knob in sketch.knobs] for sketch in sketches]
    return np.asarray([tables.index(own) for own in tables])
