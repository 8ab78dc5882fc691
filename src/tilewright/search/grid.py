"""Grid search: every program, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from tilewright.search.base import SearchStrategy
from tilewright.search.enumeration import numbered
from tilewright.space import Candidate, Sketch

_FIRST_ROWS, _MAX_ROWS = 256, 2**14
# Where so many rows on end are illegal a sketch is given up: it takes a second, and 10^9 rows would take hours.
_MAX_ILLEGAL = 2**20


@dataclass(kw_only=True, eq=False)
class GridSearch(SearchStrategy):
    """The legal rows of the sketches in order, one of each sketch in turn; in a row the first knob changes the fastest.

    It ends when all were given.
    """

    uses_scores: ClassVar[bool] = False

    _turns: deque[Iterator[Candidate]] = field(init=False, repr=False)

    def prepare(self) -> None:
        self._turns = deque(map(self._legal_rows, self.sketches))

    def add(self, sketch: Sketch) -> None:
        super().add(sketch)
        self._turns.append(self._legal_rows(sketch))

    def ask(self, n: int) -> list[Candidate]:
        found: list[Candidate] = []
        while self._turns and len(found) < n:
            rows = self._turns.popleft()
            candidate = next(rows, None)
            if candidate is not None:
                self._turns.append(rows)
                found += self.take_new([candidate], 1)
        return found

    def _legal_rows(self, sketch: Sketch) -> Iterator[Candidate]:
        """Looks ahead by more and more rows, so that long illegal stretches are few steps."""
        first, num_rows, num_illegal = 0, _FIRST_ROWS, 0
        while first < sketch.cardinality and num_illegal < _MAX_ILLEGAL:
            legal = self.only_legal(numbered(sketch, first, num_rows))
            yield from legal
            num_illegal = 0 if len(legal) else num_illegal + num_rows
            first += num_rows
            num_rows = min(2 * num_rows, _MAX_ROWS)
