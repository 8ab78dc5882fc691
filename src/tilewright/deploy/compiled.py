"""`CompiledModel`: a network as plain data, ready to run or to be written to a file.

It is an ordered list of steps. A native step is a run of kernel calls, with every address but those of its arrays
decided; a fallback is a node that the reference evaluator of ONNX runs. Between steps values are arrays, by name. A
view has no step: what reads it reads the array of its input, under another shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import numpy.typing as npt

from tilewright.operators import Node, TensorType
from tilewright.te.algorithms import is_exact


class Place(IntEnum):
    """Where an argument of a kernel lies; the numbers are those of tw_place in native/program_run.h."""

    ARGUMENT = 0
    ARENA = 1
    WEIGHT = 2


class Slot(NamedTuple):
    """An argument of a kernel: an array of the step or a weight by index, or an offset in the arena in bytes."""

    place: Place
    position: int


@dataclass(frozen=True, slots=True)
class Value:
    """A named value; the type is None where it is known only when the network runs."""

    name: str
    type: TensorType | None


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """The bytes that a kernel reads and writes: of each argument, and of the workspace of a call."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    workspace: int


@dataclass(frozen=True, slots=True)
class KernelCode:
    """Object code of one kernel. It is native code: load only what you compiled yourself or trust."""

    name: str
    symbol: str
    scratch_bytes: int
    object_code: bytes = field(repr=False)
    memory: KernelMemory | None = None
    """None for code from a file of format 1, which does not say."""
    flop: float | None = None
    """The arithmetic operations of a call, by `Task.flop`."""
    algorithms: tuple[str, ...] = ()
    """Those in the place of its sums, which round more, such as winograd4."""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of the kernel with that index; `slots` are its inputs and then its outputs."""

    kernel: int
    slots: tuple[Slot, ...]
    workspace_offset: int


@dataclass(frozen=True, slots=True)
class NativeStep:
    """Kernel calls without Python in between. Its arguments are the arrays `inputs` and then `outputs`."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    calls: tuple[KernelCall, ...]
    arena_bytes: int


@dataclass(frozen=True, slots=True)
class Operand:
    """What a fallback or an output reads: an array by name, or the constant of that index, seen as `type`."""

    name: str
    constant: int | None
    type: TensorType | None


@dataclass(frozen=True, slots=True)
class FallbackStep:
    """A node for the reference evaluator; an operand is None where an optional input was left out."""

    node: Node
    operands: tuple[Operand | None, ...]
    output_types: tuple[TensorType | None, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the network. It is copied where its array is an input, a constant or another output as well."""

    name: str
    operand: Operand
    is_copied: bool

    @property
    def type(self) -> TensorType | None:
        return self.operand.type


ModelStep: TypeAlias = NativeStep | FallbackStep


@dataclass(frozen=True, slots=True, eq=False)
class CompiledModel:
    """A network for one target. `threads` is the most that it uses."""

    name: str
    target: str
    features: tuple[str, ...]
    """Those of the processor that the code may use."""
    threads: int
    inputs: tuple[Value, ...]
    outputs: tuple[Output, ...]
    kernels: tuple[KernelCode, ...]
    steps: tuple[ModelStep, ...]
    weights: tuple[npt.NDArray[Any], ...] = field(repr=False)
    """The constants that kernels read, in the form in which they do: packed, where the schedule says so."""
    constants: tuple[npt.NDArray[Any], ...] = field(default=(), repr=False)
    """Those that fallbacks read or that are outputs."""

    @property
    def input_types(self) -> dict[str, TensorType | None]:
        """The type of each input, by name."""
        return {value.name: value.type for value in self.inputs}

    @property
    def is_exact(self) -> bool:
        """Whether all kernels give the sums of the network themselves."""
        return all(is_exact(name) for kernel in self.kernels for name in kernel.algorithms)

    @property
    def arch(self) -> str:
        """The architecture that the code is for, such as x86_64."""
        return self.target.partition("-mtriple=")[2].partition("-")[0]

    @property
    def fallbacks(self) -> tuple[FallbackStep, ...]:
        return tuple(step for step in self.steps if isinstance(step, FallbackStep))

    @property
    def native_steps(self) -> tuple[NativeStep, ...]:
        return tuple(step for step in self.steps if isinstance(step, NativeStep))
