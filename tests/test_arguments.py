"""What public functions say when they are given the wrong kind of thing: an error of ours that names it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright import te
from tilewright.cost_model import BoostedTrees, RandomModel
from tilewright.deploy.artifact import save
from tilewright.errors import UsageError
from tilewright.tuning.task_scheduler import Network, TaskScheduler

A = te.placeholder((8,), name="A")
B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
TASK = tw.Task([A], [B], name="double")
SCHEDULE = tw.Schedule(TASK)

WRONG_OPTIONS: list[tuple[str, object, str]] = [
    ("trials", 0, "trials is 0; it must be at least 1"),
    ("trials", -1, "trials is -1"),
    ("trials", True, "trials is True; it must be a whole number of at least 1"),
    ("trials", 1.5, "trials is 1.5; it must be a whole number"),
    ("trials", "8", "trials is '8'; it must be a whole number"),
    ("trials", 2**63, "trials is a number of 64 bits; it must be below 2"),
    ("seed", "x", "seed is 'x'"),
    ("seed", -1, "seed is -1"),
    ("seed", 2**64, "seed is a number of 65 bits"),
    ("threads", 10**30, "threads is a number of more than 64 bits; it must be a whole number from 1 to 512"),
    ("threads", "2", "threads is '2'"),
    ("records", 3, "records is 3; it must be the path of a file"),
    ("records", "", "records is ''; it must be the path of a file"),
    ("records", b"gemm.jsonl", "records is b'gemm.jsonl'"),
    ("target", 3, "a target is written as a string such as 'llvm -mcpu=native', got 3"),
    (
        "search",
        "hill",
        "search is 'hill'; it must be one of evolutionary, .*random, the path of a file",
    ),
    ("search", 3, "search is 3"),
    ("search", BoostedTrees, "search is <class .*BoostedTrees'>"),
    (
        "cost_model",
        "xgb",
        "cost_model is 'xgb'; it must be one of default, boosted-trees, analytical, random, .*the path of",
    ),
    ("cost_model", 3, "cost_model is 3"),
    ("cost_model", None, "cost_model is None"),
    ("cost_model", BoostedTrees, r"an instance of CostModel; make it: BoostedTrees\(\)"),
    ("cost_model", Path("missing.npz"), "missing.npz is not there; check the path"),
    ("budget_s", 0, "budget_s is 0; it must be a number of seconds above 0"),
    ("budget_s", math.nan, "budget_s is nan"),
    ("budget_s", "5m", "budget_s is '5m'"),
    ("rules", 3, "rules is 3; it must be of the class Sequence"),
    ("rules", [3], "a rule is 3; it must be of the class Rule"),
    ("measure", 3, "measure is 3; it must be of the class MeasureOptions"),
    ("workload", 3, "workload is 3; it must be of the class str"),
    ("on_progress", 3, "on_progress is 3; it must be a function"),
]


@pytest.mark.parametrize(("option", "value", "message"), WRONG_OPTIONS)
def test_wrong_options_of_tune_are_named(option: str, value: object, message: str) -> None:
    with pytest.raises(tw.TilewrightError, match=message):
        tw.tune(TASK, **{"threads": 1, option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [B, SCHEDULE, "gmm:8x8x8", None, [TASK]])
def test_only_a_task_is_tuned(given: Any) -> None:
    with pytest.raises(tw.UsageError, match=rf"takes a tw.Task\(inputs, outputs\), got {type(given).__name__}"):
        tw.tune(given)


@pytest.mark.parametrize("name", ["boosted-trees", "analytical", "random"])
def test_a_cost_model_is_given_by_its_name(name: str) -> None:
    assert len(tw.tune(TASK, trials=1, threads=1, cost_model=name, seed=3).records) == 1


@pytest.mark.parametrize("name", ["evolutionary", "random"])
def test_a_search_is_given_by_its_name(name: str) -> None:
    assert len(tw.tune(TASK, trials=1, threads=1, search=name).records) == 1


def test_a_cost_model_is_given_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    RandomModel(seed=4).save(path)
    for given in (path, str(path)):
        assert len(tw.tune(TASK, trials=1, threads=1, cost_model=given).records) == 1


def test_the_numbers_of_numpy_are_numbers() -> None:
    assert len(tw.tune(TASK, trials=np.int64(1), threads=np.int64(1), seed=np.uint8(1)).records) == 1  # type: ignore[arg-type]


# Of no type, so that they can be called with anything.
build: Any = tw.build
parse_target: Any = tw.Target.parse
schedule: Any = tw.Schedule
stage: Any = SCHEDULE.__getitem__
task: Any = tw.Task
session: Any = tw.InferenceSession
scheduler: Any = partial(TaskScheduler, [Network("n", ())])

OTHER_CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: build(B), "build takes a tw.Schedule or a tw.Task, got Tensor"),
    (lambda: build(None), "build takes a tw.Schedule or a tw.Task, got NoneType"),
    (lambda: build(TASK, target=3), "a target is written as a string such as 'llvm -mcpu=native', got 3"),
    (lambda: build(TASK, threads=10**30), "threads is a number of more than 64 bits"),
    (lambda: parse_target(3), "a target is written as a string"),
    (lambda: schedule(B), r"a Schedule is made from a tw.Task\(inputs, outputs\), got Tensor"),
    (lambda: schedule(SCHEDULE), "a Schedule is made from a tw.Task.*got Schedule"),
    (lambda: stage(3), "there is no stage 3; the stages are: A, B"),
    (lambda: task(3, [B]), "the inputs of a task are a tensor or a list of tensors, got 3"),
    (lambda: task([A], 3), "the outputs of a task are a tensor or a list of tensors, got 3"),
    (lambda: task("A", "B"), "the inputs of a task are a tensor or a list of tensors, got 'A'"),
    (lambda: task({A}, [B]), "the inputs of a task are a tensor or a list of tensors"),
    (lambda: task(A[0], [B]), r"the inputs of a task are .*got <Read float32: A\[0\]>"),
    (lambda: task([A[0]], [B]), "input 0 of a task must be a tensor"),
    (lambda: task([A], [B], name=3), "the name of a task is 3; it must be a string"),
    (lambda: session(3), "a model is the path of a file, .* got int"),
    (lambda: session(B), "a model is the path of a file, .* got Tensor"),
    (lambda: session(None), "a model is the path of a file, .* got NoneType"),
    (lambda: session(b""), "the model holds no graph"),
    (lambda: session(bytearray()), "the model holds no graph"),
    (lambda: session("zoo:resnet18", target=3), "a target is written as a string"),
    (lambda: session("zoo:resnet18", records=3), "records is 3; it must be"),
    (lambda: scheduler(cost_model=3), "cost_model is 3"),
    (lambda: scheduler(search="hill"), "search is 'hill'"),
    (lambda: scheduler(seed="x"), "seed is 'x'"),
    (lambda: scheduler().tune(trials=1.5), "trials is 1.5"),
    (lambda: scheduler().tune(records=3), "records is 3"),
]


@pytest.mark.parametrize(("call", "message"), OTHER_CALLS)
def test_wrong_kinds_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(tw.TilewrightError, match=message):
        call()


def test_no_file_takes_the_place_of_a_pipe_or_a_device(tmp_path: Path) -> None:
    """As root, saving to /dev/null would leave a file there."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    session = tw.InferenceSession(onnx.parser.parse_model(RELU))
    with pytest.raises(UsageError, match="pipe, which is a device or a pipe; name a file"):
        save(session.model, pipe)
    with pytest.raises(UsageError, match="which is a device or a pipe"):
        RandomModel().save(pipe)
    with pytest.raises(UsageError, match=r"which is a folder; name a file"):
        save(session.model, tmp_path)
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


RELU = '<ir_version: 8, opset_import: ["" : 17]> net (float[2] x) => (float[2] y) { y = Relu(x) }'
