"""Knobs: the open decisions of a sketch, each with the table of its choices."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

TILE, UNROLL, VECTOR = "tile", "unroll", "vector"


class Knob:
    """One decision: `table` has a row for each choice, and a column for each number that the choice fixes."""

    def __init__(self, name: str, kind: str, table: IntArray) -> None:
        self.name = name
        self.kind = kind
        self.table = np.ascontiguousarray(table, dtype=np.int64)
        self.table.setflags(write=False)

    @property
    def cardinality(self) -> int:
        return len(self.table)

    def sample(self, rng: np.random.Generator, n: int) -> IntArray:
        """`n` choices, each as likely as another."""
        return rng.integers(0, self.cardinality, n)

    def sample_plain(self, rng: np.random.Generator, n: int) -> IntArray:
        """`n` choices among those that cut a loop at most once beside the innermost tile."""
        return rng.choice(self._plain, n)

    @cached_property
    def _plain(self) -> IntArray:
        if self.kind != TILE:
            return np.arange(self.cardinality)
        return np.flatnonzero(np.count_nonzero(self.table[:, :-1] > 1, axis=1) <= 1)

    def values(self, choices: IntArray, columns: tuple[int, ...]) -> IntArray:
        """The product of the given columns for each choice."""
        products: IntArray = self.table[choices][:, list(columns)].prod(axis=1)
        return products

    def mutate(self, rng: np.random.Generator, choices: IntArray) -> IntArray:
        """For each choice a neighbour: a factor moved from one level to another, or one level changed a little."""
        starts, neighbours = self._neighbours
        counts = starts[choices + 1] - starts[choices]
        picks = (rng.random(len(choices)) * counts).astype(np.int64)
        at = np.minimum(starts[choices] + picks, max(0, len(neighbours) - 1))
        if not len(neighbours):
            return choices
        return np.where(counts > 0, neighbours[at], choices)

    def index_of(self, values: tuple[int, ...]) -> int | None:
        """The choice with exactly these numbers; None where the table has none."""
        found = np.flatnonzero((self.table == np.asarray(values)).all(axis=1))
        return int(found[0]) if len(found) else None

    @cached_property
    def _neighbours(self) -> tuple[IntArray, IntArray]:
        """A list of neighbours for each choice, one behind the other, and where each list begins."""
        logs = np.log2(self.table.astype(np.float64) + (self.kind != TILE))
        starts, lists = [0], []
        for position, row in enumerate(logs):
            steps = np.abs(logs - row)
            near = (steps.sum(axis=1) <= 2.01) & (steps.max(axis=1) <= 1.01)
            near[position] = False
            found = np.flatnonzero(near)
            if not len(found) and self.cardinality > 1:
                found = np.argsort(steps.sum(axis=1))[1:3]
            lists.append(found)
            starts.append(starts[-1] + len(found))
        flat = np.concatenate(lists) if lists else np.zeros(0, np.int64)
        return np.asarray(starts, np.int64), flat.astype(np.int64)

    def __repr__(self) -> str:
        return f"Knob({self.name}, {self.kind}, {self.cardinality} choices)"


@dataclass(frozen=True, slots=True)
class Choice:
    """A number that a knob decides: the product of some columns of its table. It stands in a step's field."""

    knob: Knob = field(repr=False)
    columns: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.knob.name}{list(self.columns)}"

    def __repr__(self) -> str:
        return str(self)


def resolve(value: Any, choices: dict[Knob, IntArray]) -> Any:
    """A step's field with its choices replaced by arrays, one entry a candidate."""
    if isinstance(value, Choice):
        return value.knob.values(choices[value.knob], value.columns)
    if isinstance(value, tuple):
        return tuple(resolve(v, choices) for v in value)
    return value


# --- tables --------------------------------------------------------------------------------------------------------


def tile_table(
    extent: int, levels: int, innermost: tuple[int, ...], max_waste: float = 1.15, max_choices: int = 4096
) -> IntArray:
    """Tilings of a loop: the extents of `levels` inner loops, outermost first, the last one of `innermost`.

    Tiles need not divide; the iterations of all tiles together exceed the extent by at most `max_waste`.
    """
    inner = sorted({min(size, extent) for size in innermost if size <= max(extent, 1)} or {extent})
    rows: list[tuple[int, ...]] = []
    for last in inner:
        tiles = -(-extent // last)
        for outer in _factor_tuples(tiles, levels - 1):
            total = int(np.prod(outer, dtype=np.int64)) * last
            covered = -(-extent // min(total, extent)) * min(total, extent)
            if total > extent:
                covered = -(-extent // last) * last
            if covered <= max_waste * extent:
                rows.append((*outer, last))
    table = np.asarray(sorted(set(rows)), dtype=np.int64).reshape(-1, levels)
    if len(table) > max_choices:
        table = table[np.linspace(0, len(table) - 1, max_choices).astype(np.int64)]
    return table


def _factor_tuples(total: int, levels: int) -> list[tuple[int, ...]]:
    """Extents of nested loops over at most `total` tiles: powers of two, divisors, and all."""
    if levels == 0:
        return [()]
    sizes = sorted({1, total, *(2**n for n in range(total.bit_length()) if 2**n <= total), *divisors(total)})
    found: list[tuple[int, ...]] = []
    for size in sizes:
        rest = -(-total // size)
        found += [(*outer, size) for outer in _factor_tuples(rest, levels - 1)]
    return found


def divisors(n: int) -> list[int]:
    """The divisors of n, in order."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})
