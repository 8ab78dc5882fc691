"""Random search: the baseline."""

from __future__ import annotations

from typing import ClassVar

from tilewright.search.base import SearchStrategy
from tilewright.space import Candidate


class RandomSearch(SearchStrategy):
    """Legal candidates drawn from all sketches alike."""

    uses_scores: ClassVar[bool] = False

    def ask(self, n: int) -> list[Candidate]:
        found: list[Candidate] = []
        for _ in range(20):
            for position, sketch in enumerate(self.sketches):
                for row in self.random_rows(sketch, max(1, n // len(self.sketches))):
                    if len(found) < n and self.is_new(position, row):
                        found.append(self.take(position, row))
            if len(found) >= n:
                break
        return found
