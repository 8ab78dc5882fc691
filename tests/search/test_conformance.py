"""Every strategy of the package keeps the promises of the interface."""

from __future__ import annotations

from tilewright.search import (
    STRATEGIES,
    CoordinateDescent,
    EvolutionarySearch,
    GeneticSearch,
    GridSearch,
    RandomSearch,
    SearchStrategy,
    SimulatedAnnealing,
    TPESearch,
)
from tilewright.testing.search_checks import SearchChecks


class TestEvolutionarySearch(SearchChecks):
    def make(self) -> SearchStrategy:
        return EvolutionarySearch(population=256)


class TestDiverseEvolutionarySearch(SearchChecks):
    def make(self) -> SearchStrategy:
        return EvolutionarySearch(population=256, alpha=0.5, epsilon=0.3)


class TestSimulatedAnnealing(SearchChecks):
    def make(self) -> SearchStrategy:
        return SimulatedAnnealing(chains=32, tries=2)


class TestDiverseSimulatedAnnealing(SearchChecks):
    def make(self) -> SearchStrategy:
        return SimulatedAnnealing(chains=32, tries=2, alpha=0.5, epsilon=1.0)


class TestGeneticSearch(SearchChecks):
    def make(self) -> SearchStrategy:
        return GeneticSearch(population=12)


class TestCoordinateDescent(SearchChecks):
    def make(self) -> SearchStrategy:
        return CoordinateDescent()


class TestTPESearch(SearchChecks):
    def make(self) -> SearchStrategy:
        return TPESearch(startup=4)


class TestGridSearch(SearchChecks):
    def make(self) -> SearchStrategy:
        return GridSearch()


class TestRandomSearch(SearchChecks):
    def make(self) -> SearchStrategy:
        return RandomSearch()


def test_every_strategy_is_here() -> None:
    checked = {type(checks().make()) for checks in SearchChecks.__subclasses__()}
    assert set(STRATEGIES.values()) <= checked
