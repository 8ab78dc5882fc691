"""Workloads by name, tuned, and made ready to be timed: what the benchmarks of the tuner share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.references import Array
from tilewright import workloads, zoo
from tilewright.network import ZOO, partition_network
from tilewright.runtime import Kernel
from tilewright.te import Task, random_inputs
from tilewright.tuning.tuner import Progress, TuneResult, tune


@dataclass(frozen=True, slots=True)
class Prepared:
    """A kernel with its constants bound: `call` runs it on `inputs` into `out`."""

    call: Callable[[], object]
    inputs: dict[str, Array]
    out: Array


def file_name(workload: str, suffix: str = ".jsonl") -> str:
    """A name for a file of this workload.

    >>> file_name("c2d:1x14x14x256,256,3x3,s1,p1+relu")
    'c2d_1x14x14x256_256_3x3_s1_p1_relu.jsonl'
    """
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", workload) + suffix


def task_of(case: str) -> Task:
    """The task of a workload, or of a network: `resnet50/2` has the second largest share of its arithmetic."""
    network, _, number = case.partition("/")
    if network not in zoo.names():
        return workloads.parse(case)
    tasks = sorted(partition_network(f"{ZOO}{network}").tasks, key=lambda found: -found.weight * found.task.flop)
    return tasks[int(number) - 1].task


def tune_workload(
    workload: str,
    records: Path,
    trials: int,
    threads: int,
    seed: int = 0,
    search: str = "evolutionary",
    on_progress: Callable[[Progress], None] | None = None,
    budget_s: float | None = None,
) -> TuneResult:
    """What tuning finds with so many trials; those that `records` holds already are not made again."""
    task = workloads.parse(workload)
    return tune_task(task, records, trials, threads, seed, search, workload, on_progress=on_progress, budget_s=budget_s)


def tune_task(
    task: Task,
    records: Path,
    trials: int,
    threads: int,
    seed: int = 0,
    search: str = "evolutionary",
    name: str = "",
    cost_model: str = "default",
    on_progress: Callable[[Progress], None] | None = None,
    budget_s: float | None = None,
) -> TuneResult:
    """The same of a task, with a cost model by its name or file."""
    return tune(
        task,
        trials=trials,
        records=records,
        seed=seed,
        threads=threads,
        search=search,
        cost_model=cost_model,
        workload=name,
        on_progress=on_progress,
        budget_s=budget_s,
    )


def prepare(task: Task, kernel: Kernel, seed: int = 0, beside: Prepared | None = None) -> Prepared:
    """A kernel of the task with random inputs, or on the arrays of another one that it is compared with."""
    if beside is None:
        inputs, out = inputs_of(task, seed), np.empty(task.outputs[0].shape, np.float32)
    else:
        inputs, out = beside.inputs, beside.out
    bound = kernel.bind(**{tensor.name: inputs[tensor.name] for tensor in task.constants})
    given = [inputs[tensor.name] for tensor in task.inputs if not tensor.is_constant]
    return Prepared(lambda: bound(*given, out=out), inputs, out)


def inputs_of(task: Task, seed: int) -> dict[str, Array]:
    """Random inputs, by their names."""
    drawn = random_inputs(task, np.random.default_rng(seed))
    return {tensor.name: array for tensor, array in zip(task.inputs, drawn, strict=True)}


def best_so_far_s(result: TuneResult) -> list[float]:
    """After each trial the lowest latency until then; infinite as long as none was valid."""
    latencies_s = [record.rank_s for record in result.records]
    return [float(latency_s) for latency_s in np.minimum.accumulate(latencies_s)]
