"""A genetic algorithm on what was measured, without a cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tilewright.search.base import FloatArray, SearchStrategy, Told
from tilewright.search.operators import change_sketch, random_rows
from tilewright.search.options import share, whole
from tilewright.search.points import IntArray, Points, kinds
from tilewright.space import Candidate

_MAX_TRIES = 20


@dataclass(kw_only=True, eq=False)
class GeneticSearch(SearchStrategy):
    """AutoTVM's: a child has the first knobs of one parent and the others of a second, some changed at random.

    Parents are drawn by their throughput from the latest that were told, as many as a generation has, and the best of
    all. Where rounds are shorter than a generation, it is given over several of them. A second parent is of a sketch
    with the same choices; the sketch changes as the value of a knob does.
    """

    uses_scores: ClassVar[bool] = False

    population: int = whole(100)
    elite: int = whole(3, least=0)
    mutation: float = share(0.1)

    _generation: list[Candidate] = field(init=False, repr=False)  # what of it was not given yet
    _fitness: dict[Candidate, float] = field(init=False, repr=False)  # calls a second of the latest told

    def prepare(self) -> None:
        self._generation = []
        self._fitness = {}

    def ask(self, n: int) -> list[Candidate]:
        found: list[Candidate] = []
        for _ in range(_MAX_TRIES):
            while self._generation and len(found) < n:
                found += self.take_new([self._generation.pop()], 1)
            if len(found) >= n or not self._fitness:
                break
            self._generation = self._children()
        return found + self.random_new(n - len(found))

    def learn(self, told: Sequence[Told]) -> None:
        fitness = self._fitness | {each.candidate: 1 / each.latency_s for each in told if each.latency_s}
        self._fitness = dict(list(fitness.items())[-self.population :])

    def _children(self) -> list[Candidate]:
        """A generation, without those that are illegal."""
        parents = dict(self._fitness) | {c: 1 / latency_s for c, latency_s in self.measured[: self.elite] if latency_s}
        points = Points.of(self.sketches, list(parents))
        crossed = self._crossed(points, np.asarray(list(parents.values())))
        children = self._mutated(crossed)
        return children[children.legal(self.target)].candidates()

    def _crossed(self, points: Points, fitness: FloatArray) -> Points:
        first = self._drawn(fitness, self.population)
        second = first.copy()
        kind_of = kinds(points.sketches)[points.owners]
        for kind in np.unique(kind_of[first]).tolist():
            children, own = np.flatnonzero(kind_of[first] == kind), np.flatnonzero(kind_of == kind)
            second[children] = own[self._drawn(fitness[own], len(children))]
        num_knobs = np.asarray([len(sketch.knobs) for sketch in points.sketches])[points.owners[first]]
        cuts = self.rng.integers(0, np.maximum(num_knobs, 1))
        from_second = np.arange(points.rows.shape[1]) >= cuts[:, None]
        return Points(
            points.sketches, points.owners[first], np.where(from_second, points.rows[second], points.rows[first])
        )

    def _drawn(self, fitness: FloatArray, num: int) -> IntArray:
        return self.rng.choice(len(fitness), size=num, p=fitness / fitness.sum())

    def _mutated(self, points: Points) -> Points:
        drawn = random_rows(self.rng, points.sketches, points.owners)
        changes = self.rng.random(drawn.shape) < self.mutation
        changed = Points(points.sketches, points.owners, np.where(changes, drawn, points.rows))
        moves = self.rng.random(len(points)) < self.mutation
        return changed.where(moves, change_sketch(self.rng, changed))
