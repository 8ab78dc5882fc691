"""Whether the parts of a compiled model fit together: checked of a file before any of its code runs.

Every value is written before it is read, and is read as what it was written as; every argument of a kernel lies in
memory of just the size that the kernel touches (`native_step_checks`).
"""

from __future__ import annotations

import math

import numpy as np

from tilewright.deploy.compiled import CompiledModel, FallbackStep, NativeStep, Operand, Value
from tilewright.deploy.native_step_checks import MisfitError, check_calls
from tilewright.errors import ArtifactError
from tilewright.operators import TensorType
from tilewright.te import DTYPES


def check_model(name: str, model: CompiledModel) -> None:
    """An ArtifactError says what does not fit in the model from the file of that name."""
    try:
        _Flow(model).check()
    except MisfitError as error:
        raise ArtifactError(f"{name}: {error}; compile the model again") from error


class _Flow:
    """The values of a model, from its inputs through its steps to its outputs."""

    def __init__(self, model: CompiledModel) -> None:
        self._model = model
        self._types: dict[str, TensorType | None] = {}
        self._computed: set[str] = set()  # by fallbacks, whose results are looked at when they are there

    def check(self) -> None:
        for value in self._model.inputs:
            self._define(value.name, value.type, "an input")
        for number, step in enumerate(self._model.steps):
            if isinstance(step, FallbackStep):
                self._check_fallback(step, f"step {number}")
            else:
                self._check_native_step(step, f"step {number}")
        self._check_outputs()

    def _define(self, name: str, known: TensorType | None, where: str) -> None:
        if not name or name in self._types:
            raise MisfitError(f"{where} must have a name of its own, got {name!r}")
        self._types[name] = known

    def _check_fallback(self, call: FallbackStep, where: str) -> None:
        node = call.node
        if [operand is not None for operand in call.operands] != [name != "" for name in node.inputs]:
            raise MisfitError(
                f"{where} must have an operand for each input of its node, got {len(call.operands)} for {node}"
            )
        if len(call.output_types) != len(node.outputs):
            raise MisfitError(
                f"{where} must have a type for each output of its node, got {len(call.output_types)} for {node}"
            )
        for operand in call.operands:
            if operand is not None:
                self._check_operand(operand, where)
        for name, known in zip(node.outputs, call.output_types, strict=True):
            if name:
                self._define(name, known, f"an output of {where}")
                self._computed.add(name)

    def _check_operand(self, operand: Operand, where: str) -> None:
        known = self._source_type(operand, where)
        if known is None or operand.type is None:
            return
        if known.dtype != operand.type.dtype or math.prod(known.shape) != math.prod(operand.type.shape):
            raise MisfitError(f"{where} reads {operand.name or 'a constant'} as {operand.type}, but that is {known}")

    def _source_type(self, operand: Operand, where: str) -> TensorType | None:
        if operand.constant is None:
            if operand.name not in self._types:
                raise MisfitError(f"{where} reads {operand.name!r}, which nothing before it gives")
            return self._types[operand.name]
        constants = self._model.constants
        if operand.constant >= len(constants):
            raise MisfitError(f"{where} reads constant {operand.constant}, but there are {len(constants)}")
        array = constants[operand.constant]
        return TensorType("string" if array.dtype == np.object_ else array.dtype.name, array.shape)

    def _check_native_step(self, step: NativeStep, where: str) -> None:
        for value in step.inputs:
            self._check_native_input(value, where)
        for value in step.outputs:
            self._define(value.name, value.type, f"an output of {where}")
        sizes = [_nbytes(value, where) for value in (*step.inputs, *step.outputs)]
        check_calls(self._model, step, sizes, where)

    def _check_native_input(self, value: Value, where: str) -> None:
        if value.name not in self._types:
            raise MisfitError(f"{where} reads {value.name!r}, which nothing before it gives")
        known = self._types[value.name]
        if known != value.type and not (known is None and value.name in self._computed):
            raise MisfitError(f"{where} reads {value.name} as {value.type}, but that is {known}")

    def _check_outputs(self) -> None:
        returned = {value.name for value in self._model.inputs}
        for output in self._model.outputs:
            operand = output.operand
            self._check_operand(operand, f"output {output.name}")
            if (operand.constant is not None or operand.name in returned) and not output.is_copied:
                raise MisfitError(f"output {output.name} must be a copy: its array is an input, constant or output too")
            returned.add(operand.name)


def _nbytes(value: Value, where: str) -> int:
    known = value.type
    if known is None or not known.is_compilable:
        raise MisfitError(f"{where} is native code, which cannot read or write {value.name} of type {known}")
    return math.prod(known.shape) * DTYPES[known.dtype].bytes
