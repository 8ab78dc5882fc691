"""A kernel that is compiled for several machines and run, here or under qemu, and compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.codegen.qemu import run_under_qemu
from tests.codegen.test_math import MAX_ULP, ulp_distance
from tilewright.codegen import CompiledKernel, compile_schedule
from tilewright.codegen.module import Entry
from tilewright.runtime.build import load
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.te import (
    Task,
    assert_matches,
    bfloat16_to_float32,
    evaluate,
    is_float,
    numpy_dtype,
    random_inputs,
    reduction_size,
)

Array = npt.NDArray[Any]


def random(task: Task) -> list[Array]:
    return random_inputs(task, np.random.default_rng(7))


def check_rounded(task: Task, actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """The outputs are equal up to rounding."""
    for tensor, a, e in zip(task.outputs, actual, expected, strict=True):
        assert_matches(a, e, tensor.dtype, reduction_size(task))


def check_ulp(task: Task, actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """The outputs are equal to a few units in the last place whatever their magnitude; zeros have the same sign."""
    for tensor, a, e in zip(task.outputs, actual, expected, strict=True):
        distance = ulp_distance(a, e)
        worst = int(np.argmax(distance))
        message = f"{tensor.name} at {worst} is {a[worst]!r}, expected {e[worst]!r}: {distance[worst]} ulp"
        assert distance[worst] <= MAX_ULP.get(tensor.name, 4), message


def check_exact(task: Task, actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """The outputs are equal, signs of zeros included; any NaN is as good as another."""
    for tensor, a, e in zip(task.outputs, actual, expected, strict=True):
        if tensor.dtype == "bfloat16":
            a, e = bfloat16_to_float32(a), bfloat16_to_float32(e)
        np.testing.assert_array_equal(a, e, tensor.name)
        if is_float(tensor.dtype):
            is_number = ~np.isnan(e)
            np.testing.assert_array_equal(np.signbit(a)[is_number], np.signbit(e)[is_number], tensor.name)


@dataclass(frozen=True, slots=True)
class Program:
    """How to schedule it for a target and a number of threads, its inputs, and the comparison of its outputs."""

    schedule: Callable[[Target, int], Schedule]
    inputs: Callable[[Task], list[Array]] = random
    check: Callable[[Task, Sequence[Array], Sequence[Array]], None] = check_rounded

    def compile(self, target: Target, threads: int) -> CompiledKernel:
        return compile_schedule(self.schedule(target, threads), target, threads)

    def run_here(self, compiled: CompiledKernel) -> None:
        """Run it in this process; a constant input is packed by the call."""
        task = compiled.task
        inputs = self.inputs(task)
        result = load(compiled)(*inputs)
        outputs = list(result) if isinstance(result, tuple) else [result]
        self.check(task, outputs, evaluate(task, *inputs))

    def run_emulated(self, compiled: CompiledKernel) -> None:
        """Run it under qemu; constant inputs are packed first, by the functions that come with the kernel."""
        task, generated = compiled.task, compiled.generated
        inputs = self.inputs(task)
        arguments = list(inputs)
        for pack, entry in zip(compiled.module.packs, generated.packs, strict=True):
            packed = pack.packed.shape, numpy_dtype(pack.packed.dtype)
            (arguments[pack.position],) = _emulate(compiled, entry, [inputs[pack.position]], [packed])
        wanted = [(t.shape, numpy_dtype(t.dtype)) for t in task.outputs]
        outputs = _emulate(compiled, generated.kernel, arguments, wanted)
        self.check(task, outputs, evaluate(task, *inputs))


def _emulate(
    compiled: CompiledKernel,
    entry: Entry,
    inputs: Sequence[Array],
    outputs: Sequence[tuple[tuple[int, ...], npt.DTypeLike]],
) -> list[Array]:
    return run_under_qemu(
        compiled.object_code,
        entry.symbol,
        inputs,
        outputs,
        workspace_bytes=entry.workspace_bytes,
        scratch_bytes=entry.scratch_bytes,
        arch=compiled.target.arch,
    )
