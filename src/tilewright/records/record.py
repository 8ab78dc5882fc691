"""`Record`: one trial as the log keeps it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from tilewright.errors import RecordFormatError, ScheduleError
from tilewright.measure import OK, STATUSES
from tilewright.schedule import Trace

Names: TypeAlias = tuple[tuple[str, ...], ...]
"""Of each input and stage of a task its name, then those of its axes."""


@dataclass(frozen=True, slots=True)
class Record:
    """What was measured, and what came of it.

    >>> record = Record("5f3a", "gmm:512x512x512", "llvm -mcpu=haswell", 2, Trace(), "OK", 1e-3, (1e-3,))
    >>> Record.from_json(record.to_json()) == record
    True
    """

    task: str  # the structural hash
    workload: str  # a name for people; may be empty
    target: str  # str(Target)
    threads: int
    trace: Trace
    status: str
    latency_s: float | None = None  # the median of the runs; None unless the status is OK
    runs_s: tuple[float, ...] = ()
    error: str = ""
    build_s: float = 0.0
    time: float = 0.0  # when it was measured, in seconds since 1970
    names: Names = ()  # what the task calls its tensors and axes, and so the trace; older records do not say
    pace: float = 1.0  # how many times as long as in its own trial the task's first program took at that time

    @property
    def steady_latency_s(self) -> float:
        """The latency as if the machine had kept its pace since the task's first trial; infinite where nothing ran."""
        return math.inf if self.latency_s is None else self.latency_s / self.pace

    def to_json(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        lists = {"runs_s": list(self.runs_s), "names": [list(names) for names in self.names]}
        return values | {"trace": self.trace.to_json()} | lists

    def to_line(self) -> str:
        """One line of JSON, without the end of the line."""
        return json.dumps(self.to_json(), separators=(",", ":"), allow_nan=False)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Record:
        """Read a record; RecordFormatError says which field is wrong."""
        _check_fields(data)
        try:
            trace = Trace.from_json(data["trace"])
        except ScheduleError as error:
            raise RecordFormatError(f"trace: {error}") from error
        names = tuple(map(tuple, data.get("names", ())))
        return Record(**{**data, "trace": trace, "runs_s": tuple(data["runs_s"]), "names": names})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(n, list) and n and all(map(_is_text, n)) for n in value)


_RULES = {
    "task": ("a string", _is_text),
    "workload": ("a string", _is_text),
    "target": ("a string", _is_text),
    "threads": ("a whole number of at least 1", lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 1),
    "trace": ("a list of steps", lambda v: isinstance(v, list)),
    "status": (f"one of {', '.join(STATUSES)}", lambda v: v in STATUSES),
    "latency_s": ("a number of seconds or null", lambda v: v is None or _is_number(v)),
    "runs_s": ("a list of seconds", lambda v: isinstance(v, list) and all(map(_is_number, v))),
    "error": ("a string", _is_text),
    "build_s": ("a number of seconds", _is_number),
    "time": ("a number of seconds since 1970", _is_number),
    "names": ("a list of lists of names", _is_names),
    "pace": ("a number above 0", lambda v: _is_number(v) and v > 0),
}
_OPTIONAL = ("names", "pace")


def _check_fields(data: Mapping[str, Any]) -> None:
    missing = [name for name in _RULES if name not in data and name not in _OPTIONAL]
    if missing:
        raise RecordFormatError(f"a record needs the field {missing[0]}, which is missing")
    for name, value in data.items():
        if name not in _RULES:
            raise RecordFormatError(f"a record has no field {name}; the fields are {', '.join(_RULES)}")
        expected, is_right = _RULES[name]
        if not is_right(value):
            raise RecordFormatError(f"{name} must be {expected}, got {value!r}")
    if (data["latency_s"] is not None) != (data["status"] == OK):
        raise RecordFormatError(
            f"latency_s is there if and only if the status is OK, got {data['latency_s']} with {data['status']}"
        )
