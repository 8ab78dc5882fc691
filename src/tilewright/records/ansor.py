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
from reprlib import repr as shown
from typing import Any

from tilewright.records.foreign_log import (
    BROKEN_LINE,
    LoggedProgram,
    costs_s,
    error_number,
    flattened,
    line_error,
    log_lines,
    parsed,
)

NAME = "the auto-scheduler"
_NO_COST_S = 1e9  # failed runs are written with 1e10 seconds
_ANNOTATE, _PRAGMA = "AN", "PR"
# What the numbers of annotations stand for.
_ANNOTATIONS = (
    "none", "unroll", "vectorize", "parallel", "vthread", "blockIdx.x", "threadIdx.x", "blockIdx.y", "threadIdx.y",
    "blockIdx.z", "threadIdx.z", "tensorize",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnsorRecord:
    """One measured program. A step is its kind, such as "SP" for split, and then its arguments."""

    workload_key: tuple[Any, ...]  # a hash or a name, then shapes; a text of any form stands alone
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

    @property
    def program(self) -> LoggedProgram:
        """The record as primitives. An annotation and a pragma are words, all else that is written as one a number."""
        found = [(str(kind), *flattened(_in_words(kind, arguments))) for kind, *arguments in self.steps]
        return LoggedProgram(
            workload=json.dumps(self.workload_key, allow_nan=False),
            target=self.target,
            form=tuple((kind, words, len(numbers)) for kind, words, numbers in found),
            numbers=tuple(number for _, _, numbers in found for number in numbers),
            latency_s=self.latency_s,
            error_number=self.error_number,
        )


def read_ansor_log(path: str | os.PathLike[str]) -> Iterator[AnsorRecord]:
    """The records of a log, which may be compressed; lines that are empty or begin with # are left out."""
    for number, line in log_lines(path):
        try:
            yield parse_ansor_line(parsed(line))
        except BROKEN_LINE as error:
            raise line_error(path, number, NAME, error) from error


def parse_ansor_line(data: Any) -> AnsorRecord:
    """The record in the JSON of a line; one of BROKEN_LINE is raised if it has another form."""
    task, (_, steps) = data["i"]
    costs, error, _, time = data["r"][:4]
    failure = error_number(error)
    return AnsorRecord(
        workload_key=_workload_key(task[0]),
        target=str(task[1]),
        steps=tuple(map(_step, steps)),
        # What a failure has in the place of costs means nothing: 1e10, infinity, none at all.
        costs_s=() if failure else costs_s(costs),
        error_number=failure,
        time=_seconds(time),
        version=str(data["v"]),
    )


def _workload_key(text: Any) -> tuple[Any, ...]:
    """The parts of a key. It is a list in JSON where the tool chose it; who makes a task of a DAG may take any text."""
    try:
        key = json.loads(text)
    except json.JSONDecodeError:
        return (text,)
    return tuple(key) if isinstance(key, list) else (key,)


def _step(data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise TypeError(f"a step is a list of its kind and its arguments, got {shown(data)}")
    return str(data[0]), *data[1:]


def _in_words(kind: str, arguments: list[Any]) -> list[Any]:
    """The arguments of a step with its annotation or pragma as a word; the limit of a pragma is a number."""
    if kind == _ANNOTATE and isinstance(arguments[-1], int) and 0 <= arguments[-1] < len(_ANNOTATIONS):
        return [*arguments[:-1], _ANNOTATIONS[arguments[-1]]]
    if kind == _PRAGMA and isinstance(arguments[-1], str):
        name, _, limit = arguments[-1].partition("$")
        return [*arguments[:-1], name, int(limit)] if limit.isdecimal() else arguments
    return arguments


def _seconds(value: float) -> float:
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"a time is a number of seconds, got {number}")
    return number
