"""Evolutionary search over populations: one for each sketch.

Each generation is scored as a whole, parents are drawn by their rank, and children come from the operators of
`operators.py`. The best candidates that were never measured are given, with a few random ones among them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tilewright.search.base import FloatArray
from tilewright.search.best import Best
from tilewright.search.known_scores import KnownScores
from tilewright.search.operators import crossover, mutate, relocate
from tilewright.search.options import share, whole
from tilewright.search.scored import KEPT, ScoredSearch
from tilewright.space import Candidate, Population, Sketch, least_unrolled


@dataclass(kw_only=True, eq=False)
class EvolutionarySearch(ScoredSearch):
    """Ansor's search: random and measured candidates evolve under the cost model's scores."""

    population: int = whole(1536)
    generations: int = whole(3)
    measured_share: float = share(0.2)
    crossover_share: float = share(0.15)
    relocate_share: float = share(0.05)
    min_parents: int = whole(32)
    drawn_share: float = share(1 / 3)
    """Of the sketches, those that random candidates are drawn of in a round, once something was measured."""
    min_children: int = whole(16)
    """Fewer children of a sketch are not looked at: that takes as long as looking at many."""

    _known: KnownScores = field(init=False, repr=False)

    def ask(self, n: int) -> list[Candidate]:
        self._known = KnownScores(self.legal_scores)
        pools = self._first_generation()
        best = Best(self.seen, KEPT * n)
        _offer(best, pools)
        for _ in range(self.generations):
            pools = self._next_generation(pools)
            _offer(best, pools)
        return self.batch(best, n)

    def _pool(self, population: Population) -> _Pool:
        """The legal ones of the candidates and their scores; in a round each program is looked at once."""
        programs = least_unrolled(population)
        scores = self._known.scores(programs)
        legal = scores > -np.inf
        return _Pool(population[legal], programs[legal], scores[legal])

    def _first_generation(self) -> list[_Pool]:
        """Random candidates, half of them plain, and mutants of the best measured ones.

        In the first round, when nothing else is known, there are more of them, and some of every sketch.
        """
        num = self.population // len(self.sketches) // (2 if self.measured else 1)
        best = [candidate for candidate, _ in self.measured[: max(8, len(self.measured) // 4)]]
        drawn = self._drawn_sketches()
        pools = []
        for sketch in self.sketches:
            parts = [sketch.sample(self.rng, num), sketch.sample_plain(self.rng, num)] if sketch in drawn else []
            own = [candidate for candidate in best if candidate.sketch is sketch]
            if own:
                measured = Population.of(own)
                count = int(self.measured_share * self.population)
                parents = measured[self.rng.integers(0, len(measured), count)]
                parts += [measured, mutate(self.rng, parents)]
            if parts:
                pools.append(self._pool(Population.concatenate(parts).unique()))
        return pools

    def _drawn_sketches(self) -> set[Sketch]:
        """Other ones in each round: to look at some takes time, however few."""
        if not self.measured:
            return set(self.sketches)
        num = max(1, math.ceil(self.drawn_share * len(self.sketches)))
        return {self.sketches[place] for place in self.rng.permutation(len(self.sketches))[:num]}

    def _next_generation(self, pools: list[_Pool]) -> list[_Pool]:
        """Children of parents drawn by rank over all sketches; those with few such parents are left out."""
        if not any(len(pool.population) for pool in pools):
            return pools
        children: dict[Sketch, list[Population]] = {}
        for parents in self._parents(pools):
            if len(parents) < self.min_parents:
                continue
            for made in self._children(parents):
                children.setdefault(made.sketch, []).append(made)
        populations = [Population.concatenate(parts).unique() for parts in children.values()]
        return [self._pool(population) for population in populations if len(population) >= self.min_children] or pools

    def _parents(self, pools: list[_Pool]) -> list[Population]:
        """As many candidates as a generation has, those of each sketch together.

        Before anything is measured each sketch is as likely: what the first round leaves out is not learned about.
        """
        if self.measured:
            weights = _weights_by_rank(np.concatenate([pool.scores for pool in pools]))
        else:
            weights = np.concatenate([_weights_by_rank(pool.scores) for pool in pools])
        picks = self.rng.choice(len(weights), size=self.population, p=weights / weights.sum())
        ends = np.cumsum([len(pool.population) for pool in pools])
        owners = np.searchsorted(ends, picks, side="right")
        return [
            pool.population[picks[owners == position] - (ends[position] - len(pool.population))]
            for position, pool in enumerate(pools)
        ]

    def _children(self, parents: Population) -> tuple[Population, ...]:
        """Most of the parents mutated, some crossed with others, and a few in a sketch with the same knobs."""
        roll = self.rng.random(len(parents))
        is_crossed, is_moved = roll < self.crossover_share, roll > 1 - self.relocate_share
        crossed = crossover(self.rng, parents[is_crossed], parents)
        moved = relocate(self.rng, self.sketches, parents[is_moved])
        return crossed, mutate(self.rng, parents[~is_crossed & ~is_moved]), moved


def _weights_by_rank(scores: FloatArray) -> FloatArray:
    """How likely each is to be a parent; their sum is 1."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores)] = np.arange(len(scores))
    weights: FloatArray = np.exp(-ranks / (0.1 * max(len(scores), 1)))
    weights /= max(weights.sum(), 1e-300)
    return weights


@dataclass(frozen=True, slots=True)
class _Pool:
    """Candidates of one sketch and what the cost model thinks of them.

    Their children come from the candidates, and what is given are the rows that stand for the same programs: a loop
    that is too long to be written out may be short in a child.
    """

    population: Population
    programs: Population
    scores: FloatArray


def _offer(best: Best, pools: list[_Pool]) -> None:
    for pool in pools:
        best.offer(pool.programs, pool.scores)
