"""Random search: the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.search.base import SearchStrategy
from tilewright.space import Candidate

_MAX_TRIES = 20


@dataclass(kw_only=True, eq=False)
class RandomSearch(SearchStrategy):
    """Legal candidates drawn from all sketches alike."""

    uses_scores: ClassVar[bool] = False

    def ask(self, n: int) -> list[Candidate]:
        found: list[Candidate] = []
        share = max(1, n // len(self.sketches))
        for _ in range(_MAX_TRIES):
            for sketch in self.sketches:
                found += self.take_new(self.random_legal(sketch, share), n - len(found))
            if len(found) >= n:
                break
        return found + self.remaining(n - len(found))
