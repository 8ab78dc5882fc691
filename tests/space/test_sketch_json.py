"""Sketches as JSON: they come back with the same programs, and anything else is refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

from tilewright.errors import ScheduleError
from tilewright.schedule import Schedule
from tilewright.space import (
    Decision,
    Sketch,
    SpaceOptions,
    TileKnob,
    derive,
    open_split,
    sketches_from_json,
    sketches_to_json,
)
from tilewright.target import Target
from tilewright.te import Task
from tilewright.workloads import parse

OPTIONS = SpaceOptions(Target.parse("llvm -mcpu=haswell"), 2)
WORKLOADS = ("gmm:17x1x33", "c2d:1x14x14x8,16,3x3,s1,p1", "sfm:1x4x50")


def written(task: Task) -> tuple[list[Sketch], Any]:
    sketches = derive(task, OPTIONS)
    return sketches, json.loads(json.dumps(sketches_to_json(sketches)))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_sketches_come_back_without_rules(workload: str) -> None:
    task = parse(workload)
    sketches, data = written(task)
    again = sketches_from_json(data, task, OPTIONS)
    rng = np.random.default_rng(0)
    assert [sketch.name for sketch in again] == [sketch.name for sketch in sketches]
    for old, new in zip(sketches, again, strict=True):
        assert [(type(k), k.name) for k in new.knobs] == [(type(k), k.name) for k in old.knobs]
        for row in old.sample(rng, 8).rows.tolist():
            assert new.trace(row) == old.trace(row)


def test_knobs_are_written_once() -> None:
    task = parse("gmm:64x64x64")
    sketches, data = written(task)
    assert len(data["knobs"]) < sum(len(sketch.knobs) for sketch in sketches)
    first, second = sketches_from_json(data, task, OPTIONS)[:2]
    assert first.knobs
    assert not set(first.knobs) & set(second.knobs)  # two sketches decide for themselves


def test_two_knobs_that_are_alike_stay_two() -> None:
    task = parse("gmm:8x8x8")
    (stage,) = Schedule(task).active_stages
    loops = [loop.name for loop in stage.loops][:2]
    steps = [open_split(stage.name, loop, Decision(TileKnob("tile", [[2], [4]]))) for loop in loops]
    sketch = Sketch(task, tuple(steps), OPTIONS)
    (again,) = sketches_from_json(sketches_to_json([sketch]), task, OPTIONS)
    assert len(again.knobs) == 2
    assert again.trace([0, 1]) == sketch.trace([0, 1])


def test_sketches_share_the_tables_of_knobs_and_no_knobs() -> None:
    task = parse("gmm:8x8x8")
    (stage,) = Schedule(task).active_stages
    knob = TileKnob("tile", [[2], [4]])
    sketches = [Sketch(task, (open_split(stage.name, loop.name, Decision(knob)),), OPTIONS) for loop in stage.loops]
    first, second, *_ = sketches_from_json(sketches_to_json(sketches), task, OPTIONS)
    assert first.knobs[0] is not second.knobs[0]
    assert np.shares_memory(first.knobs[0].table, second.knobs[0].table)


def nested(depth: int) -> list[Any]:
    """An empty list in a list in a list ..."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def change(path: list[Any], value: Any) -> Any:
    _, data = written(parse("gmm:64x64x64"))
    data = copy.deepcopy(data)
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "an object with knobs and sketches"),
        ([], "an object with knobs and sketches"),
        ({"knobs": 1, "sketches": []}, "knobs must be a list"),
        (change(["knobs", 0], 7), "a knob has a name"),
        (change(["knobs", 0, "kind"], "pickle"), "a kind out of tile"),
        (change(["knobs", 0, "kind"], ["tile"]), "a kind out of tile"),
        (change(["knobs", 0, "table"], []), "rows of as many numbers"),
        (change(["knobs", 0, "table"], [[1], [1, 2]]), "rows of as many numbers"),
        (change(["knobs", 0, "table"], [[1, 0]]), "got 0"),
        (change(["knobs", 0, "table"], [[1, 2.5]]), "got 2.5"),
        (change(["knobs", 0, "table"], [[1, 10**30]]), "whole numbers from 1 to"),
        (change(["knobs", 0, "table"], [[True, 1]]), "got True"),
        (change(["sketches", 0], 3), "a sketch has a name and steps"),
        (change(["sketches", 0, "steps"], [{}] * 2000), "at most 1000 steps"),
        (change(["sketches", 0, "steps", 0], "x"), "a step is an object"),
        (change(["sketches", 0, "steps", 0, "step"], "exec"), "unknown step"),
        (change(["sketches", 0, "steps", 0, "arguments"], [{"knob": 0, "columns": [0]}]), "takes 0 arguments"),
        (change(["knobs"], []), "one of 0 knobs"),
        (change(["sketches", 0, "steps", 0, "arguments"], nested(900)), "nested too deeply"),
    ],
)
def test_anything_else_says_what_is_wrong(data: Any, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        sketches_from_json(data, parse("gmm:64x64x64"), OPTIONS)
