"""One schedule against the reference: build it, run it between guards, compare."""

from __future__ import annotations

import numpy as np

from tilewright.runtime.build import build
from tilewright.schedule import Schedule
from tilewright.te import Expected, Task, evaluate, numpy_dtype, random_inputs
from tilewright.testing.guarded import SentinelArray, before_guard_page


def check_program(
    task: Task,
    schedule: Schedule,
    rng: np.random.Generator,
    threads: int = 1,
    target: str = "llvm -mcpu=native",
) -> None:
    """Raise AssertionError unless the compiled schedule computes what NumPy computes, and writes nothing else.

    A read past the end of an input crashes the process, so that no wrong kernel goes unnoticed: run this in a child.
    """
    inputs = random_inputs(task, rng)
    guarded = {tensor.name: before_guard_page(array) for tensor, array in zip(task.inputs, inputs, strict=True)}
    outputs = [SentinelArray(t.name, t.shape, numpy_dtype(t.dtype)) for t in task.outputs]
    kernel = build(schedule, target, threads)
    if task.constants and rng.random() < 0.5:
        kernel = kernel.bind(**{tensor.name: guarded.pop(tensor.name) for tensor in task.constants})
    kernel(**guarded, out=tuple(output.array for output in outputs))
    for output in outputs:
        output.check()
    expected = Expected(task, lambda: inputs, evaluate(task, *inputs))
    wrong = expected.mismatch([output.array for output in outputs], schedule.trace.error_growth)
    assert not wrong, wrong
