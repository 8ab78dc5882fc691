"""What the fuzzer of record files begins with: small networks, their tasks, and records of programs of these."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import onnx.parser

from tilewright.network import partition_network
from tilewright.partition import Partition
from tilewright.records import Names, Record, TaskLine, names_of
from tilewright.schedule import Trace
from tilewright.space import SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task
from tilewright.testing.schedules import random_schedule

TARGET = Target.native()
THREADS = 1
HEADER = '{"tilewright_records": 2, "tool_version": "0.0", "created": 0.0}'
_NETWORKS = (
    "(float[6,20] x) => (y) <float[20,12] w> { a = MatMul(x, w) y = Relu(a) }",
    "(float[6,20] x) => (y) { t = Tanh(x) y = ReduceSum<keepdims = 0>(t) }",
    "(float[1,3,9,9] x) => (y) <float[4,3,3,3] w> { y = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w) }",
)
_ROWS_A_SKETCH = 2
_RANDOM_SCHEDULES = 6
_MAX_STEPS = 12


@cache
def networks() -> tuple[Partition, ...]:
    """A product, a sum, a convolution."""
    return tuple(map(_network, _NETWORKS))


def _network(text: str) -> Partition:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> net {text}')
    for value in list(model.graph.value_info):
        if value.name == "w":
            shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, "w"))
    return partition_network(model)


@cache
def task_lines() -> dict[str, str]:
    """The lines of all tasks, by their hashes."""
    tasks = (weighted.task for network in networks() for weighted in network.tasks)
    return {task.hash: TaskLine.of(task).text for task in tasks}


def lines_of(records: Sequence[Record]) -> list[str]:
    """The lines of a file with these records, and with each of their tasks before the first of its own."""
    lines = [HEADER]
    for record in records:
        task = task_lines()[record.task]
        lines += [record.to_line()] if task in lines else [task, record.to_line()]
    return lines


@cache
def records_of(number: int) -> tuple[Record, ...]:
    """Of the tasks of a network: programs of the space and by chance, some of which failed, in two sets of names."""
    rng = np.random.default_rng(number)
    return tuple(record for weighted in networks()[number].tasks for record in _records(weighted.task, rng))


def _records(task: Task, rng: np.random.Generator) -> list[Record]:
    traces = [
        candidate.trace
        for sketch in derive(task, SpaceOptions(TARGET, THREADS))[:4]
        for candidate in sketch.sample(rng, _ROWS_A_SKETCH)
    ]
    traces += [random_schedule(task, rng, int(rng.integers(1, _MAX_STEPS))).trace for _ in range(_RANDOM_SCHEDULES)]
    records = [_record(task, trace, float(rng.uniform(1e-5, 1e-3))) for trace in traces]
    failed = replace(records[0], status="RUN_ERROR", latency_s=None, runs_s=(), error="the runner died of SIGSEGV")
    renamed = replace(records[1], trace=Trace(), names=_other_names(task))
    return [*records, failed, renamed, replace(records[2], compared_s=1.25e-3, context="cold-8M")]


def _record(task: Task, trace: Trace, latency_s: float) -> Record:
    return Record(
        task=task.hash,
        workload=f"net/{task.name}",
        target=str(TARGET),
        threads=THREADS,
        trace=trace,
        status="OK",
        latency_s=latency_s,
        runs_s=(latency_s, 1.1 * latency_s),
        build_s=0.01,
        time=1.7e9,
        names=names_of(task),
    )


def _other_names(task: Task) -> Names:
    return tuple((f"T{n}", *(f"a{m}" for m in range(len(own) - 1))) for n, own in enumerate(names_of(task)))


def ansor_lines() -> list[str]:
    """Two lines of a log of the auto-scheduler, as it writes them now and as it did."""
    steps = [["SP", 2, 0, 64, [2, 1, 4], 1], ["RE", 2, [0, 1, 2, 3]], ["AN", 2, 0, 3]]
    task = ['["8f2c", 64, 64]', "llvm -keys=cpu", [4, 64, 64, 0, 0, 0, 0, 0], "", 1, []]
    new = {"i": [task, [[], steps]], "r": [[2e-3, 4e-3], 0, 0.5, 1600000000], "v": "v0.6"}
    old = {"i": [task[:2], [[], steps]], "r": [[1e10], 6, 0.5, 1600000000], "v": "v0.2"}
    return [json.dumps(new), json.dumps(old)]
