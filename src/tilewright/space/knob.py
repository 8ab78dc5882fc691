"""Knobs: the open decisions of a sketch, each with the table of its choices. A kind of knob is a class."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from tilewright.errors import ScheduleError, UsageError
from tilewright.schedule import Extent

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Neighbours differ by at most a factor of two in each number, and by that in at most two of them.
_MAX_STEP, _MAX_STEPS = 1.01, 2.01
# Of a choice with nothing so near, the nearest few.
_NUM_NEAREST = 2


class Knob(ABC):
    """One decision: `table` has a row for each choice, and a column for each number that the choice fixes.

    Choices are given and taken as arrays of row numbers, one for each candidate of a population. A kind says what lies
    near what, and what else it knows of its numbers. Two knobs are two decisions, whatever their names and tables.
    """

    kind: ClassVar[str]
    """What it is called where knobs are shown."""
    mutation_weight: ClassVar[float]
    """How likely it is to be the knob that a mutation changes, next to the others of its sketch."""

    def __init__(self, name: str, table: npt.ArrayLike) -> None:
        self.name = name
        self.table: IntArray = np.array(table, dtype=np.int64)
        if self.table.ndim == 1:
            self.table = self.table[:, None]
        if self.table.ndim != 2 or not self.table.size:
            raise ScheduleError(
                f"the table of a knob has a row of numbers for each choice, at least one, and that of {name} has the "
                f"shape {list(self.table.shape)}; a decision without choices is left out"
            )
        self.table.setflags(write=False)

    @property
    def cardinality(self) -> int:
        return len(self.table)

    @abstractmethod
    def encode(self, choices: IntArray) -> FloatArray:
        """The choices as points, [choice, number], that are the nearer the more alike the programs are."""

    def sample(self, rng: np.random.Generator, n: int) -> IntArray:
        """`n` choices, each as likely as another."""
        return rng.integers(0, self.cardinality, n)

    def sample_plain(self, rng: np.random.Generator, n: int) -> IntArray:
        """`n` choices among the plain ones."""
        return rng.choice(self.plain_choices, n)

    @property
    def plain_choices(self) -> IntArray:
        """The choices that make a simple program: there are few, and good ones among them."""
        return np.arange(self.cardinality)

    def neighbours(self, rng: np.random.Generator, choices: IntArray) -> IntArray:
        """For each choice one that lies near it; the only choice is its own neighbour."""
        starts, neighbours = self._neighbours
        counts = starts[choices + 1] - starts[choices]
        return neighbours[starts[choices] + (rng.random(len(choices)) * counts).astype(np.int64)]

    def all_neighbours(self, choice: int) -> IntArray:
        """All choices that lie near this one; none of the only choice."""
        starts, neighbours = self._neighbours
        found = neighbours[starts[choice] : starts[choice + 1]]
        others: IntArray = found[found != choice]
        return others

    @cached_property
    def _neighbours(self) -> tuple[IntArray, IntArray]:
        """A list of neighbours for each choice, one behind the other, and where each list begins."""
        if self.cardinality == 1:
            return np.asarray([0, 1]), np.asarray([0])
        points = self.encode(np.arange(self.cardinality))
        starts, lists = [0], []
        for choice, point in enumerate(points):
            steps = np.abs(points - point)
            near = (steps.sum(axis=1) <= _MAX_STEPS) & (steps.max(axis=1) <= _MAX_STEP)
            near[choice] = False
            found = np.flatnonzero(near)
            if not len(found):
                found = np.argsort(steps.sum(axis=1))[1 : 1 + _NUM_NEAREST]
            lists.append(found)
            starts.append(starts[-1] + len(found))
        return np.asarray(starts, np.int64), np.concatenate(lists)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self.cardinality} choices)"


class TileKnob(Knob):
    """How a loop is cut: the extents of its inner loops, outermost first."""

    kind = "tile"
    mutation_weight = 0.90

    def encode(self, choices: IntArray) -> FloatArray:
        """Their logarithms: a factor moved from one level to another is one step down and one up."""
        return np.log2(self.table[choices])

    @cached_property
    def plain_choices(self) -> IntArray:
        """Those that cut the loop at most once beside the innermost tile."""
        return np.flatnonzero(np.count_nonzero(self.table[:, :-1] > 1, axis=1) <= 1)


class NumberKnob(Knob):
    """One number among a few, zero perhaps."""

    mutation_weight = 0.05

    def encode(self, choices: IntArray) -> FloatArray:
        points: FloatArray = np.log2(1.0 + self.table[choices])
        return points


class VectorKnob(NumberKnob):
    """How many elements are computed at a time, in vector lanes."""

    kind = "vector"


class UnrollKnob(NumberKnob):
    """Up to how many steps the loops inside are unrolled."""

    kind = "unroll"


@dataclass(frozen=True, slots=True)
class Decision:
    """A number that is left to a knob, in place of a step's value: the product of some columns of the knob's table."""

    knob: Knob = field(repr=False)
    columns: tuple[int, ...] = (0,)

    def values(self, choices: IntArray) -> IntArray:
        """The number for each choice."""
        products: IntArray = self.knob.table[choices][:, list(self.columns)].prod(axis=1)
        return products

    def value(self, choice: int) -> int:
        """The number for one choice."""
        return math.prod(self.knob.table[choice, list(self.columns)].tolist())

    def __mul__(self, other: object) -> Decision:
        """The product of two numbers of one knob."""
        if not isinstance(other, Decision) or other.knob is not self.knob:
            raise UsageError(f"{self} is multiplied by {other}; a decision is multiplied by another of its own knob")
        return Decision(self.knob, (*self.columns, *other.columns))

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        """Whether it is the same decision; whether it is some number is not known yet."""
        if isinstance(other, int | float):
            raise self._open()
        return isinstance(other, Decision) and (self.knob, self.columns) == (other.knob, other.columns)

    def _refuse(self, *others: object) -> NoReturn:
        raise self._open()

    __bool__ = __int__ = __index__ = __float__ = __iter__ = __round__ = __neg__ = __abs__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _refuse

    def _open(self) -> UsageError:
        return UsageError(
            f"{self} is a number that is not known yet, since a knob decides it: it can be given to split, and "
            "multiplied by another of its knob; let a knobs.choice decide what depends on it"
        )

    def __str__(self) -> str:
        return f"{self.knob.name}{list(self.columns)}"

    def __repr__(self) -> str:
        return str(self)


def decisions_in(value: Any) -> list[Decision]:
    """The decisions that a step's value is made of."""
    return [part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Decision)]


def resolve(value: Any, number: Callable[[Decision], Extent]) -> Any:
    """A step's value with a number in the place of each decision: an array for a population, one entry a candidate."""
    if isinstance(value, Decision):
        return number(value)
    if isinstance(value, tuple):
        return tuple(resolve(v, number) for v in value)
    return value
