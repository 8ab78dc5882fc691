"""A trace survives JSON and printing, and replays to the same schedule."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.schedule.programs import gemm_relu
from tilewright.errors import ScheduleError
from tilewright.schedule import Schedule, Trace
from tilewright.testing.programs import FAMILIES, random_task
from tilewright.testing.schedules import random_schedule


def _everything(s: Schedule) -> None:
    """One of every step."""
    s["C"].cache_write()
    s["C.cache"].split("k", 4)
    s["C.cache"].rfactor("k.1")
    s["D"].split("i", [2, 3])
    s["D"].fuse("i.1", "i.2")
    s["D"].reorder("j", "i.1@i.2")
    s["C"].compute_at("D", "i.0")
    s["C"].compute_root()
    s["C"].compute_at("D", "i.0")
    s["A"].cache_read("C.cache.rf")
    s["A.cache"].compute_inline()
    s["D"].parallel("i.0")
    s["D"].vectorize("i.1@i.2")
    s["C"].unroll("j")
    s["C"].pragma("i", auto_unroll_max_step=8)
    s["B"].pack("C.cache.rf")


@pytest.fixture
def schedule() -> Schedule:
    s = gemm_relu()
    _everything(s)
    return s


def test_every_step_is_covered(schedule: Schedule) -> None:
    from tilewright.schedule.steps import STEPS

    assert {step.name for step in schedule.steps} == set(STEPS)


def test_json_round_trip(schedule: Schedule) -> None:
    text = json.dumps(schedule.trace.to_json())
    trace = Trace.from_json(text)
    assert trace == schedule.trace
    assert str(trace.apply(schedule.task)) == str(schedule)
    assert Trace.from_json(schedule.trace.to_json()) == schedule.trace


def test_print_is_python_that_makes_the_schedule(schedule: Schedule) -> None:
    names: dict[str, Any] = {"tw": tw, "task": schedule.task}
    exec(str(schedule.trace), names)
    assert str(names["s"]) == str(schedule)
    assert names["s"].trace == schedule.trace


def test_print_is_one_step_a_line() -> None:
    s = gemm_relu()
    s["D"].split("i", 4)
    s["D"].split("j", [2, 3])
    s["C"].compute_at("D", "i.0")
    s["C"].pragma("i", auto_unroll_max_step=16)
    assert str(s.trace).splitlines() == [
        "s = tw.Schedule(task)",
        's["D"].split("i", 4)',
        's["D"].split("j", [2, 3])',
        's["C"].compute_at("D", "i.0")',
        's["C"].pragma("i", auto_unroll_max_step=16)',
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_random_traces_survive(family: str) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        s = random_schedule(random_task(family, rng), rng, 10)
        replayed = Trace.from_json(json.dumps(s.trace.to_json())).apply(s.task)
        assert str(replayed) == str(s)
        assert str(replayed.trace) == str(s.trace)


def test_numbers_of_numpy_become_plain_ones() -> None:
    s = gemm_relu()
    s["D"].split("i", np.int64(4))  # type: ignore[arg-type]
    assert json.loads(json.dumps(s.trace.to_json())) == [{"step": "split", "stage": "D", "arguments": ["i", [4]]}]


BROKEN: list[tuple[object, str]] = [
    ({"step": "split"}, "a trace is a JSON list of steps, got dict"),
    (["split"], "a step is an object with step, stage and arguments, got 'split'"),
    ([{"step": "split"}], "a step is an object with step, stage and arguments"),
    ([{"step": "melt", "stage": "C", "arguments": []}], "unknown step 'melt'; the steps are: split, fuse"),
    ([{"step": "split", "stage": 3, "arguments": []}], "stage must be a string"),
    ([{"step": "split", "stage": "C", "arguments": {}}], "arguments a list"),
    ([{"step": "split", "stage": "C", "arguments": ["i"]}], "step split takes 2 arguments, got \\['i'\\]"),
    ([{"step": "parallel", "stage": "C", "arguments": ["i", "j"]}], "step parallel takes 1 arguments"),
]


@pytest.mark.parametrize(("data", "message"), BROKEN)
def test_broken_json_is_refused(data: object, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        Trace.from_json(json.dumps(data))


def test_steps_of_wrong_types_are_refused_when_they_apply() -> None:
    for arguments in (["i", ["x"]], ["i", [None]], [["i"], [2]]):
        trace = Trace.from_json([{"step": "split", "stage": "C", "arguments": arguments}])
        with pytest.raises(ScheduleError):
            trace.apply(gemm_relu().task)
