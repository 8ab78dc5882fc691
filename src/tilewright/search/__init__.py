"""Search strategies by name."""

from tilewright.search.base import Scorer, SearchStrategy
from tilewright.search.evolutionary import EvolutionarySearch
from tilewright.search.random import RandomSearch

STRATEGIES: dict[str, type[SearchStrategy]] = {"evolutionary": EvolutionarySearch, "random": RandomSearch}

__all__ = ["STRATEGIES", "EvolutionarySearch", "RandomSearch", "Scorer", "SearchStrategy"]
