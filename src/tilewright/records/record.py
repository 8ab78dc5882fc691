"""`Record`: one trial as the log keeps it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from reprlib import repr as shown
from typing import Any, TypeAlias

from tilewright.errors import RecordFormatError, ScheduleError
from tilewright.measure import OK, STATUSES
from tilewright.schedule import Trace
from tilewright.target import MAX_THREADS

Names: TypeAlias = tuple[tuple[str, ...], ...]
"""Of each input and stage of a task its name, then those of its axes."""

WARM = "warm"
"""The context of a kernel that is run again and again, with all that it reads in the cache as far as that fits."""


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
    compared_s: float | None = None  # of a finalist: what it was chosen or refused by; no sample of it is in the runs
    context: str = WARM  # how the kernel found its constants when it was timed, such as "cold-47M"
    source: str = field(default="", compare=False, repr=False)  # the file and the line that it was read from

    def __post_init__(self) -> None:
        _check_field("context", self.context)

    @property
    def rank_s(self) -> float:
        """What programs are ranked by, which is not what is said of the best of them; infinite where nothing ran."""
        if self.latency_s is None:
            return math.inf
        return self.latency_s if self.compared_s is None else self.compared_s

    def to_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in FIELDS}
        lists = {"runs_s": list(self.runs_s), "names": [list(names) for names in self.names]}
        return values | {"trace": self.trace.to_json()} | lists

    def to_line(self) -> str:
        """One line of JSON, without the end of the line."""
        return json.dumps(self.to_json(), separators=(",", ":"), allow_nan=False)

    @staticmethod
    def from_json(data: Mapping[str, Any], source: str = "", trace: Trace | None = None) -> Record:
        """Read a record; RecordFormatError says which field is wrong. A `trace` stands for that of `data`."""
        _check_fields(data)
        if trace is None:
            try:
                trace = Trace.from_json(data["trace"])
            except ScheduleError as error:
                raise RecordFormatError(f"trace: {error}") from error
        names = tuple(map(tuple, data.get("names", ())))
        changes = {"trace": trace, "runs_s": tuple(data["runs_s"]), "names": names, "source": source}
        return Record(**{name: data[name] for name in FIELDS if name in data} | changes)


def _is_number(value: object, least: float, most: float) -> bool:
    """Whole numbers may be too large for a float, and what is no number compares with nothing."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _is_time(value: object) -> bool:
    return _is_number(value, 0, _MOST_S)


def _is_latency(value: object) -> bool:
    return value is None or _is_number(value, _LEAST_S, _MOST_S)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_context(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9.-]{1,64}", value) is not None


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(n, list) and n and all(map(_is_text, n)) for n in value)


def _is_threads(value: object) -> bool:
    return isinstance(value, int) and _is_number(value, 1, MAX_THREADS)


# Shorter than a cycle and longer than history: nothing that was measured.
_LEAST_S, _MOST_S = 1e-12, 1e12
_LATENCY = f"a number of seconds from {_LEAST_S:g} to {_MOST_S:g}, or null"
_RULES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "task": ("a string", _is_text),
    "workload": ("a string", _is_text),
    "target": ("a string", _is_text),
    "threads": (f"a whole number from 1 to {MAX_THREADS}", _is_threads),
    "trace": ("a list of steps", lambda v: isinstance(v, list)),
    "status": (f"one of {', '.join(STATUSES)}", lambda v: isinstance(v, str) and v in STATUSES),
    "latency_s": (_LATENCY, _is_latency),
    "runs_s": ("a list of seconds", lambda v: isinstance(v, list) and all(map(_is_time, v))),
    "error": ("a string", _is_text),
    "build_s": ("a number of seconds", _is_time),
    "time": ("a number of seconds since 1970", _is_time),
    "names": ("a list of lists of names", _is_names),
    "compared_s": (_LATENCY, _is_latency),
    "context": ("a word of letters, digits, '-' and '.', 64 at most", _is_context),
}
FIELDS = tuple(_RULES)
"""What of a record is written, in this order."""
_OPTIONAL = ("names", "compared_s", "context")
_OBSOLETE = ("pace",)  # by which older records divided their latencies; it is ignored
_NEEDED = frozenset(_RULES) - frozenset(_OPTIONAL)


def _check_field(name: str, value: object) -> None:
    what, holds = _RULES[name]
    if not holds(value):
        raise RecordFormatError(f"{name} must be {what}, got {shown(value)}")


def _check_fields(data: Mapping[str, Any]) -> None:
    missing = _NEEDED - data.keys()
    if missing:
        first = next(name for name in FIELDS if name in missing)
        raise RecordFormatError(f"a record needs the field {first}, which is missing")
    for name, value in data.items():
        if name in _OBSOLETE:
            continue
        if name not in _RULES:
            raise RecordFormatError(f"a record has no field {shown(name)}; the fields are {', '.join(_RULES)}")
        _check_field(name, value)
    if (data["latency_s"] is not None) != (data["status"] == OK):
        raise RecordFormatError(
            f"latency_s is there if and only if the status is OK, got {data['latency_s']} with {data['status']}"
        )
