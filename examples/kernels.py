"""Builds the two example kernels, checks them against NumPy, and prints their speed next to NumPy's.

Run it with `python -m examples.kernels`. The schedules are in `gemm` and `conv2d`. Exits with 1 if a result is wrong.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

import tilewright as tw
from examples.conv2d import conv2d_numpy, conv2d_schedule, conv2d_task
from examples.gemm import gemm_schedule, gemm_task
from tilewright.peers import library_threads, settle_s, take_turns
from tilewright.target import default_threads

Array = NDArray[np.float32]

TOLERANCE = 1e-5
BUILDS = 9
ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Example:
    """A computation as an expression with its schedule, and as NumPy."""

    title: str
    make_task: Callable[[], tw.Task]
    make_schedule: Callable[[tw.Task, tw.Target], tw.Schedule]
    in_numpy: Callable[..., Array]


class WrongResultError(Exception):
    """A kernel and NumPy disagree."""


EXAMPLES = [
    Example("GEMM 512x512x512, float32", partial(gemm_task, 512, 512, 512), gemm_schedule, np.matmul),
    Example(
        "Convolution 3x3 with padding, bias and ReLU, 56x56x64 -> 64, float32, weights packed ahead of time",
        partial(conv2d_task, 56, 56, 64, 64),
        conv2d_schedule,
        conv2d_numpy,
    ),
]


def main() -> int:
    target = tw.Target.native()
    print(f"target: {target}\n")
    print("The loop nest of the GEMM as scheduled in examples/gemm.py:\n")
    print(gemm_schedule(gemm_task(512, 512, 512), target))
    try:
        for example in EXAMPLES:
            demonstrate(example, target)
    except WrongResultError as error:
        print(f"kernels: {error}", file=sys.stderr)
        return 1
    return 0


def demonstrate(example: Example, target: tw.Target) -> None:
    """Build the example, check its result, and compare its speed with NumPy's."""
    task = example.make_task()
    rng = np.random.default_rng(0)
    arrays = {t.name: rng.uniform(-1, 1, t.shape).astype(np.float32) for t in task.inputs}
    numpy_call = partial(example.in_numpy, *arrays.values())
    expected = numpy_call()
    out = np.empty_like(expected)

    print(f"\n{example.title}")
    print(f"  compiled in {compile_time_s(example, target) * 1e3:.1f} ms, from the expression to a callable kernel")
    for threads in sorted({1, default_threads()}):
        kernel = tw.build(example.make_schedule(task, target), target, threads)
        kernel = kernel.bind(**{t.name: arrays[t.name] for t in task.constants})
        call = partial(kernel, *(arrays[a.name] for a in kernel.inputs), out=out)
        call()
        check(f"{task.name} on {threads} threads", out, expected)
        with library_threads(threads, ["numpy"]):
            timings = take_turns({"tilewright": call, "NumPy": numpy_call}, ROUNDS, settle_s(["numpy"], threads))
        speeds = ", ".join(f"{name} {task.flop / t.best_s * 1e-9:.1f} GFLOP/s" for name, t in timings.items())
        print(f"  {threads} core{'s' * (threads > 1)}: result as NumPy's, {speeds}")


def check(name: str, result: Array, expected: Array) -> None:
    error = np.abs(result - expected).max() / np.abs(expected).max()
    if not error < TOLERANCE:  # written so that NaN fails too
        raise WrongResultError(
            f"{name} gives a wrong result: its largest difference from NumPy is {error:.1e} of the largest value, "
            f"where {TOLERANCE:.0e} is allowed"
        )


def compile_time_s(example: Example, target: tw.Target) -> float:
    """The median of several builds, after one that loads the libraries."""

    def build_s() -> float:
        start = time.perf_counter()
        tw.build(example.make_schedule(example.make_task(), target), target)
        return time.perf_counter() - start

    build_s()
    return statistics.median(build_s() for _ in range(BUILDS))


if __name__ == "__main__":
    sys.exit(main())
