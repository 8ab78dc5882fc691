"""A compiled model as JSON, without its bytes: kernels and arrays are given back when it is read.

What is read may have been written by anybody: each field is read as what it has to be. Whether they fit together is
looked at in `model_checks`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy.typing as npt

from tilewright.deploy.compiled import (
    CompiledModel,
    FallbackStep,
    KernelCall,
    KernelCode,
    KernelMemory,
    ModelStep,
    NativeStep,
    Operand,
    Output,
    Place,
    Slot,
    Value,
)
from tilewright.deploy.json_field import Field, parse
from tilewright.errors import ArtifactError, ModelError
from tilewright.operators import Node, TensorType
from tilewright.target import MAX_THREADS

Json: TypeAlias = dict[str, Any]

STRING = "string"
DTYPES = frozenset(
    [STRING, "bool", "bfloat16", "complex64", "complex128"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)]
    + ["float16", "float32", "float64", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e8m0fnu"]
    + ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
)
"""The element types of ONNX, as NumPy and ml_dtypes call them."""

# Arrays have no more dimensions, and no address space holds more elements.
_MAX_DIMENSIONS = 64
_MAX_ELEMENTS = 2**48
_MAX_OPSET = 2**31 - 1
_PLACES = {place.name.lower(): place for place in Place}


def model_to_json(model: CompiledModel) -> Json:
    """Everything but kernels, weights and constants."""
    return {
        "name": model.name,
        "target": model.target,
        "features": list(model.features),
        "threads": model.threads,
        "inputs": _values_to_json(model.inputs),
        "outputs": [
            {"name": output.name, "operand": _operand_to_json(output.operand), "is_copied": output.is_copied}
            for output in model.outputs
        ],
        "kernels": [
            {"name": kernel.name, "flop": kernel.flop, "algorithms": list(kernel.algorithms)}
            for kernel in model.kernels
        ],
        "steps": [_step_to_json(step) for step in model.steps],
    }


def model_from_json(
    data: Field,
    kernels: Iterable[KernelCode],
    weights: Iterable[npt.NDArray[Any]],
    constants: Iterable[npt.NDArray[Any]],
) -> CompiledModel:
    """The model that `model_to_json` has written, with its bytes."""
    return CompiledModel(
        name=data["name"].text(),
        target=data["target"].text(),
        features=tuple(feature.text() for feature in data["features"].items()),
        threads=data["threads"].integer(at_least=1, at_most=MAX_THREADS),
        inputs=_values_from_json(data["inputs"]),
        outputs=tuple(
            Output(output["name"].text(), _operand_from_json(output["operand"]), output["is_copied"].flag())
            for output in data["outputs"].items()
        ),
        kernels=tuple(kernels),
        steps=tuple(_step_from_json(step) for step in data["steps"].items()),
        weights=tuple(weights),
        constants=tuple(constants),
    )


def kernel_to_bytes(kernel: KernelCode) -> bytes:
    """The object code behind a line that says what memory it touches.

    Only who has compiled the code knows that: the line is as good as the code behind it, and is kept with it.
    """
    memory = kernel.memory
    if memory is None:
        raise ArtifactError(
            f"kernel {kernel.name} comes from a file of format 1, which does not say what memory it touches; compile "
            "the model again to write it"
        )
    line = {
        "symbol": kernel.symbol,
        "scratch_bytes": kernel.scratch_bytes,
        "workspace_bytes": memory.workspace,
        "input_bytes": memory.inputs,
        "output_bytes": memory.outputs,
    }
    return json.dumps(line).encode() + b"\n" + kernel.object_code


def kernel_from_bytes(data: Field, content: bytes) -> KernelCode:
    """The kernel that `kernel_to_bytes` has written; `data` is what the manifest says of it."""
    line, _, object_code = content.partition(b"\n")
    known = parse(line, f"{data}, its first line")
    memory = KernelMemory(
        _sizes(known["input_bytes"]), _sizes(known["output_bytes"]), known["workspace_bytes"].integer()
    )
    flop = data["flop"].optional()
    return KernelCode(
        data["name"].text(),
        known["symbol"].text(),
        known["scratch_bytes"].integer(),
        object_code,
        memory,
        None if flop is None else flop.number(),
        tuple(name.text() for name in data.get("algorithms", []).items()),
    )


def kernel_of_format_1(data: Field, object_code: bytes) -> KernelCode:
    """A kernel of which the manifest says what little is known."""
    return KernelCode(data["name"].text(), data["symbol"].text(), data["scratch_bytes"].integer(), object_code)


def _sizes(data: Field) -> tuple[int, ...]:
    return tuple(size.integer() for size in data.items())


def _step_to_json(step: ModelStep) -> Json:
    if isinstance(step, FallbackStep):
        operands = [None if operand is None else _operand_to_json(operand) for operand in step.operands]
        return {
            "kind": "fallback",
            "node": _node_to_json(step.node),
            "operands": operands,
            "output_types": [_type_to_json(known) for known in step.output_types],
        }
    return {
        "kind": "native",
        "inputs": _values_to_json(step.inputs),
        "outputs": _values_to_json(step.outputs),
        "arena_bytes": step.arena_bytes,
        "calls": [
            {
                "kernel": call.kernel,
                "workspace_offset": call.workspace_offset,
                "slots": [[slot.place.name.lower(), slot.position] for slot in call.slots],
            }
            for call in step.calls
        ],
    }


def _step_from_json(data: Field) -> ModelStep:
    if data["kind"].one_of(["fallback", "native"]) == "fallback":
        operands = tuple(
            None if operand.optional() is None else _operand_from_json(operand) for operand in data["operands"].items()
        )
        output_types = tuple(_type_from_json(known) for known in data["output_types"].items())
        return FallbackStep(_node_from_json(data["node"]), operands, output_types)
    return NativeStep(
        inputs=_values_from_json(data["inputs"]),
        outputs=_values_from_json(data["outputs"]),
        calls=tuple(
            KernelCall(
                call["kernel"].integer(),
                tuple(_slot_from_json(slot) for slot in call["slots"].items()),
                call["workspace_offset"].integer(),
            )
            for call in data["calls"].items()
        ),
        arena_bytes=data["arena_bytes"].integer(),
    )


def _slot_from_json(data: Field) -> Slot:
    place, position = data.pair()
    return Slot(_PLACES[place.one_of(_PLACES)], position.integer())


def _node_to_json(node: Node) -> Json:
    """The node as a message of ONNX. What its subgraphs capture is found again when it is read."""
    from tilewright.graph.protos import node_to_proto

    message = base64.b64encode(node_to_proto(node).SerializeToString()).decode()
    return {"op": node.op, "opset": node.opset, "onnx": message}


def _node_from_json(data: Field) -> Node:
    from google.protobuf.message import DecodeError
    from onnx import GraphProto, NodeProto
    from onnx.external_data_helper import uses_external_data

    from tilewright.graph.protos import has_only_texts, node_from_proto, tensors

    opset = data["opset"].integer(at_most=_MAX_OPSET)
    message = data["onnx"]
    try:
        proto = NodeProto.FromString(base64.b64decode(message.text(), validate=True))
        alone = GraphProto(node=[proto])
        if not has_only_texts(alone) or any(map(uses_external_data, tensors(alone))):
            raise message.refused("a node of ONNX with names that are text and without a file beside it")
        return node_from_proto(proto, opset)
    except (ValueError, DecodeError, ModelError) as error:
        raise ArtifactError(f"{message} must be a node of ONNX: {error}; compile the model again") from error


def _operand_to_json(operand: Operand) -> Json:
    return {"name": operand.name, "constant": operand.constant, "type": _type_to_json(operand.type)}


def _operand_from_json(data: Field) -> Operand:
    constant = data["constant"].optional()
    return Operand(data["name"].text(), None if constant is None else constant.integer(), _type_from_json(data["type"]))


def _values_to_json(values: Iterable[Value]) -> list[Json]:
    return [{"name": value.name, "type": _type_to_json(value.type)} for value in values]


def _values_from_json(data: Field) -> tuple[Value, ...]:
    return tuple(Value(value["name"].text(), _type_from_json(value["type"])) for value in data.items())


def _type_to_json(known: TensorType | None) -> Json | None:
    return None if known is None else {"dtype": known.dtype, "shape": list(known.shape)}


def _type_from_json(data: Field) -> TensorType | None:
    return None if data.optional() is None else tensor_type(data)


def tensor_type(data: Field) -> TensorType:
    """The element type and the shape of a value."""
    shape = data["shape"]
    sizes = tuple(size.integer() for size in shape.items())
    if len(sizes) > _MAX_DIMENSIONS or math.prod(max(size, 1) for size in sizes) > _MAX_ELEMENTS:
        raise shape.refused(f"at most {_MAX_DIMENSIONS} sizes, for at most 2^48 elements")
    return TensorType(data["dtype"].one_of(DTYPES), sizes)
