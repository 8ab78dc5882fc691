"""Strategies that look for candidates with high scores: how their batches are put together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from tilewright.search.base import FloatArray, SearchStrategy
from tilewright.search.best import Best
from tilewright.search.diversity import choose_diverse
from tilewright.search.near import near_fastest
from tilewright.search.options import number, share
from tilewright.space import Candidate, Population, Sketch

# An algorithm is not tried for its own sake where its best score, the logarithm of a speed, says so many times slower.
_HOPELESS = math.log(4.0)
# A diverse batch is chosen out of so many times as many candidates.
_POOL = 4
# A search keeps so many times a batch of the best: enough that some differ in more than one knob.
KEPT = 16


@dataclass(kw_only=True, eq=False)
class ScoredSearch(SearchStrategy):
    """A batch has the best that were found, unlike each other as far as `alpha` says, and some random candidates.

    Before that come neighbours of the fastest programs, and those that are measured to learn from them: the best of
    each algorithm that was not tried yet, and in the first round the best of each sketch, half of a batch at most.
    Where there are several algorithms, the best differ from each other and from what was measured in two knobs or more.
    """

    alpha: float = number(0.0)
    """What a knob's value is worth that no other of the batch has, in standard deviations of the scores."""
    epsilon: float = share(0.05)
    """How many of a batch are random."""
    near_share: float = share(0.5)
    """How many of a batch differ in one knob from the fastest that were measured."""

    def legal_scores(self, population: Population) -> FloatArray:
        """A score for each candidate; -inf where it is not worth building."""
        return np.where(population.legal(self.target), self.scorer(population), -np.inf)

    def batch(self, best: Best, n: int) -> list[Candidate]:
        """`n` candidates out of the best; they count as given from now on."""
        num_best = n - round(self.epsilon * n)
        near = self._near(round(self.near_share * n))
        chosen = near + self.take_new(self._ranked(best, num_best, n), num_best - len(near))
        return chosen + self.random_new(n - len(chosen))

    def _near(self, num: int) -> list[Candidate]:
        return self.take_new(near_fastest(self.measured, self.scorer, self.target, self.seen), num) if num else []

    def _ranked(self, best: Best, num_best: int, n: int) -> list[Candidate]:
        candidates = best.candidates
        untried = self._of_untried_algorithms(best, candidates)[: n // 2]
        if self.alpha > 0:
            pool = candidates[: _POOL * n]
            scores = np.asarray([best.scores[candidate] for candidate in pool])
            return [*untried, *choose_diverse(pool, scores, num_best, self.alpha)]
        if self._has_algorithms:
            candidates = _apart(candidates, [candidate for candidate, _ in self.measured])
        return [*untried, *candidates] if self.measured else _spread(untried, candidates, n // 2)

    @property
    def _has_algorithms(self) -> bool:
        """Whether there is more than one to choose from."""
        return len({sketch.algorithms for sketch in self.sketches}) > 1

    def _of_untried_algorithms(self, best: Best, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The best of each algorithm of which none was given yet, unless its score is far below that of the others.

        A model that dislikes an algorithm would never learn that it is wrong. Where there is one alone, it has nothing
        to choose.
        """
        if not self._has_algorithms:
            return []
        algorithms = {sketch: sketch.algorithms for sketch in self.sketches}
        tried = {algorithms[candidate.sketch] for candidate in self.seen}
        least = best.least_of(1) - _HOPELESS
        firsts: dict[tuple[str, ...], Candidate] = {}
        for candidate in candidates:
            if best.scores[candidate] >= least and algorithms[candidate.sketch] not in tried:
                firsts.setdefault(algorithms[candidate.sketch], candidate)
        return list(firsts.values())


def _apart(candidates: Sequence[Candidate], known: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, but those that differ in one knob from a known one, or from one before them, come last.

    How far they are unrolled does not count. They would teach little more than that one, and get their turn as its
    neighbours if it proves to be fast.
    """
    rows: dict[Sketch, list[tuple[int, ...]]] = {}
    for candidate in known:
        rows.setdefault(candidate.sketch, []).append(_without_pragmas(candidate))
    first, last = [], []
    for candidate in candidates:
        own, row = rows.setdefault(candidate.sketch, []), _without_pragmas(candidate)
        if own and np.count_nonzero(np.asarray(own) != np.asarray(row), axis=1).min() < 2:
            last.append(candidate)
            continue
        own.append(row)
        first.append(candidate)
    return first + last


def _without_pragmas(candidate: Candidate) -> tuple[int, ...]:
    pragmas = candidate.sketch.pragma_columns
    return tuple(choice for column, choice in enumerate(candidate.row) if column not in pragmas)


def _spread(firsts: Sequence[Candidate], candidates: Sequence[Candidate], num: int) -> list[Candidate]:
    """The candidates, best first; but the first `num` are the firsts, and then the best of each sketch in turn."""
    by_sketch: dict[Sketch, list[Candidate]] = {}
    for candidate in candidates:
        by_sketch.setdefault(candidate.sketch, []).append(candidate)
    rounds = [candidate for turn in zip_longest(*by_sketch.values()) for candidate in turn if candidate is not None]
    turns = list(dict.fromkeys([*firsts, *rounds]))
    return list(dict.fromkeys([*turns[:num], *candidates]))
