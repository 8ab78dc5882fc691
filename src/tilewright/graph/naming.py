"""New names for values: readable ones, made from others."""

from __future__ import annotations

from collections.abc import Container


class FreshNames:
    """Names that are not taken: `x.2`, `x.3` and so on for `x`, and for `x.2` too, so that none grows."""

    def __init__(self, taken: Container[str]) -> None:
        """`taken` is looked at when a name is asked for: whoever takes a name adds it there."""
        self._taken = taken
        self._last: dict[str, int] = {}

    def __call__(self, hint: str) -> str:
        if hint and hint not in self._taken:
            return hint
        base, dot, number = hint.rpartition(".")
        stem = base if dot and number.isdecimal() else hint
        last = self._last.get(stem, 1) + 1
        while f"{stem}.{last}" in self._taken:
            last += 1
        self._last[stem] = last
        return f"{stem}.{last}"
