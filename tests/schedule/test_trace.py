"""A trace survives JSON and printing, and replays to the same schedule."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.schedule.programs import gemm_relu
from tilewright.errors import ScheduleError
from tilewright.ir import lower
from tilewright.schedule import Schedule, Step, Trace
from tilewright.schedule.steps import CacheWriteStep, ComputeAtStep, FuseStep, RFactorStep, SplitStep
from tilewright.testing.programs import FAMILIES, random_task
from tilewright.testing.schedules import random_schedule


def _fused(stage: str, loop: str) -> Step:
    return FuseStep(stage, (f"{loop}.0", f"{loop}.1"))


def _doubled(loop: str, times: int) -> list[str]:
    """The names of a loop that is split and fused again and again."""
    names = [loop]
    for _ in range(times - 1):
        names.append(f"{names[-1]}.0@{names[-1]}.1")
    return names


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

    assert {step.name for step in schedule.steps} == set(STEPS) - {"algorithm"}  # which has a file of its own


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


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("split", ["i", ["x"]], r"factors must be a list of whole numbers of at least 1, got \['x'\]"),
        ("split", ["i", [None]], "factors must be"),
        ("split", ["i", [True]], "factors must be"),
        ("split", ["i", [0]], "factors must be"),
        ("split", ["i", [2.0]], "factors must be"),
        ("split", ["i", 4], "factors must be"),
        ("split", [["i"], [2]], "loop must be a name"),
        ("fuse", ["i", 1], r"loops must be names, got \['i', 1\]"),
        ("pragma", ["i", -1], "auto_unroll_max_step must be a whole number of at least 0"),
        ("compute_at", [None, "i"], "consumer must be a name"),
        (["split"], [], "unknown step"),
    ],
)
def test_steps_of_wrong_types_are_refused(kind: object, arguments: list[Any], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        Trace.from_json([{"step": kind, "stage": "C", "arguments": arguments}])


@pytest.mark.parametrize("data", [None, 3, {}, b"[]", "{}", "null"])
def test_what_is_no_list_is_refused(data: Any) -> None:
    with pytest.raises(ScheduleError, match="a trace is a JSON list of steps, got"):
        Trace.from_json(data)


def test_what_nests_too_deeply_or_is_too_long_is_refused() -> None:
    with pytest.raises(ScheduleError, match="nested too deeply"):
        Trace.from_json("[" * 200_000)
    with pytest.raises(ScheduleError, match="at most 1000 steps, got 1001"):
        Trace.from_json([{"step": "compute_root", "stage": "C", "arguments": []}] * 1001)


def test_a_step_prints_as_python_whatever_its_names_are() -> None:
    trace = Trace((FuseStep('a"]', ("i\n", "größe")),))
    assert str(trace).splitlines()[1] == r's["a\"]"].fuse("i\n", "größe")'


def test_equal_steps_have_equal_hashes_and_survive_pickling() -> None:
    one, other = SplitStep("C", "i", (4, 8)), SplitStep("C", "i", (4, 8))
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == other
    assert len({one, other, SplitStep("C", "i", (4, 4))}) == 2


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            [
                ComputeAtStep("C", "D", "i"),
                CacheWriteStep("D"),
                ComputeAtStep("D.cache", "C", "i"),
                RFactorStep("C", "k"),
            ],
            "D is computed inside loop i, and nothing reads it there",
        ),
        ([ComputeAtStep("C", "C", "i")], "C cannot be computed inside C, which is computed inside it"),
        (
            [CacheWriteStep("D"), ComputeAtStep("C", "D.cache", "i"), ComputeAtStep("D.cache", "C", "i")],
            "D.cache cannot be computed inside C, which is computed inside it",
        ),
    ],
    ids=["nobody reads", "itself", "each other"],
)
def test_replayed_steps_are_refused_where_nothing_can_be_told_of_loops(steps: list[Step], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        Trace(tuple(steps)).apply(gemm_relu().task)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([SplitStep("D", "i", (1,) * 101)], "split and fused 101 times; at most 100"),
        ([SplitStep("D", "i" + n * ".0", (2,)) for n in range(101)], "at most 100"),
        ([CacheWriteStep("D" + n * ".cache") for n in range(65)], "one stage more than the 64"),
        (
            [step for loop in _doubled("i", 8) for step in (SplitStep("D", loop, (2,)), _fused("D", loop))],
            "the name of a loop would have 1531 characters; at most 1000",
        ),
    ],
    ids=["factors", "splits", "stages", "names"],
)
def test_a_schedule_has_limits(steps: list[Step], message: str) -> None:
    task = gemm_relu().task
    lower(Trace(tuple(steps[: -2 if "name" in message else -1])).apply(task))
    with pytest.raises(ScheduleError, match=message):
        Trace(tuple(steps)).apply(task)
