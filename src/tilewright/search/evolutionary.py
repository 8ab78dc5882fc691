"""Evolutionary search over populations: a matrix of rows for each sketch.

Each generation is scored as a whole, parents are drawn by their rank, and children come from the operators of
`operators.py`. The best rows that were never measured are given, with a few random ones among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from tilewright.search.base import FloatArray, Scorer, SearchStrategy
from tilewright.search.operators import crossover, mutate, relocate
from tilewright.space import Candidate, Sketch, is_legal
from tilewright.space.knob import IntArray
from tilewright.target import Target


class EvolutionarySearch(SearchStrategy):
    """Ansor's search: random and measured rows evolve under the cost model's scores."""

    def __init__(
        self,
        sketches: Sequence[Sketch],
        scorer: Scorer,
        target: Target,
        seed: int = 0,
        *,
        population: int = 2048,
        generations: int = 3,
        random_share: float = 0.05,
        measured_share: float = 0.2,
        crossover_share: float = 0.15,
        relocate_share: float = 0.05,
        min_parents: int = 32,
    ) -> None:
        super().__init__(sketches, scorer, target, seed)
        self.population = population
        self.generations = generations
        self.random_share = random_share
        self.measured_share = measured_share
        self.crossover_share = crossover_share
        self.relocate_share = relocate_share
        self.min_parents = min_parents

    def ask(self, n: int) -> list[Candidate]:
        pools = self._first_generation()
        best = _Best(self, 4 * n)
        best.offer(pools)
        for _ in range(self.generations):
            pools = self._next_generation(pools)
            best.offer(pools)
        rows = best.rows() if self.measured else _spread(best.rows(), n // 2)
        chosen = [self.take(position, row) for position, row in rows[: n - self._num_random(n)]]
        return chosen + self._random(n - len(chosen))

    def _num_random(self, n: int) -> int:
        return round(self.random_share * n)

    def _random(self, n: int) -> list[Candidate]:
        found: list[Candidate] = []
        for _ in range(20 * len(self.sketches)):
            if len(found) >= n:
                break
            position = int(self.rng.integers(len(self.sketches)))
            for row in self.random_rows(self.sketches[position], 2):
                if len(found) < n and self.is_new(position, row):
                    found.append(self.take(position, row))
        return found

    def _pool(self, position: int, rows: IntArray) -> _Pool:
        """The legal ones of the rows, which are looked at once for both, and their scores."""
        if not len(rows):
            return _Pool(rows, np.zeros(0))
        sketch = self.sketches[position]
        legal = is_legal(sketch.population(rows), len(rows), self.target)
        scores = self.scorer(sketch, rows)
        return _Pool(rows[legal], scores[legal])

    def _first_generation(self) -> list[_Pool]:
        """Random rows of every sketch, half of them plain, and mutants of the best measured ones.

        There are more of them in the first round, when nothing else is known.
        """
        share = self.population // len(self.sketches) // (2 if self.measured else 1)
        pools = []
        for position, sketch in enumerate(self.sketches):
            parts = [sketch.sample(self.rng, share), sketch.sample_plain(self.rng, share)]
            rows = [row for p, row, _ in self.measured[: max(8, len(self.measured) // 4)] if p == position]
            if rows:
                count = int(self.measured_share * self.population)
                parents = np.stack(rows)[self.rng.integers(0, len(rows), count)]
                parts += [np.stack(rows), mutate(self.rng, sketch, parents)]
            pools.append(self._pool(position, np.unique(np.concatenate(parts), axis=0)))
        return pools

    def _next_generation(self, pools: list[_Pool]) -> list[_Pool]:
        """Children of parents drawn by rank over all sketches; those with few such parents are left out.

        Before anything is measured each sketch has as many: what the first round leaves out is not learned about.
        """
        sizes = [len(pool.rows) for pool in pools]
        total = sum(sizes)
        if not total:
            return pools
        owner = np.repeat(np.arange(len(pools)), sizes)
        local = np.concatenate([np.arange(size) for size in sizes])
        if self.measured:
            weights = _weights_by_rank(np.concatenate([pool.scores for pool in pools]))
        else:
            weights = np.concatenate([_weights_by_rank(pool.scores) for pool in pools])
        picks = self.rng.choice(total, size=self.population, p=weights / weights.sum())
        children: list[list[IntArray]] = [[] for _ in pools]
        for position, sketch in enumerate(self.sketches):
            parents = pools[position].rows[local[picks[owner[picks] == position]]]
            if len(parents) < self.min_parents:
                continue
            roll = self.rng.random(len(parents))
            crossed = crossover(self.rng, sketch, parents[roll < self.crossover_share], parents)
            moved, to = relocate(self.rng, self.sketches, position, parents[roll > 1 - self.relocate_share])
            middle = (roll >= self.crossover_share) & (roll <= 1 - self.relocate_share)
            children[position] += [crossed, mutate(self.rng, sketch, parents[middle])]
            children[to].append(moved)
        return [
            self._pool(position, np.unique(np.concatenate(parts), axis=0) if parts else pools[position].rows[:0])
            for position, parts in enumerate(children)
        ]


def _weights_by_rank(scores: FloatArray) -> FloatArray:
    """How likely each is to be a parent; their sum is 1."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores)] = np.arange(len(scores))
    weights: FloatArray = np.exp(-ranks / (0.1 * max(len(scores), 1)))
    weights /= max(weights.sum(), 1e-300)
    return weights


def _spread(rows: list[tuple[int, IntArray]], num: int) -> list[tuple[int, IntArray]]:
    """The rows, best first; but the first `num` go round the sketches, so that each has its best among them."""
    by_sketch: dict[int, list[tuple[int, IntArray]]] = {}
    for item in rows:
        by_sketch.setdefault(item[0], []).append(item)
    rounds = [item for items in zip_longest(*by_sketch.values()) for item in items if item is not None]
    ahead = {(position, row.tobytes()) for position, row in rounds[:num]}
    return rounds[:num] + [(position, row) for position, row in rows if (position, row.tobytes()) not in ahead]


@dataclass(frozen=True, slots=True)
class _Pool:
    """Rows of one sketch and what the cost model thinks of them."""

    rows: IntArray
    scores: FloatArray


class _Best:
    """The best rows offered so far that were never given."""

    def __init__(self, search: SearchStrategy, size: int) -> None:
        self.search = search
        self.size = size
        self.found: dict[tuple[int, bytes], tuple[float, int, IntArray]] = {}

    def offer(self, pools: list[_Pool]) -> None:
        for position, pool in enumerate(pools):
            for index in np.argsort(-pool.scores)[: self.size]:
                row = pool.rows[index]
                if self.search.is_new(position, row):
                    self.found[position, row.tobytes()] = (float(pool.scores[index]), position, row)

    def rows(self) -> list[tuple[int, IntArray]]:
        ordered = sorted(self.found.values(), key=lambda item: -item[0])
        return [(position, row) for _, position, row in ordered]
