"""`Field`: a value in a JSON text that somebody else may have written, read by what it has to be.

Every access names its type, and what is something else is refused with the way to it: `field["model"]["threads"]
.integer(at_least=1)` says that model.threads must be a whole number of at least 1, and what it is instead.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from typing import Any

from tilewright.errors import ArtifactError

_LARGEST = 2**63 - 1
_LARGEST_FLOAT = sys.float_info.max
_SHOWN_CHARACTERS = 60


def parse(text: bytes, source: str) -> Field:
    """The value of a text; `source` names it in messages."""
    try:
        return Field(json.loads(text), source)
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, a number of 5,000 digits; brackets in brackets
        raise ArtifactError(
            f"{source} must be JSON text, got {_shown(text)}: {error}; compile the model again"
        ) from error


class Field:
    """A value and the way to it."""

    __slots__ = ("_key", "_parent", "value")

    def __init__(self, value: Any, key: str | int, parent: Field | None = None) -> None:
        self.value = value
        self._key = key
        self._parent = parent

    def __str__(self) -> str:
        if self._parent is None:
            return str(self._key)
        if isinstance(self._key, int):
            return f"{self._parent}[{self._key}]"
        return f"{self._parent}{': ' if self._parent._parent is None else '.'}{self._key}"

    def __getitem__(self, name: str) -> Field:
        """The member of that name."""
        if not isinstance(self.value, dict) or name not in self.value:
            raise self.refused(f"an object with {name!r}")
        return Field(self.value[name], name, self)

    def get(self, name: str, default: Any) -> Field:
        """The member of that name; one of the value `default` where it is missing, as in files of earlier versions."""
        is_missing = isinstance(self.value, dict) and name not in self.value
        return Field(default, name, self) if is_missing else self[name]

    def items(self) -> list[Field]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            raise self.refused("a list")
        return [Field(item, position, self) for position, item in enumerate(self.value)]

    def pair(self) -> tuple[Field, Field]:
        """The entries of a list of two."""
        items = self.items()
        if len(items) != 2:
            raise self.refused("a list of two")
        return items[0], items[1]

    def integer(self, at_least: int = 0, at_most: int = _LARGEST) -> int:
        """A whole number; true and 1.0 are none."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
            raise self.refused(f"a whole number from {at_least} to {at_most}")
        return value

    def number(self) -> float:
        """A number that is finite and not negative."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST_FLOAT:
            raise self.refused("a number of at least 0")
        return float(value)

    def text(self) -> str:
        """A string of characters; half of one, as "\\ud800" writes it, cannot be printed."""
        value = self.value
        if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
            raise self.refused("a string")
        return value

    def one_of(self, choices: Collection[str]) -> str:
        """A string that is among the choices."""
        value = self.value
        if not isinstance(value, str) or value not in choices:
            raise self.refused(f"one of {', '.join(sorted(choices))}")
        return value

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.refused("true or false")
        return self.value

    def optional(self) -> Field | None:
        """The same; None where it is null."""
        return None if self.value is None else self

    def refused(self, rule: str) -> ArtifactError:
        """What to raise where the value does not keep the rule."""
        return ArtifactError(f"{self} must be {rule}, got {_shown(self.value)}; compile the model again")


def _shown(value: object) -> str:
    """The beginning of a value. Large ones are not written out only to be cut."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    if isinstance(value, str | bytes):
        return repr(value[:_SHOWN_CHARACTERS]) + ("..." if len(value) > _SHOWN_CHARACTERS else "")
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
