"""Every strategy of the package keeps the promises of the interface."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.search import STRATEGIES, EvolutionarySearch, RandomSearch, Scorer, SearchStrategy
from tilewright.space import Sketch
from tilewright.testing.search_checks import SearchChecks


class TestEvolutionarySearch(SearchChecks):
    def make(self, sketches: Sequence[Sketch], scorer: Scorer, seed: int) -> SearchStrategy:
        return EvolutionarySearch(sketches, scorer, self.target, seed, population=256)


class TestRandomSearch(SearchChecks):
    def make(self, sketches: Sequence[Sketch], scorer: Scorer, seed: int) -> SearchStrategy:
        return RandomSearch(sketches, scorer, self.target, seed)


def test_every_strategy_is_here() -> None:
    assert set(STRATEGIES.values()) == {EvolutionarySearch, RandomSearch}
