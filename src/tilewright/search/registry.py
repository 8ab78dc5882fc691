"""Search strategies by name, from files, or as they are given.

The file of a strategy is JSON that a person writes: `{"search": "evolutionary", "options": {"population": 512}}`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tilewright.errors import UsageError
from tilewright.search.annealing import SimulatedAnnealing
from tilewright.search.base import SearchStrategy
from tilewright.search.coordinate_descent import CoordinateDescent
from tilewright.search.evolutionary import EvolutionarySearch
from tilewright.search.genetic import GeneticSearch
from tilewright.search.grid import GridSearch
from tilewright.search.options import check_options, defaults_of
from tilewright.search.random import RandomSearch
from tilewright.search.tpe import TPESearch

STRATEGIES: dict[str, type[SearchStrategy]] = {
    "evolutionary": EvolutionarySearch,
    "annealing": SimulatedAnnealing,
    "genetic": GeneticSearch,
    "coordinate-descent": CoordinateDescent,
    "tpe": TPESearch,
    "grid": GridSearch,
    "random": RandomSearch,
}

_EXAMPLE = '{"search": "evolutionary", "options": {"population": 512}}'


def find_strategy(search: object) -> SearchStrategy:
    """What a caller means: a strategy, its name, the path of its file, or a class, which is made with its own options.

    >>> find_strategy("random")
    RandomSearch()
    """
    if isinstance(search, SearchStrategy):
        return search
    if isinstance(search, str) and search in STRATEGIES:
        return STRATEGIES[search]()
    if isinstance(search, type) and issubclass(search, SearchStrategy):
        return search()
    if isinstance(search, os.PathLike) or (isinstance(search, str) and os.path.exists(search)):
        return load_strategy(search)
    raise UsageError(
        f"search is {search!r}; it must be one of {', '.join(STRATEGIES)}, the path of a file such as {_EXAMPLE}, "
        "or a SearchStrategy"
    )


def load_strategy(path: str | os.PathLike[str]) -> SearchStrategy:
    """The strategy that a file describes."""
    what = os.fspath(path)
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except FileNotFoundError:
        raise UsageError(f"a search strategy is read from a file, but {what} is not there; check the path") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{what} is not the file of a search strategy: {error}; write one such as {_EXAMPLE}"
        ) from None
    if not isinstance(content, dict) or not set(content) <= {"search", "options"} or "search" not in content:
        raise UsageError(f"the file of a search strategy is such as {_EXAMPLE}; {what} is not")
    name, options = content["search"], content.get("options", {})
    if not isinstance(name, str) or name not in STRATEGIES:
        raise UsageError(f"a search strategy is one of {', '.join(STRATEGIES)}, got {name!r} in {what}")
    return STRATEGIES[name](**_checked(STRATEGIES[name], options, what))


def _checked(kind: type[SearchStrategy], options: object, what: str) -> dict[str, Any]:
    """The options, if the strategy has them and each is in its range."""
    known = defaults_of(kind)
    if not isinstance(options, dict) or not set(options) <= set(known):
        raise UsageError(f"the options of {kind.__name__} are {', '.join(known) or 'none'}; got {options!r} in {what}")
    check_options(kind, options, f" in {what}")
    return options
