"""Sketches as JSON: what was measured stays readable when the rules that derived its sketches have changed.

The sketches of one task share most of their knobs, which are written once:
{"knobs": [{"kind", "name", "table"}], "sketches": [{"name", "steps": [{"step", "stage", "arguments"}]}]}, where an open
decision among the arguments is {"knob": its place, "columns": [of its table]}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from reprlib import repr as shown
from typing import Any

from tilewright.errors import ScheduleError
from tilewright.schedule import Step
from tilewright.schedule.steps import step_from_json
from tilewright.schedule.trace import MAX_STEPS
from tilewright.space.knob import Decision, Knob, TileKnob, UnrollKnob, VectorKnob
from tilewright.space.options import SpaceOptions
from tilewright.space.sketch import Sketch
from tilewright.te import Task

_KINDS: dict[str, type[Knob]] = {kind.kind: kind for kind in (TileKnob, VectorKnob, UnrollKnob)}
_MAX_NUMBERS = 1 << 22  # of a table
_MAX_NUMBER = 2**31


def sketches_to_json(sketches: Sequence[Sketch]) -> dict[str, Any]:
    """The sketches of one task."""
    knobs: dict[tuple[object, ...], Knob] = {}
    written = [_places_of(sketch, knobs) for sketch in sketches]
    return {
        "knobs": [{"kind": knob.kind, "name": knob.name, "table": knob.table.tolist()} for knob in knobs.values()],
        "sketches": [
            {"name": sketch.name, "steps": [_step_to_json(step, places) for step in sketch.steps]}
            for sketch, places in zip(sketches, written, strict=True)
        ],
    }


def sketches_from_json(data: object, task: Task, options: SpaceOptions) -> list[Sketch]:
    """The sketches that `sketches_to_json` wrote; ScheduleError says what of other JSON is wrong.

    A sketch has its own knobs: those that are written once are as many decisions as sketches have them.
    """
    if not isinstance(data, Mapping):
        raise ScheduleError(f"sketches are an object with knobs and sketches, got {shown(data)}")
    written = [_checked_knob(knob) for knob in _list_of(data, "knobs")]
    try:
        return [_sketch_from_json(sketch, _OwnKnobs(written), task, options) for sketch in _list_of(data, "sketches")]
    except RecursionError:
        raise ScheduleError("the steps of a sketch are lists of arguments, and these are nested too deeply") from None


class _OwnKnobs:
    """The knobs of one sketch, each made when a decision names it; their tables are those that are written."""

    def __init__(self, written: Sequence[Knob]) -> None:
        self._written = written
        self._made: dict[int, Knob] = {}

    def at(self, place: object) -> Knob:
        if type(place) is not int or not 0 <= place < len(self._written):
            raise ScheduleError(f"a decision names one of {len(self._written)} knobs, got {shown(place)}")
        if place not in self._made:
            self._made[place] = copy(self._written[place])
        return self._made[place]


def _places_of(sketch: Sketch, knobs: dict[tuple[object, ...], Knob]) -> dict[Knob, int]:
    """Where the knobs of a sketch stand among `knobs`, to which those are added that are not there yet."""
    places: dict[Knob, int] = {}
    count: Counter[tuple[object, ...]] = Counter()
    for knob in sketch.knobs:
        content = (knob.kind, knob.name, knob.table.shape, knob.table.tobytes())
        count[content] += 1  # two knobs of one sketch are two, even if they are alike
        key = (*content, count[content])
        knobs.setdefault(key, knob)
        places[knob] = list(knobs).index(key)
    return places


def _step_to_json(step: Step, place_of: Mapping[Knob, int]) -> dict[str, Any]:
    data = step.to_json()
    return {**data, "arguments": [_argument_to_json(argument, place_of) for argument in data["arguments"]]}


def _argument_to_json(argument: Any, place_of: Mapping[Knob, int]) -> Any:
    if isinstance(argument, Decision):
        return {"knob": place_of[argument.knob], "columns": list(argument.columns)}
    if isinstance(argument, list):
        return [_argument_to_json(part, place_of) for part in argument]
    return argument


def _list_of(data: Mapping[str, Any], name: str) -> list[Any]:
    found = data.get(name)
    if not isinstance(found, list):
        raise ScheduleError(f"{name} must be a list, got {shown(found)}")
    return found


def _checked_knob(data: object) -> Knob:
    name, kind = (data.get("name"), data.get("kind")) if isinstance(data, dict) else (None, None)
    if not isinstance(data, dict) or not isinstance(name, str) or not isinstance(kind, str) or kind not in _KINDS:
        raise ScheduleError(f"a knob has a name, and a kind out of {', '.join(_KINDS)}, got {shown(data)}")
    least = 1 if _KINDS[kind] is TileKnob else 0
    return _KINDS[kind](name, _checked_table(data.get("table"), name, least))


def _checked_table(table: object, name: str, least: int) -> list[list[int]]:
    """A table of whole numbers: rows of the same length."""
    rows = table if isinstance(table, list) and all(isinstance(row, list) and row for row in table) else []
    if len({len(row) for row in rows}) != 1 or len(rows) * len(rows[0]) > _MAX_NUMBERS:
        raise ScheduleError(f"the table of knob {shown(name)} has rows of as many numbers each, got {shown(table)}")
    for number in (number for row in rows for number in row):
        if type(number) is not int or not least <= number < _MAX_NUMBER:
            raise ScheduleError(
                f"the table of knob {shown(name)} has whole numbers from {least} to {_MAX_NUMBER - 1}, "
                f"got {shown(number)}"
            )
    return rows


def _sketch_from_json(data: object, knobs: _OwnKnobs, task: Task, options: SpaceOptions) -> Sketch:
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        raise ScheduleError(f"a sketch has a name and steps, got {shown(data)}")
    steps = _list_of(data, "steps")
    if len(steps) > MAX_STEPS:
        raise ScheduleError(f"a sketch has at most {MAX_STEPS} steps, got {len(steps)}")
    return Sketch(task, tuple(_step_from_json(step, knobs) for step in steps), options, data["name"])


def _step_from_json(data: object, knobs: _OwnKnobs) -> Step:
    """The step as any number would make it, and then the decisions in the places of their numbers."""
    if not isinstance(data, dict) or not isinstance(data.get("arguments"), list):
        raise ScheduleError(f"a step is an object with step, stage and arguments, got {shown(data)}")
    step = step_from_json({**data, "arguments": [_decided(argument) for argument in data["arguments"]]})
    names = [f.name for f in fields(step) if f.name != "stage"]
    opened = {
        name: _opened(argument, knobs)
        for name, argument in zip(names, data["arguments"], strict=False)
        if argument != _decided(argument)
    }
    return replace(step, **opened) if opened else step


def _decided(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_decided(part) for part in argument]
    return 1 if isinstance(argument, dict) else argument


def _opened(argument: Any, knobs: _OwnKnobs) -> Any:
    if isinstance(argument, list):
        return tuple(_opened(part, knobs) for part in argument)
    return _decision(argument, knobs) if isinstance(argument, dict) else argument


def _decision(data: Mapping[str, Any], knobs: _OwnKnobs) -> Decision:
    knob, columns = knobs.at(data.get("knob")), data.get("columns")
    width = knob.table.shape[1]
    is_known = isinstance(columns, list) and columns and all(type(c) is int and 0 <= c < width for c in columns)
    if not is_known:
        raise ScheduleError(f"a decision is the product of some of {width} columns, got {shown(columns)}")
    assert isinstance(columns, list)
    return Decision(knob, tuple(columns))
