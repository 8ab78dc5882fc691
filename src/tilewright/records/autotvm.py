"""Logs of AutoTVM: configurations of a template, which is a list of knobs.

{"input": [target, template, arguments, {}], "config": {"entity": [[knob, kind, value], ...]},
 "result": [costs, error number, all seconds, time], "version": 0.2}
or, in the version before,
{"i": [target, template, arguments, {}, workload, {"e": [[knob, kind, value], ...]}], "r": [costs, ...], "v": 0.1}
The kinds are sp (a split), re (an order), an (annotations) and ot (any other value).
"""

from __future__ import annotations

import json
from reprlib import repr as shown
from typing import Any

from tilewright.records.foreign_log import LoggedProgram, costs_s, error_number, flattened

_NO_COST_S = 1e8  # failed runs are written with 1e9 or 1e10 seconds
_PARTS_OF_OLD = 6  # of the input of a line of version 0.1
_OTHER = "ot"
_THE_REST = -1  # the part of a split that its others leave; it says nothing


def is_autotvm(data: Any) -> bool:
    """Whether the JSON of a line is a record of AutoTVM, if it is any; the auto-scheduler's are of two parts."""
    return "i" not in data or len(data["i"]) == _PARTS_OF_OLD


def parse_autotvm_line(data: Any) -> LoggedProgram:
    """The program in the JSON of a line; an error of `foreign_log.BROKEN_LINE` if it has another form."""
    if "i" in data:
        target, template, arguments, _, _, config = data["i"]
        result, knobs = data["r"], config["e"]
    else:
        target, template, arguments = data["input"][:3]
        result, knobs = data["result"], data["config"]["entity"]
    costs, error = result[:2]
    failure = error_number(error)
    if not isinstance(knobs, list) or not all(isinstance(knob, list) for knob in knobs):
        raise TypeError(f"a configuration is a list of knobs, each a list, got {shown(knobs)}")
    found = [_primitive(*knob) for knob in knobs]
    return LoggedProgram(
        workload=json.dumps([str(template), arguments], allow_nan=False),
        target=str(target),
        form=tuple((kind, words, len(numbers)) for kind, words, numbers in found),
        numbers=tuple(number for _, _, numbers in found for number in numbers),
        latency_s=_latency_s(costs, failure),
        error_number=failure,
    )


def _primitive(knob: str, kind: str, value: Any) -> tuple[str, tuple[str, ...], tuple[int, ...]]:
    words, numbers = flattened([str(knob), _in_words(value) if kind == _OTHER else value])
    if kind == "sp":
        numbers = tuple(number for number in numbers if number != _THE_REST)
    return str(kind), words, numbers


def _in_words(value: Any) -> Any:
    """The value of a knob of any kind of choice, with what is no whole number as a word."""
    if isinstance(value, list):
        return [_in_words(each) for each in value]
    return str(value) if value is None or isinstance(value, float) else value


def _latency_s(costs: object, failure: int) -> float | None:
    """The mean cost, as the tool reckons; None if the program failed."""
    if failure:  # whatever stands in the place of costs: 1e9, infinity, none at all
        return None
    times_s = costs_s(costs)
    if not times_s or max(times_s) >= _NO_COST_S:
        return None
    return sum(times_s) / len(times_s)
