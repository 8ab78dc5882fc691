"""Search strategies by name, from files, or as they are given.

The file of a strategy is JSON that a person writes: `{"search": "evolutionary", "options": {"population": 512}}`.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from tilewright.errors import UsageError
from tilewright.search.base import SearchStrategy
from tilewright.search.evolutionary import EvolutionarySearch
from tilewright.search.random import RandomSearch

STRATEGIES: dict[str, type[SearchStrategy]] = {"evolutionary": EvolutionarySearch, "random": RandomSearch}

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
    return STRATEGIES[name](**_checked(STRATEGIES[name](), options, what))


def _checked(made: SearchStrategy, options: object, what: str) -> dict[str, Any]:
    """The options, if the strategy has them and each is a number such as its own."""
    known = {option.name: getattr(made, option.name) for option in fields(made) if option.init}
    if not isinstance(options, dict) or not set(options) <= set(known):
        raise UsageError(
            f"the options of {type(made).__name__} are {', '.join(known) or 'none'}; got {options!r} in {what}"
        )
    for name, value in options.items():
        whole = isinstance(known[name], int)
        is_number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or value < 0 or (value > 1 if not whole else value < 1):
            rule = "a whole number from 1 on" if whole else "a number from 0 to 1"
            raise UsageError(f"{name} is {rule}, got {value!r} in {what}; its default is {known[name]}")
    return options
