"""`Session`: a compiled network to run, with the names and the behaviour of onnxruntime's sessions."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.deploy.compiled import CompiledModel, Value
from tilewright.deploy.program import FallbackFactory, Program, StepTime
from tilewright.deploy.providers import CPU
from tilewright.errors import CodegenError, KernelArgumentError
from tilewright.operators import TensorType
from tilewright.target import Target

_STRING = "string"
_ONNX_NAMES = {"float32": "float", "float64": "double"}


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output of a network. The type is written as onnxruntime does: "tensor(float)"."""

    name: str
    shape: list[int]
    type: str

    @staticmethod
    def of(name: str, known: TensorType | None) -> NodeArg:
        """What is known only when the network runs has the type "unknown"."""
        if known is None:
            return NodeArg(name, [], "unknown")
        element = _ONNX_NAMES.get(known.dtype, known.dtype.replace("_", ""))
        return NodeArg(name, list(known.shape), f"tensor({element})")


class Session:
    """A compiled network that can run, also from several threads at once."""

    def __init__(
        self, model: CompiledModel, *, threads: int | None = None, fallback: FallbackFactory | None = None
    ) -> None:
        """`threads` are the most to use. `fallback` replaces the evaluator of ONNX for operators without a kernel."""
        _check_target(model)
        _warn_of_fallbacks(model)
        self.model = model
        self._program = Program(model, threads, fallback)
        self._positions = {output.name: position for position, output in enumerate(model.outputs)}
        self._storage = {value.name: _storage(value) for value in model.inputs}

    def get_inputs(self) -> list[NodeArg]:
        """What `run` takes."""
        return [NodeArg.of(value.name, value.type) for value in self.model.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """What `run` returns."""
        return [NodeArg.of(output.name, output.type) for output in self.model.outputs]

    def get_providers(self) -> list[str]:
        """What it runs on, by the name that onnxruntime has for it."""
        return [CPU]

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: object = None
    ) -> list[Any]:
        """The outputs of that name, or all of them, for inputs by name, in new arrays.

        An input that is not C-contiguous is copied. bfloat16 arrays are arrays of that type of `ml_dtypes`, or of their
        bits in uint16; those that are returned are of the second kind. `run_options` are those of onnxruntime, for
        callers who give them: they change nothing.
        """
        wanted = self._wanted(output_names)
        outputs = self._program(self._inputs(input_feed))
        return [outputs[position] for position in wanted]

    def profile(self, input_feed: Mapping[str, Any]) -> list[StepTime]:
        """Run once; tell how long each kernel call and each fallback took, in their order."""
        return self._program.profile(self._inputs(input_feed))

    def _wanted(self, output_names: Sequence[str] | None) -> Sequence[int]:
        if not output_names:
            return range(len(self.model.outputs))
        unknown = [name for name in output_names if name not in self._positions]
        if unknown:
            raise KernelArgumentError(
                f"network {self.model.name}: there is no output {unknown[0]!r}; it has {', '.join(self._positions)}"
            )
        return [self._positions[name] for name in output_names]

    def _inputs(self, feed: Mapping[str, Any]) -> list[Any]:
        if not isinstance(feed, Mapping):
            raise KernelArgumentError(
                f"network {self.model.name}: inputs are given by name, as {{'name': array}}, got "
                f"{type(feed).__name__}; {self._usage}"
            )
        for name in feed:
            if name not in self._storage:
                raise KernelArgumentError(f"network {self.model.name}: there is no input {name!r}; {self._usage}")
        for name in self._storage:
            if name not in feed:
                raise KernelArgumentError(f"network {self.model.name}: input {name!r} was not given; {self._usage}")
        return [self._checked(value, feed[value.name]) for value in self.model.inputs]

    @property
    def _usage(self) -> str:
        return f"it takes {', '.join(self._storage)}" if self._storage else "it takes no inputs"

    def _checked(self, value: Value, given: Any) -> Any:
        """The input as programs take it."""
        wanted = value.type
        if wanted is None or _is_stored(given, self._storage[value.name], wanted.shape):
            return given
        array = np.asarray(given)
        if not _has_dtype(array, wanted.dtype):
            raise KernelArgumentError(
                f"network {self.model.name}: input {value.name!r} must be of type {wanted.dtype}, got {array.dtype}; "
                f"convert it first, with x.astype({wanted.dtype!r})"
            )
        if array.shape != wanted.shape:
            raise KernelArgumentError(
                f"network {self.model.name}: input {value.name!r} must have shape {wanted.shape}, got {array.shape}; "
                "a network is compiled for one shape: reshape the array, or compile the network for its shape with "
                f"shapes={{{value.name!r}: {array.shape}}}"
            )
        return _stored(array)


def _check_target(model: CompiledModel) -> None:
    here = Target.native()
    if model.arch == here.arch and here.enabled_features.issuperset(model.features):
        return
    raise CodegenError(
        f"a network for {model.target} cannot run on this machine; compile it for 'llvm -mcpu=native' to run it here"
    )


def _warn_of_fallbacks(model: CompiledModel) -> None:
    operators = Counter(call.node.op for call in model.fallbacks)
    if operators:
        listing = ", ".join(f"{op} ({count})" if count > 1 else op for op, count in operators.items())
        warnings.warn(
            f"network {model.name}: these operators have no kernel and run, slowly, on the reference evaluator of "
            f"ONNX: {listing}",
            stacklevel=4,
        )


def _storage(value: Value) -> np.dtype[Any] | None:
    """The type of arrays that programs take as they are for an input; None where all have to be looked at."""
    try:
        return None if value.type is None or value.type.dtype == _STRING else np.dtype(value.type.dtype)
    except TypeError:  # as bfloat16
        return None


def _is_stored(given: Any, dtype: np.dtype[Any] | None, shape: tuple[int, ...]) -> bool:
    """Whether an input is as programs take it: quickly seen, since a small network takes no longer than a long look."""
    if dtype is None or type(given) is not np.ndarray or given.dtype != dtype or given.shape != shape:
        return False
    return given.flags.c_contiguous and given.flags.aligned and given.dtype.isnative


def _has_dtype(array: np.ndarray, dtype: str) -> bool:
    if dtype == _STRING:
        return array.dtype.kind in "OUS"
    return array.dtype.name == dtype or (dtype == "bfloat16" and array.dtype == np.uint16)


def _stored(array: np.ndarray) -> np.ndarray:
    """In C order, aligned, in the machine's byte order; bfloat16 as its bits."""
    if array.dtype.name == "bfloat16":
        array = array.view(np.uint16)
    return np.require(array, array.dtype.newbyteorder("="), ["C", "ALIGNED"])
