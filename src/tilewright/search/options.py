"""The options of strategies: numbers with a default and a range, as the fields of a dataclass.

```python
@dataclass(kw_only=True, eq=False)
class MySearch(SearchStrategy):
    population: int = whole(100)
    mutation: float = share(0.1)
```
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

from tilewright.arguments import Range
from tilewright.errors import UsageError

_RANGE = "range"
_MOST = 1_000_000  # more is a slip, and no memory holds such a population


def whole(default: int, *, least: int = 1) -> int:
    """An option that is a count."""
    return field(default=default, metadata={_RANGE: Range(least, _MOST, is_whole=True)})


def share(default: float) -> float:
    """An option that is a share or a probability."""
    return field(default=default, metadata={_RANGE: Range(0, 1)})


def number(default: float) -> float:
    """An option that is any number but a negative one."""
    return field(default=default, metadata={_RANGE: Range(0, _MOST)})


def defaults_of(strategy: Any) -> dict[str, Any]:
    """The options that a strategy, a class or a value, takes, and their defaults."""
    return {option.name: option.default for option in fields(strategy) if option.init}


def check_options(strategy: Any, options: dict[str, Any], where: str = "") -> None:
    """Raises where an option is out of its range; options that are no numbers of ranges are the strategy's business."""
    for option in fields(strategy):
        allowed = option.metadata.get(_RANGE)
        if allowed is None or option.name not in options or options[option.name] in allowed:
            continue
        raise UsageError(
            f"{option.name} is {allowed}, got {options[option.name]!r}{where}; its default is {option.default}"
        )
