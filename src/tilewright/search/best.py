"""The best candidates that a search came by while it looked for what to measure next."""

from __future__ import annotations

import math
from collections.abc import Set
from heapq import nlargest

import numpy as np

from tilewright.search.base import FloatArray
from tilewright.space import Candidate, Population


class Best:
    """The best `size` candidates of each population offered so far that were never given."""

    def __init__(self, given: Set[Candidate], size: int) -> None:
        self.given = given
        self.size = size
        self.scores: dict[Candidate, float] = {}

    def offer(self, population: Population, scores: FloatArray) -> None:
        first = np.argsort(-scores)[: self.size]
        for candidate, score in zip(population[first], scores[first].tolist(), strict=True):
            if candidate not in self.given:
                self.scores[candidate] = max(score, self.scores.get(candidate, -math.inf))

    def least_of(self, num: int) -> float:
        """The score that the best `num` have at least; that of nothing while there are fewer."""
        return nlargest(num, self.scores.values())[-1] if 0 < num <= len(self.scores) else -math.inf

    @property
    def candidates(self) -> list[Candidate]:
        """Best first."""
        return sorted(self.scores, key=lambda candidate: -self.scores[candidate])
