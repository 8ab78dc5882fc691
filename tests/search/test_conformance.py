"""Every strategy of the package keeps the promises of the interface."""

from __future__ import annotations

from tilewright.search import STRATEGIES, EvolutionarySearch, RandomSearch, SearchStrategy
from tilewright.testing.search_checks import SearchChecks


class TestEvolutionarySearch(SearchChecks):
    def make(self) -> SearchStrategy:
        return EvolutionarySearch(population=256)


class TestRandomSearch(SearchChecks):
    def make(self) -> SearchStrategy:
        return RandomSearch()


def test_every_strategy_is_here() -> None:
    assert set(STRATEGIES.values()) == {EvolutionarySearch, RandomSearch}
