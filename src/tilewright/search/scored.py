"""Strategies that look for candidates with high scores: how their batches are put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from tilewright.search.base import SearchStrategy
from tilewright.search.best import Best
from tilewright.search.diversity import choose_diverse
from tilewright.search.options import number, share
from tilewright.space import Candidate, Sketch


@dataclass(kw_only=True, eq=False)
class ScoredSearch(SearchStrategy):
    """A batch has the best that were found, unlike each other as far as `alpha` says, and some random candidates."""

    alpha: float = number(0.0)
    """What a knob's value is worth that no other of the batch has, in standard deviations of the scores."""
    epsilon: float = share(0.05)
    """How many of a batch are random."""

    def batch(self, best: Best, n: int) -> list[Candidate]:
        """`n` candidates out of the best; they count as given from now on."""
        num_best = n - round(self.epsilon * n)
        chosen = self.take_new(self._ranked(best, num_best, n), num_best)
        return chosen + self.random_new(n - len(chosen))

    def _ranked(self, best: Best, num_best: int, n: int) -> list[Candidate]:
        candidates = best.candidates
        if self.alpha > 0:
            scores = np.asarray([best.scores[candidate] for candidate in candidates])
            return choose_diverse(candidates, scores, num_best, self.alpha)
        return candidates if self.measured else _spread(candidates, n // 2)


def _spread(candidates: Sequence[Candidate], num: int) -> list[Candidate]:
    """The candidates, best first; but the first `num` go round the sketches, so that each has its best among them."""
    by_sketch: dict[Sketch, list[Candidate]] = {}
    for candidate in candidates:
        by_sketch.setdefault(candidate.sketch, []).append(candidate)
    rounds = [candidate for turn in zip_longest(*by_sketch.values()) for candidate in turn if candidate is not None]
    return list(dict.fromkeys([*rounds[:num], *candidates]))
