"""Populations: many candidates of one sketch as a matrix, looked at together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from tilewright.errors import UsageError
from tilewright.schedule import Schedule, Trace
from tilewright.space.knob import IntArray
from tilewright.space.legality import is_legal
from tilewright.target import Target

if TYPE_CHECKING:
    from tilewright.space.sketch import Sketch


@dataclass(frozen=True, slots=True)
class Candidate:
    """One program of a sketch: a choice for each knob."""

    sketch: Sketch
    row: tuple[int, ...]

    @property
    def trace(self) -> Trace:
        return self.sketch.trace(self.row)


@dataclass(frozen=True, eq=False)
class Population:
    """Candidates of one sketch: `rows[candidate, knob]` is a choice of that knob. It is a value: nothing can change it.

    `population[2:5]`, `population[mask]` and `population[numbers]` are populations, `population[2]` is a candidate.
    """

    sketch: Sketch
    rows: IntArray

    def __post_init__(self) -> None:
        rows = np.array(_checked(self.sketch, self.rows), dtype=np.int64)
        rows.setflags(write=False)
        object.__setattr__(self, "rows", rows)

    @staticmethod
    def of(candidates: Sequence[Candidate]) -> Population:
        """The candidates, at least one and all of one sketch, as a population."""
        sketch = _the_one([candidate.sketch for candidate in candidates])
        return Population(sketch, np.asarray([candidate.row for candidate in candidates], np.int64))

    @staticmethod
    def concatenate(parts: Sequence[Population]) -> Population:
        """The candidates of all parts, at least one and all of one sketch, in order."""
        sketch = _the_one([part.sketch for part in parts])
        return Population(sketch, np.concatenate([part.rows for part in parts]))

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, which: int) -> Candidate: ...

    @overload
    def __getitem__(self, which: slice | npt.NDArray[np.bool_] | IntArray) -> Population: ...

    def __getitem__(self, which: int | slice | npt.NDArray[np.bool_] | IntArray) -> Candidate | Population:
        chosen = self.rows[which]
        return Candidate(self.sketch, tuple(chosen.tolist())) if chosen.ndim == 1 else Population(self.sketch, chosen)

    def __iter__(self) -> Iterator[Candidate]:
        return (Candidate(self.sketch, tuple(row)) for row in self.rows.tolist())

    def unique(self) -> Population:
        """Each candidate once, in the order of their rows."""
        return Population(self.sketch, np.unique(self.rows, axis=0))

    @cached_property
    def schedule(self) -> Schedule:
        """All candidates as one schedule, whose extents are arrays with an entry for each."""
        schedule = Schedule(self.sketch.task)
        schedule.replay(self.sketch.decided(self.rows))
        return schedule

    def trace(self, number: int) -> Trace:
        """The trace of one candidate."""
        return self.sketch.trace(self.rows[number].tolist())

    def legal(self, target: Target) -> npt.NDArray[np.bool_]:
        """For each candidate, whether it is worth building for the target."""
        return is_legal(self.schedule, len(self), target)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Population):
            return NotImplemented
        return self.sketch is other.sketch and np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        return hash((self.sketch, self.rows.tobytes()))

    def __repr__(self) -> str:
        return f"Population({len(self)} candidates of {self.sketch!r})"


def _the_one(sketches: Sequence[Sketch]) -> Sketch:
    different = list(dict.fromkeys(sketches))
    if len(different) != 1:
        raise UsageError(
            f"a population has candidates of one sketch, got {len(different)} sketches in {len(sketches)} parts; "
            "make a population for each sketch"
        )
    return different[0]


def _checked(sketch: Sketch, rows: object) -> npt.NDArray[np.integer[Any]]:
    """The rows, if each has a choice for every knob."""
    if not isinstance(rows, np.ndarray) or rows.dtype.kind not in "iu" or rows.ndim != 2:
        what = f"{rows.dtype} {list(rows.shape)}" if isinstance(rows, np.ndarray) else type(rows).__name__
        raise UsageError(f"the rows of a population are a matrix of integers, [candidate, knob], got {what}")
    if rows.shape[1] != len(sketch.knobs):
        raise UsageError(
            f"a row has a choice for each of the {len(sketch.knobs)} knobs of {sketch!r}, got {rows.shape[1]} choices; "
            "use rows of this sketch"
        )
    wrong = (rows < 0) | (rows >= [knob.cardinality for knob in sketch.knobs])
    if wrong.any():
        candidate, column = np.argwhere(wrong)[0]
        knob = sketch.knobs[column]
        raise UsageError(
            f"choices of {knob.name} are 0 to {knob.cardinality - 1}, got {rows[candidate, column]} "
            f"in row {candidate}; use rows of this sketch"
        )
    return rows
