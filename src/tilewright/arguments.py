"""What callers give: checks of kind and size whose errors name the argument, the rule and the value."""

from __future__ import annotations

import math
import operator
import os
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, SupportsIndex, TypeVar

from tilewright.errors import UsageError

_Kind = TypeVar("_Kind")
_TOO_LARGE = 2**63  # for the libraries that numbers are handed to
_TINY = 1e-30  # numbers closer to 0 are none that a float32 can be


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from the least to the most, without the least where it is open."""

    least: float
    most: float
    is_whole: bool = False
    is_open: bool = False

    def __contains__(self, value: Any) -> bool:
        is_number = isinstance(value, Integral if self.is_whole else Real) and not isinstance(value, bool)
        if not is_number:
            return False
        is_inside = self.least <= value <= self.most and not (self.is_open and value == self.least)
        return bool(is_inside and (value == 0 or abs(value) >= _TINY))

    def __str__(self) -> str:
        """
        >>> print(Range(1, 8, is_whole=True), "or", Range(0, 1, is_open=True))
        a whole number from 1 to 8 or a number above 0 and up to 1
        """
        begin = f"above {self.least} and up" if self.is_open else f"from {self.least}"
        return f"a {'whole ' if self.is_whole else ''}number {begin} to {self.most}"


def whole_number(name: str, value: object, least: int) -> int:
    """The value as an int.

    >>> whole_number("trials", 8, least=1)
    8
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise UsageError(f"{name} is {value!r}; it must be a whole number of at least {least}")
    number = operator.index(value)
    if number < least:
        raise UsageError(f"{name} is {number}; it must be at least {least}")
    if number >= _TOO_LARGE:
        raise UsageError(f"{name} is a number of {number.bit_length()} bits; it must be below 2**63")
    return number


def seconds(name: str, value: object) -> float:
    """A time, which may be infinite.

    >>> seconds("budget_s", 90)
    90.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or not value > 0:
        raise UsageError(f"{name} is {value!r}; it must be a number of seconds above 0")
    return float(value)


def instance(name: str, value: _Kind, kind: type) -> _Kind:
    """The value, which is of the class.

    >>> instance("workload", "gmm:8x8x8", str)
    'gmm:8x8x8'
    """
    if not isinstance(value, kind):
        raise UsageError(f"{name} is {value!r}; it must be of the class {kind.__name__}")
    return value


def several(name: str, values: _Kind) -> _Kind:
    """The values, which are in a list or the like: a text would be read as one value for each of its letters.

    >>> several("devices", ["a72", "v100"])
    ['a72', 'v100']
    """
    if isinstance(values, str | bytes | os.PathLike):
        raise UsageError(f"{name} is {values!r}; it must be a list, such as [{values!r}]")
    return values


def function(name: str, value: _Kind) -> _Kind:
    """The value, which can be called."""
    if not callable(value):
        raise UsageError(f"{name} is {value!r}; it must be a function")
    return value


def file_path(name: str, value: object) -> str:
    """The path of a file, which need not exist.

    >>> file_path("records", "gemm.jsonl")
    'gemm.jsonl'
    """
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str) or not path:
        raise UsageError(f"{name} is {value!r}; it must be the path of a file")
    return path


def replaceable_file(name: str, path: str | os.PathLike[str]) -> Path:
    """The file that a new one may take the place of: none yet, or a file; of a link, what it points to.

    Whoever may write to its folder would otherwise put a file in the place of a device such as /dev/null.
    """
    if os.path.isdir(path):
        raise UsageError(f"{name} is {os.fspath(path)}, which is a folder; name a file")
    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(f"{name} is {os.fspath(path)}, which is a device or a pipe; name a file")
    return Path(os.path.realpath(path))
