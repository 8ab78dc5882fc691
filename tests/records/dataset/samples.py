"""A dataset to write and read: random programs with made-up latencies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tilewright.measure import OK, RUN_ERROR, Measurement
from tilewright.records.dataset import DatasetFolder, Device, NetworkTasks, TaskPrograms
from tilewright.space import SpaceOptions, derive
from tilewright.target import Target
from tilewright.te import Task
from tilewright.workloads import parse

TARGET = Target.parse("llvm -mcpu=haswell")
OPTIONS = SpaceOptions(TARGET, 2)
GEMM, SMALL = parse("gmm:48x32x64"), parse("gmm:16x16x16")
HASWELL = Device("haswell-2t", str(TARGET), 2, "Some Processor")
ARM = Device("a72", str(Target.parse("llvm -mcpu=cortex-a72")), 4, "Another")


def some_programs(task: Task, num: int = 12, options: SpaceOptions = OPTIONS, seed: int = 0) -> TaskPrograms:
    """Programs of all sketches; every fifth fails."""
    rng = np.random.default_rng(seed)
    candidates = [c for sketch in derive(task, options) for c in sketch.sample(rng, num)][::3][:num]
    measurements = [
        Measurement(RUN_ERROR, error="it died")
        if n % 5 == 4
        else Measurement(OK, 1e-3 * (n + 1), (1e-3 * (n + 1),) * 3)
        for n in range(len(candidates))
    ]
    return TaskPrograms().with_measured(candidates, ["random"] * len(candidates), measurements)


def write_sample(path: Path) -> DatasetFolder:
    """Two tasks on two devices; one task is of two networks."""
    folder = DatasetFolder.create(path)
    for device in map(folder.add_device, (HASWELL, ARM)):
        options = SpaceOptions(Target.parse(device.target), device.threads)
        for task in map(folder.add_task, (GEMM, SMALL)):
            some_programs(task, options=options).write(folder.part(device, task, "warm").path, task, "warm")
    folder.add_network(NetworkTasks("both", {GEMM.hash: 3, SMALL.hash: 1}, "cold-8M"))
    folder.add_network(NetworkTasks("one", {GEMM.hash: 1}, "warm", "batch=4"))
    return folder
