"""`Program`: a compiled network that is called on arrays.

The kernels of all native steps are loaded as one library. Each such step is one call; without fallbacks there is one
step, so that a run of the network is one call from Python.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from tilewright.deploy.compiled import CompiledModel, FallbackStep, ModelStep, NativeStep, Operand, Value
from tilewright.errors import ModelError
from tilewright.operators import Node, TensorType
from tilewright.runtime._native import NativeProgram
from tilewright.runtime.aligned_arrays import aligned_empty
from tilewright.te import DTYPES, numpy_dtype

Evaluator: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
FallbackFactory: TypeAlias = Callable[[Node, Sequence[TensorType | None]], Evaluator]
"""Makes what runs a node; its results are of the given types where those are known."""

_Arrays: TypeAlias = dict[str, Any]


class StepTime(NamedTuple):
    """How long one kernel call or one fallback took."""

    name: str
    seconds: float


class _Step(Protocol):
    def run(self, arrays: _Arrays) -> None:
        """Read arrays by name, and add those that it writes."""

    def profile(self, arrays: _Arrays) -> list[StepTime]:
        """Run, and tell how long it took."""


class Program:
    """A network that runs in this process, from several threads at once.

    bfloat16 arrays are arrays of their bits, in uint16, as everywhere but in fallbacks.
    """

    def __init__(
        self, model: CompiledModel, threads: int | None = None, fallback: FallbackFactory | None = None
    ) -> None:
        """Run on at most `threads` threads, by default as many as the model was compiled for."""
        self.model = model
        self._input_names = [value.name for value in model.inputs]
        make = fallback or _reference_evaluator
        entries, loaded = _load(model)
        types = _kernel_input_types(model)
        self._steps: list[_Step] = [
            _FallbackStep(step, model, make(step.node, step.output_types), types)
            if isinstance(step, FallbackStep)
            else _NativeStep(step, model, entries, threads or model.threads, loaded)
            for step in model.steps
        ]
        self._dying = _last_uses(model)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs, in new arrays. Inputs have the types of the model and are C-contiguous."""
        arrays = dict(zip(self._input_names, inputs, strict=True))
        try:
            for step, dying in zip(self._steps, self._dying, strict=True):
                step.run(arrays)
                for name in dying:
                    del arrays[name]
            return self._outputs(arrays)
        except MemoryError as error:
            raise _too_large(self.model) from error

    def profile(self, inputs: Sequence[Any]) -> list[StepTime]:
        """How long each kernel call and fallback of one run takes."""
        arrays = dict(zip(self._input_names, inputs, strict=True))
        try:
            return [entry for step in self._steps for entry in step.profile(arrays)]
        except MemoryError as error:
            raise _too_large(self.model) from error

    def _outputs(self, arrays: _Arrays) -> list[Any]:
        found = []
        for output in self.model.outputs:
            value = _find(output.operand, self.model, arrays)
            owned = _copied(value) if output.is_copied else value
            found.append(_bits(owned) if output.operand.constant is None else owned)
        return found


def _too_large(model: CompiledModel) -> ModelError:
    largest = max((step.arena_bytes + _output_bytes(step) for step in model.native_steps), default=0)
    return ModelError(
        f"network {model.name} does not fit into the memory of this process: its kernels alone take "
        f"{largest / 2**30:.1f} GiB at once; compile it for smaller inputs, or give it more memory"
    )


def _output_bytes(step: NativeStep) -> int:
    return sum(_storage(value)[2] for value in step.outputs)


class _NativeStep:
    """A native step: one call."""

    def __init__(
        self, step: NativeStep, model: CompiledModel, entries: Sequence[int], threads: int, keepalive: object
    ) -> None:
        self._inputs = [value.name for value in step.inputs]
        self._outputs = [value.name for value in step.outputs]
        self._new_outputs = [_storage(value) for value in step.outputs]
        kernels = [model.kernels[call.kernel] for call in step.calls]
        self._kernel_names = [kernel.name for kernel in kernels]
        self._native = NativeProgram(
            model.name,
            tuple(
                [_described(value, is_output=False) for value in step.inputs]
                + [_described(value, is_output=True) for value in step.outputs]
            ),
            model.weights,
            tuple((entries[call.kernel], call.workspace_offset, call.slots) for call in step.calls),
            step.arena_bytes,
            max((kernel.scratch_bytes for kernel in kernels), default=0),
            threads,
            keepalive,
        )

    def run(self, arrays: _Arrays) -> None:
        self._native(*self._arguments(arrays))

    def profile(self, arrays: _Arrays) -> list[StepTime]:
        return list(map(StepTime, self._kernel_names, self._native.profile(self._arguments(arrays))))

    def _arguments(self, arrays: _Arrays) -> tuple[Any, ...]:
        inputs = [arrays[name] for name in self._inputs]
        outputs = [aligned_empty(shape, dtype, nbytes) for shape, dtype, nbytes in self._new_outputs]
        arrays.update(zip(self._outputs, outputs, strict=True))
        return (*inputs, *outputs)


class _FallbackStep:
    """A node on the reference evaluator."""

    def __init__(
        self, call: FallbackStep, model: CompiledModel, evaluate: Evaluator, types: Mapping[str, TensorType]
    ) -> None:
        """`types` are those of the values that kernels read."""
        self._call = call
        self._model = model
        self._evaluate = evaluate
        self._types = types

    def run(self, arrays: _Arrays) -> None:
        operands = [None if o is None else self._operand(o, arrays) for o in self._call.operands]
        results = self._evaluate(operands)
        for name, result, known in zip(self._call.node.outputs, results, self._call.output_types, strict=True):
            if name:
                owned = _owned(result, operands)
                # What has no type yet is read by other fallbacks alone, who could not tell its bits from integers.
                arrays[name] = self._checked(name, owned if known is None else _bits(owned), known)

    def profile(self, arrays: _Arrays) -> list[StepTime]:
        start_s = time.perf_counter()
        self.run(arrays)
        return [StepTime(self._call.node.op, time.perf_counter() - start_s)]

    def _operand(self, operand: Operand, arrays: _Arrays) -> Any:
        found = _find(operand, self._model, arrays)
        is_bits = isinstance(found, np.ndarray) and found.dtype == np.uint16
        if operand.type is None or operand.type.dtype != "bfloat16" or not is_bits:
            return found
        import ml_dtypes

        return found.view(ml_dtypes.bfloat16)

    def _checked(self, name: str, result: Any, known: TensorType | None) -> Any:
        """A value has the shape that the network was compiled for; one that a kernel reads also the type."""
        if known is None or not isinstance(result, np.ndarray):
            return result
        if result.shape != known.shape:
            raise ModelError(
                f"the reference evaluator gave {name} the shape {result.shape} in node {self._call.node}, but the "
                f"network was compiled for {known.shape}; check the shapes that the model states"
            )
        wanted = self._types.get(name)
        return result if wanted is None else np.asarray(result, numpy_dtype(wanted.dtype), order="C")


def _load(model: CompiledModel) -> tuple[list[int], object]:
    """The address of each kernel, and what keeps them in memory."""
    if not model.kernels:
        return [], None
    from tilewright.codegen.native import LoadedObject

    loaded = LoadedObject(*(kernel.object_code for kernel in model.kernels))
    return [loaded.address(kernel.symbol) for kernel in model.kernels], loaded


def _reference_evaluator(node: Node, output_types: Sequence[TensorType | None]) -> Evaluator:
    from tilewright.graph.evaluation.fallback import FallbackOperator

    return FallbackOperator(node, output_types)


def _find(operand: Operand, model: CompiledModel, arrays: Mapping[str, Any]) -> Any:
    found = arrays[operand.name] if operand.constant is None else model.constants[operand.constant]
    if operand.type is None or not isinstance(found, np.ndarray) or found.shape == operand.type.shape:
        return found
    if found.size != math.prod(operand.type.shape):
        raise ModelError(
            f"{operand.name} is read as {operand.type}, but came out with the shape {found.shape}; check the shapes "
            "that the model states"
        )
    return found.reshape(operand.type.shape)


def _owned(result: Any, operands: Sequence[Any]) -> Any:
    """A result that shares memory with an operand is copied: that may be the caller's own array."""
    if isinstance(result, list):
        owners = {id(_owner(x)) for x in _arrays(operands)}
        return [_copied(item) if id(_owner(item)) in owners else item for item in result]
    if not isinstance(result, np.ndarray):
        return result
    return result.copy() if any(np.may_share_memory(result, x) for x in _arrays(operands)) else result


def _arrays(values: Iterable[Any]) -> Iterator[np.ndarray]:
    """The arrays among values, and in the sequences among them."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, list):
            yield from _arrays(value)


def _owner(value: Any) -> Any:
    """The array that an array is a view of, or the value itself."""
    while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
        value = value.base
    return value


def _copied(value: Any) -> Any:
    """An array, or a sequence of them, in new memory."""
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def _bits(result: Any) -> Any:
    is_bfloat16 = isinstance(result, np.ndarray) and result.dtype.name == "bfloat16"
    return result.view(np.uint16) if is_bfloat16 else result


def _kernel_input_types(model: CompiledModel) -> dict[str, TensorType]:
    return {value.name: _type(value) for step in model.native_steps for value in step.inputs}


def _last_uses(model: CompiledModel) -> list[list[str]]:
    """For each step the arrays that nobody reads after it."""
    last: dict[str, int] = {}
    for number, step in enumerate(model.steps):
        last.update(dict.fromkeys(_names(step), number))
    for output in model.outputs:
        last.pop(output.operand.name, None)
    dying: list[list[str]] = [[] for _ in model.steps]
    for name, end in last.items():
        dying[end].append(name)
    return dying


def _names(step: ModelStep) -> list[str]:
    """The arrays that a step reads or writes."""
    if isinstance(step, NativeStep):
        return [value.name for value in (*step.inputs, *step.outputs)]
    read = [operand.name for operand in step.operands if operand is not None and operand.constant is None]
    return [*read, *(name for name in step.node.outputs if name)]


def _type(value: Value) -> TensorType:
    assert value.type is not None, f"{value.name} is read or written by a kernel, so its type is known"
    return value.type


def _storage(value: Value) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    known = _type(value)
    return known.shape, numpy_dtype(known.dtype), math.prod(known.shape) * DTYPES[known.dtype].bytes


def _described(value: Value, *, is_output: bool) -> tuple[str, str, tuple[int, ...], bool]:
    known = _type(value)
    return value.name, known.dtype, known.shape, is_output
