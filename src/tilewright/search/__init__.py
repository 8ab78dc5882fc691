"""Search strategies: they choose which candidates are measured next."""

from tilewright.search.base import Scorer, SearchStrategy
from tilewright.search.evolutionary import EvolutionarySearch
from tilewright.search.random import RandomSearch
from tilewright.search.registry import STRATEGIES, find_strategy, load_strategy

__all__ = [
    "STRATEGIES",
    "EvolutionarySearch",
    "RandomSearch",
    "Scorer",
    "SearchStrategy",
    "find_strategy",
    "load_strategy",
]
