"""Search strategies by name."""

from tilewright.errors import UsageError
from tilewright.search.base import Scorer, SearchStrategy
from tilewright.search.evolutionary import EvolutionarySearch
from tilewright.search.random import RandomSearch

STRATEGIES: dict[str, type[SearchStrategy]] = {"evolutionary": EvolutionarySearch, "random": RandomSearch}

__all__ = ["STRATEGIES", "EvolutionarySearch", "RandomSearch", "Scorer", "SearchStrategy", "find_strategy"]


def find_strategy(search: object) -> SearchStrategy:
    """What a caller means: a strategy, the name of one, or a class of them, which is made with its own options.

    >>> find_strategy("random")
    RandomSearch()
    """
    if isinstance(search, SearchStrategy):
        return search
    if isinstance(search, str) and search in STRATEGIES:
        return STRATEGIES[search]()
    if isinstance(search, type) and issubclass(search, SearchStrategy):
        return search()
    raise UsageError(f"search is {search!r}; it must be one of {', '.join(STRATEGIES)}, or a SearchStrategy")
