"""From a partition to a compiled model: kernels compiled, constants packed, memory planned."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright.codegen import KernelBinary
from tilewright.codegen.native import LoadedObject
from tilewright.deploy.compiled import CompiledModel, KernelCode, KernelMemory, Value
from tilewright.deploy.kernel_workers import CompiledJob, DefaultTrace, KernelJob, compile_kernels, try_job
from tilewright.deploy.memory_plan import ALIGNMENT
from tilewright.deploy.steps import PlacedKernel, cut_into_steps
from tilewright.errors import TilewrightError
from tilewright.partition import KernelPart, Partition
from tilewright.records import RecordedPrograms
from tilewright.runtime import Argument, KernelSpec, PackSpec
from tilewright.runtime.aligned_arrays import aligned_empty
from tilewright.runtime.packing import Packer
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.te import DTYPES, Task, Tensor, numpy_dtype

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many of the different kernels are compiled, and how many there are."""


def naive_trace(task: Task) -> Trace:
    """The plain loops of a task: correct and slow."""
    return Trace()


def compile_model(
    partition: Partition,
    programs: Mapping[str, Trace | RecordedPrograms],
    target: Target,
    threads: int,
    *,
    default_trace: DefaultTrace = naive_trace,
    last_resort: Trace | None = None,
    on_progress: Progress | None = None,
) -> CompiledModel:
    """Compile a network. `programs` are by the hashes of their tasks; `default_trace` serves those that have none.

    A recorded program that cannot be compiled is set aside, and the next takes its place, or the default. `last_resort`
    takes the place of a default that cannot be compiled; without it, that is an error.
    Equal tasks share their code. Every constant is packed here, once; what only packed forms are read of is not kept.
    """
    tasks = [weighted.task for weighted in partition.tasks]
    choices = _Choices(programs, target, threads, default_trace, last_resort)
    jobs = [choices.job(task, f"tw_{index}") for index, task in enumerate(tasks)]
    report = on_progress or (lambda done, total: None)
    outcomes = compile_kernels(jobs, lambda done: report(done, len(jobs)))
    compiled = [choices.settled(job, outcome) for job, outcome in zip(jobs, outcomes, strict=True)]
    constants = _Constants(partition, {task.hash: job for task, job in zip(tasks, compiled, strict=True)}, threads)
    kernels = {
        task.hash: PlacedKernel(index, job.binary.entry.workspace_bytes)
        for index, (task, job) in enumerate(zip(tasks, compiled, strict=True))
    }
    steps, outputs = cut_into_steps(partition, kernels, constants)
    graph = partition.graph
    return CompiledModel(
        name=graph.name,
        target=str(target),
        features=tuple(sorted(target.enabled_features)),
        threads=threads,
        inputs=tuple(Value(name, graph.types.get(name)) for name in graph.inputs),
        outputs=outputs,
        kernels=tuple(_code(task, job) for task, job in zip(tasks, compiled, strict=True)),
        steps=steps,
        weights=_in_one_block(constants.weights),
        constants=tuple(constants.constants),
    )


@dataclass(frozen=True, slots=True)
class _Choices:
    """What each task is compiled by."""

    programs: Mapping[str, Trace | RecordedPrograms]
    target: Target
    threads: int
    default_trace: DefaultTrace
    last_resort: Trace | None

    def job(self, task: Task, symbol_prefix: str) -> KernelJob:
        program = self.programs.get(task.hash)
        if isinstance(program, RecordedPrograms):
            program = None if program.best is None else program.best.trace
        choice = (self.default_trace, self.last_resort) if program is None else (program, None)
        return KernelJob(task, choice[0], self.target, self.threads, symbol_prefix, choice[1])

    def settled(self, job: KernelJob, outcome: CompiledJob | TilewrightError) -> CompiledJob:
        """The kernel; where the best recorded program did not compile, that of the next."""
        while isinstance(outcome, TilewrightError):
            program = self.programs.get(job.task.hash)
            if not isinstance(program, RecordedPrograms) or program.best is None:
                raise outcome
            program.set_aside(outcome)
            outcome = try_job(self.job(job.task, job.symbol_prefix))
        return outcome


def _code(task: Task, job: CompiledJob) -> KernelCode:
    binary = job.binary
    packed = {pack.position: pack.nbytes for pack in binary.packs}
    inputs = tuple(packed.get(position, _nbytes(tensor)) for position, tensor in enumerate(task.inputs))
    memory = KernelMemory(inputs, tuple(map(_nbytes, task.outputs)), binary.entry.workspace_bytes)
    entry = binary.entry
    return KernelCode(
        task.name, entry.symbol, entry.scratch_bytes, binary.object_code, memory, task.flop, job.algorithms
    )


def _nbytes(tensor: Tensor) -> int:
    return math.prod(tensor.shape) * DTYPES[tensor.dtype].bytes


class _Constants:
    """The constants of a network, each in the forms in which it is read."""

    def __init__(self, partition: Partition, compiled: Mapping[str, CompiledJob], threads: int) -> None:
        self._plain = partition.graph.constants
        self._packing = _Packing({key: job.packer for key, job in compiled.items()}, threads)
        self._indices: dict[tuple[str, ...], int] = {}
        self.weights: list[npt.NDArray[Any]] = []
        self.constants: list[npt.NDArray[Any]] = []

    def weight(self, name: str, part: KernelPart, position: int) -> int:
        packer = self._packing.packer(part.task, position)
        key = (name,) if packer is None else (name, part.task.hash, str(position))
        if key not in self._indices:
            tensor = part.task.inputs[position]
            plain = _as_stored(self._plain[name], tensor.dtype).reshape(tensor.shape)
            self._indices[key] = len(self.weights)
            self.weights.append(plain if packer is None else packer(plain))
        return self._indices[key]

    def constant(self, name: str) -> int:
        key = ("", name)
        if key not in self._indices:
            self._indices[key] = len(self.constants)
            self.constants.append(np.asarray(self._plain[name], order="C"))
        return self._indices[key]


class _Packing:
    """The functions that pack constants, loaded as one library; kernels are by the hashes of their tasks."""

    def __init__(self, kernels: Mapping[str, KernelBinary], threads: int) -> None:
        packing = {key: binary for key, binary in kernels.items() if binary.packs}
        self._loaded = LoadedObject(*(binary.object_code for binary in packing.values()))
        self._threads = threads
        self._packs = {(key, pack.position): pack for key, binary in packing.items() for pack in binary.packs}

    def packer(self, task: Task, position: int) -> Packer | None:
        """What packs the input at `position`; None where it is read as it is."""
        pack = self._packs.get((task.hash, position))
        if pack is None:
            return None
        tensor = task.inputs[position]
        spec = PackSpec(
            entry_address=self._loaded.address(pack.entry.symbol),
            shape=pack.shape,
            dtype=pack.dtype,
            workspace_bytes=pack.entry.workspace_bytes,
            scratch_bytes=pack.entry.scratch_bytes,
            nbytes=pack.nbytes,
        )
        kernel = KernelSpec(task.name, (), (), spec.entry_address, 0, 0, self._threads, keepalive=self._loaded)
        return Packer(kernel, Argument(tensor.name, tensor.dtype, tensor.shape, is_constant=True), spec)


def _in_one_block(arrays: list[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], ...]:
    """Copies of the arrays, one after the other in one block; `arrays` is emptied on the way.

    A large block gets huge pages, where each array alone would not: networks run a few percent faster.
    """
    sizes = [-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in arrays]
    arrays.reverse()
    block = aligned_empty((sum(sizes),), np.dtype(np.uint8), sum(sizes))
    copies: list[npt.NDArray[Any]] = []
    begin = 0
    for size in sizes:
        array = arrays.pop()
        copy = block[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
        copy[...] = array
        copy.flags.writeable = False
        copies.append(copy)
        begin += size
    return tuple(copies)


def _as_stored(array: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """The array as kernels read it: its elements one after the other, bfloat16 as its bits."""
    bits = array.view(np.uint16) if array.dtype.name == "bfloat16" else array
    assert bits.dtype == numpy_dtype(dtype), f"a constant of {bits.dtype} is read as {dtype}"
    return np.require(bits, requirements=["C", "ALIGNED"])
