"""From a partition to steps: runs of kernels become native steps, and every value gets its place.

Views vanish here: a value stands for the bytes of its root, the value that was computed, fed or constant before any
reshape. Values that leave a native step are arrays; all others lie in its arena, as do the workspaces of its kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from tilewright.deploy.compiled import (
    FallbackStep,
    KernelCall,
    ModelStep,
    NativeStep,
    Operand,
    Output,
    Place,
    Slot,
    Value,
)
from tilewright.deploy.memory_plan import Block, plan_memory
from tilewright.operators import Node, TensorType
from tilewright.partition import Fallback, KernelPart, Partition, View
from tilewright.te import DTYPES

_Run: TypeAlias = "list[KernelPart] | Fallback"
_FOREVER = 1 << 62


@dataclass(frozen=True, slots=True)
class PlacedKernel:
    """What a native step has to know of a kernel: its index in the model, and the workspace of a call."""

    index: int
    workspace_bytes: int


class ConstantTable(Protocol):
    """Gives each constant that is read its index."""

    def weight(self, name: str, part: KernelPart, position: int) -> int:
        """The index among the weights, in the form that the kernel reads as its input at `position`."""

    def constant(self, name: str) -> int:
        """The index among the constants that fallbacks and outputs read."""


def cut_into_steps(
    partition: Partition, kernels: Mapping[str, PlacedKernel], constants: ConstantTable
) -> tuple[tuple[ModelStep, ...], tuple[Output, ...]]:
    """The steps and outputs of a network; `kernels` are by the hashes of their tasks."""
    scope = _Scope(partition, constants)
    steps: list[ModelStep] = []
    for number, run in enumerate(scope.runs):
        if isinstance(run, Fallback):
            steps.append(scope.fallback(run.node))
        else:
            steps.append(_NativeStepBuilder(scope, number, run).build(kernels))
    return tuple(steps), scope.outputs()


class _Scope:
    """The values of the network: their roots, and in which runs they are read."""

    def __init__(self, partition: Partition, constants: ConstantTable) -> None:
        self.graph = partition.graph
        self.constants = constants
        self._roots = _roots(partition)
        self.runs = _runs(partition)
        self._last_run = self._last_runs()

    def root(self, name: str) -> str:
        return self._roots.get(name, name)

    def is_constant(self, name: str) -> bool:
        return self.root(name) in self.graph.constants

    def is_read_after(self, root: str, run: int) -> bool:
        return self._last_run.get(root, -1) > run

    def operand(self, name: str) -> Operand | None:
        if not name:
            return None
        root, type_ = self.root(name), self.graph.types.get(name)
        if root in self.graph.constants:
            return Operand("", self.constants.constant(root), type_)
        return Operand(root, None, type_)

    def fallback(self, node: Node) -> FallbackStep:
        operands = tuple(self.operand(name) for name in node.inputs)
        return FallbackStep(node, operands, tuple(self.graph.types.get(name) for name in node.outputs))

    def outputs(self) -> tuple[Output, ...]:
        returned = set(self.graph.inputs) | set(self.graph.constants)
        found = []
        for name in self.graph.outputs:
            operand = self.operand(name)
            assert operand is not None, "an output has a name"
            root = self.root(name)
            found.append(Output(name, operand, is_copied=root in returned))
            returned.add(root)
        return tuple(found)

    def _last_runs(self) -> dict[str, int]:
        last = {}
        for number, run in enumerate(self.runs):
            for name in _reads(run):
                last[self.root(name)] = number
        return last | dict.fromkeys(map(self.root, self.graph.outputs), _FOREVER)


def _roots(partition: Partition) -> dict[str, str]:
    roots: dict[str, str] = {}
    for part in partition.parts:
        if isinstance(part, View):
            roots[part.output] = roots.get(part.input, part.input)
    return roots


def _runs(partition: Partition) -> list[_Run]:
    """Kernels that follow each other together, and each fallback alone."""
    runs: list[_Run] = []
    for part in partition.parts:
        if isinstance(part, Fallback):
            runs.append(part)
        elif isinstance(part, KernelPart):
            if runs and isinstance(runs[-1], list):
                runs[-1].append(part)
            else:
                runs.append([part])
    return runs


def _reads(run: _Run) -> Iterable[str]:
    if isinstance(run, Fallback):
        return [name for name in run.node.inputs if name]
    return [name for part in run for name in part.inputs]


@dataclass(slots=True)
class _NativeStepBuilder:
    """One native step as it is built: first the lifetimes of its values, then their places."""

    scope: _Scope
    number: int
    parts: Sequence[KernelPart]
    _inputs: dict[str, None] = field(default_factory=dict, init=False)
    _first: dict[str, int] = field(default_factory=dict, init=False)  # the call that writes each root
    _last: dict[str, int] = field(default_factory=dict, init=False)  # the last call that reads or writes it

    def build(self, kernels: Mapping[str, PlacedKernel]) -> NativeStep:
        self._find_lifetimes()
        leaving = [root for root in self._first if self.scope.is_read_after(root, self.number)]
        staying = [root for root in self._first if not self.scope.is_read_after(root, self.number)]
        blocks = [Block(_nbytes(self._type(root)), self._first[root], self._last[root]) for root in staying]
        used = [kernels[part.task.hash] for part in self.parts]
        workspaces = [call for call, kernel in enumerate(used) if kernel.workspace_bytes]
        plan = plan_memory(blocks + [Block(used[call].workspace_bytes, call, call) for call in workspaces])
        offsets = dict(zip(workspaces, plan.offsets[len(blocks) :], strict=True))
        slots = {name: Slot(Place.ARGUMENT, position) for position, name in enumerate([*self._inputs, *leaving])}
        slots |= {name: Slot(Place.ARENA, offset) for name, offset in zip(staying, plan.offsets, strict=False)}
        return NativeStep(
            inputs=tuple(Value(name, self._type(name)) for name in self._inputs),
            outputs=tuple(Value(name, self._type(name)) for name in leaving),
            calls=tuple(
                KernelCall(kernel.index, self._slots(part, slots), offsets.get(call, 0))
                for call, (part, kernel) in enumerate(zip(self.parts, used, strict=True))
            ),
            arena_bytes=plan.nbytes,
        )

    def _find_lifetimes(self) -> None:
        for call, part in enumerate(self.parts):
            for name in part.inputs:
                root = self.scope.root(name)
                if root in self._first:
                    self._last[root] = call
                elif not self.scope.is_constant(name):
                    self._inputs[root] = None
            for name in part.outputs:
                self._first[name] = self._last[name] = call

    def _slots(self, part: KernelPart, slots: Mapping[str, Slot]) -> tuple[Slot, ...]:
        inputs = [self._input_slot(part, position, slots) for position in range(len(part.inputs))]
        return (*inputs, *(slots[name] for name in part.outputs))

    def _input_slot(self, part: KernelPart, position: int, slots: Mapping[str, Slot]) -> Slot:
        root = self.scope.root(part.inputs[position])
        if self.scope.is_constant(root):
            return Slot(Place.WEIGHT, self.scope.constants.weight(root, part, position))
        return slots[root]

    def _type(self, name: str) -> TensorType:
        found = self.scope.graph.types.get(name)
        assert found is not None, f"{name} is read or written by a kernel, so its type is known"
        return found


def _nbytes(type_: TensorType) -> int:
    return math.prod(type_.shape) * DTYPES[type_.dtype].bytes
