"""Evolutionary search over populations: a matrix of rows for each sketch.

Each generation is scored as a whole, parents are drawn by their rank, and children come from the operators of
`operators.py`. The best rows that were never measured are given, with a few random ones among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.codegen import Target
from tilewright.search.base import FloatArray, Scorer, SearchStrategy
from tilewright.search.operators import crossover, mutate, relocate
from tilewright.space import Candidate, Sketch
from tilewright.space.knob import IntArray


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
        generations: int = 4,
        random_share: float = 0.05,
        measured_share: float = 0.2,
        crossover_share: float = 0.15,
        relocate_share: float = 0.05,
    ) -> None:
        super().__init__(sketches, scorer, target, seed)
        self.population = population
        self.generations = generations
        self.random_share = random_share
        self.measured_share = measured_share
        self.crossover_share = crossover_share
        self.relocate_share = relocate_share

    def ask(self, n: int) -> list[Candidate]:
        pools = self._first_generation()
        scores = [self._score(position, rows) for position, rows in enumerate(pools)]
        best = _Best(self, 4 * n)
        for _ in range(self.generations):
            best.offer(pools, scores)
            pools = self._next_generation(pools, scores)
            scores = [self._score(position, rows) for position, rows in enumerate(pools)]
        best.offer(pools, scores)
        chosen = [self.take(position, row) for position, row in best.rows()[: n - self._num_random(n)]]
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

    def _score(self, position: int, rows: IntArray) -> FloatArray:
        return self.scorer(self.sketches[position], rows) if len(rows) else np.zeros(0)

    def _first_generation(self) -> list[IntArray]:
        """Random rows of every sketch, half of them plain, and mutants of the best measured ones."""
        share = self.population // len(self.sketches) // 2
        pools = [
            np.concatenate([self.random_rows(sketch, share), self.plain_rows(sketch, share)])
            for sketch in self.sketches
        ]
        for position, sketch in enumerate(self.sketches):
            rows = [row for p, row, _ in self.measured[: max(8, len(self.measured) // 4)] if p == position]
            if rows:
                count = int(self.measured_share * self.population)
                parents = np.stack(rows)[self.rng.integers(0, len(rows), count)]
                children = mutate(self.rng, sketch, parents)
                pools[position] = np.concatenate([pools[position], np.stack(rows), self.only_legal(sketch, children)])
        return pools

    def _next_generation(self, pools: list[IntArray], scores: list[FloatArray]) -> list[IntArray]:
        """Children of parents drawn by rank over all sketches."""
        sizes = [len(rows) for rows in pools]
        total = sum(sizes)
        if not total:
            return pools
        owner = np.repeat(np.arange(len(pools)), sizes)
        local = np.concatenate([np.arange(size) for size in sizes])
        ranks = np.empty(total)
        ranks[np.argsort(-np.concatenate(scores))] = np.arange(total)
        weights = np.exp(-ranks / (0.1 * total))
        picks = self.rng.choice(total, size=self.population, p=weights / weights.sum())
        children: list[list[IntArray]] = [[] for _ in pools]
        for position, sketch in enumerate(self.sketches):
            parents = pools[position][local[picks[owner[picks] == position]]]
            if not len(parents):
                continue
            roll = self.rng.random(len(parents))
            crossed = crossover(self.rng, sketch, parents[roll < self.crossover_share], parents)
            moved, to = relocate(self.rng, self.sketches, position, parents[roll > 1 - self.relocate_share])
            middle = (roll >= self.crossover_share) & (roll <= 1 - self.relocate_share)
            children[position] += [crossed, mutate(self.rng, sketch, parents[middle])]
            children[to].append(moved)
        return [
            self.only_legal(sketch, np.unique(np.concatenate(parts), axis=0)) if parts else pools[position][:0]
            for position, (sketch, parts) in enumerate(zip(self.sketches, children, strict=True))
        ]


class _Best:
    """The best rows offered so far that were never given."""

    def __init__(self, search: SearchStrategy, size: int) -> None:
        self.search = search
        self.size = size
        self.found: dict[tuple[int, bytes], tuple[float, int, IntArray]] = {}

    def offer(self, pools: list[IntArray], scores: list[FloatArray]) -> None:
        for position, (rows, values) in enumerate(zip(pools, scores, strict=True)):
            for index in np.argsort(-values)[: self.size]:
                row = rows[index]
                if self.search.is_new(position, row):
                    self.found[position, row.tobytes()] = (float(values[index]), position, row)

    def rows(self) -> list[tuple[int, IntArray]]:
        ordered = sorted(self.found.values(), key=lambda item: -item[0])
        return [(position, row) for _, position, row in ordered]
