"""Logs of TVM's auto-scheduler (Ansor), and so of the TenSet collection, as neutral data.

A line holds the task, the steps of the schedule, and the costs:
{"i": [[workload key, target, ...], [stages, steps]], "r": [costs, error number, all seconds, time], "v": "v0.6"}
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.errors import RecordFormatError
from tilewright.records.reading import file_error

_MOST_CHARACTERS = 300
_NO_COST_S = 1e9  # failed runs are written with 1e10 seconds


@dataclass(frozen=True, slots=True)
class AnsorRecord:
    """One measured program. A step is its kind, such as "SP" for split, and then its arguments."""

    workload_key: tuple[Any, ...]  # a hash or a name, then shapes
    target: str
    steps: tuple[tuple[Any, ...], ...]
    costs_s: tuple[float, ...]
    error_number: int  # 0 if all went well
    time: float
    version: str

    @property
    def latency_s(self) -> float | None:
        """The mean cost, which is what the tool that wrote the log goes by; None if the program failed."""
        if self.error_number != 0 or not self.costs_s or max(self.costs_s) >= _NO_COST_S:
            return None
        return sum(self.costs_s) / len(self.costs_s)


def read_ansor_log(path: str | os.PathLike[str]) -> Iterator[AnsorRecord]:
    """The records of a log; lines that are empty or begin with # are left out."""
    try:
        file = open(path, "rb")  # noqa: SIM115 - the with statement below holds it
    except OSError as error:
        raise file_error(path, error) from error
    with file:
        for number, line in enumerate(file, start=1):
            if not line.strip() or line.startswith(b"#"):
                continue
            try:
                yield _parse_line(line)
            except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
                reason = str(error)[:_MOST_CHARACTERS]
                raise RecordFormatError(
                    f"{os.fspath(path)}:{number}: not a record of the auto-scheduler "
                    f"({type(error).__name__}: {reason}); remove the line"
                ) from error


def _parse_line(text: bytes) -> AnsorRecord:
    """One line; ValueError, TypeError, LookupError, OverflowError or RecursionError if it has another form."""
    data = json.loads(text)
    task, (_, steps) = data["i"]
    costs, error_number, _, time = data["r"]
    key = json.loads(task[0])
    return AnsorRecord(
        workload_key=tuple(key) if isinstance(key, list) else (key,),
        target=str(task[1]),
        steps=tuple((str(step[0]), *step[1:]) for step in steps),
        costs_s=tuple(map(_seconds, costs)),
        error_number=int(error_number),
        time=_seconds(time),
        version=str(data["v"]),
    )


def _seconds(value: float) -> float:
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"a time is a number of seconds, got {number}")
    return number
