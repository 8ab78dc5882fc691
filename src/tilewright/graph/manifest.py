"""A compiled model as JSON, without its bytes: object code and arrays are given back when it is read."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy.typing as npt

from tilewright.graph.compiled import (
    CompiledModel,
    FallbackCall,
    KernelCall,
    KernelCode,
    ModelStep,
    NativeSegment,
    Operand,
    Output,
    Place,
    Slot,
    Value,
)
from tilewright.graph.graph import Node, TensorType

Json: TypeAlias = dict[str, Any]


def model_to_json(model: CompiledModel) -> Json:
    """Everything but object code, weights and constants."""
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
            {"name": kernel.name, "symbol": kernel.symbol, "scratch_bytes": kernel.scratch_bytes}
            for kernel in model.kernels
        ],
        "steps": [_step_to_json(step) for step in model.steps],
    }


def model_from_json(
    data: Json,
    object_codes: Sequence[bytes],
    weights: Iterable[npt.NDArray[Any]],
    constants: Iterable[npt.NDArray[Any]],
) -> CompiledModel:
    """The model that `model_to_json` has written, with its bytes."""
    return CompiledModel(
        name=data["name"],
        target=data["target"],
        features=tuple(data["features"]),
        threads=data["threads"],
        inputs=_values_from_json(data["inputs"]),
        outputs=tuple(
            Output(output["name"], _operand_from_json(output["operand"]), output["is_copied"])
            for output in data["outputs"]
        ),
        kernels=tuple(
            KernelCode(kernel["name"], kernel["symbol"], kernel["scratch_bytes"], object_code)
            for kernel, object_code in zip(data["kernels"], object_codes, strict=True)
        ),
        steps=tuple(_step_from_json(step) for step in data["steps"]),
        weights=tuple(weights),
        constants=tuple(constants),
    )


def _step_to_json(step: ModelStep) -> Json:
    if isinstance(step, FallbackCall):
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


def _step_from_json(data: Json) -> ModelStep:
    if data["kind"] == "fallback":
        operands = tuple(None if operand is None else _operand_from_json(operand) for operand in data["operands"])
        output_types = tuple(_type_from_json(known) for known in data["output_types"])
        return FallbackCall(_node_from_json(data["node"]), operands, output_types)
    return NativeSegment(
        inputs=_values_from_json(data["inputs"]),
        outputs=_values_from_json(data["outputs"]),
        calls=tuple(
            KernelCall(
                call["kernel"],
                tuple(Slot(Place[place.upper()], position) for place, position in call["slots"]),
                call["workspace_offset"],
            )
            for call in data["calls"]
        ),
        arena_bytes=data["arena_bytes"],
    )


def _node_to_json(node: Node) -> Json:
    """The node as a message of ONNX. What its subgraphs capture is found again when it is read."""
    from tilewright.graph.onnx_protos import node_to_proto

    message = base64.b64encode(node_to_proto(node).SerializeToString()).decode()
    return {"op": node.op, "opset": node.opset, "onnx": message}


def _node_from_json(data: Json) -> Node:
    from onnx import NodeProto

    from tilewright.graph.onnx_protos import node_from_proto

    return node_from_proto(NodeProto.FromString(base64.b64decode(data["onnx"])), data["opset"])


def _operand_to_json(operand: Operand) -> Json:
    return {"name": operand.name, "constant": operand.constant, "type": _type_to_json(operand.type)}


def _operand_from_json(data: Json) -> Operand:
    return Operand(data["name"], data["constant"], _type_from_json(data["type"]))


def _values_to_json(values: Iterable[Value]) -> list[Json]:
    return [{"name": value.name, "type": _type_to_json(value.type)} for value in values]


def _values_from_json(data: Iterable[Json]) -> tuple[Value, ...]:
    return tuple(Value(value["name"], _type_from_json(value["type"])) for value in data)


def _type_to_json(known: TensorType | None) -> Json | None:
    return None if known is None else {"dtype": known.dtype, "shape": list(known.shape)}


def _type_from_json(data: Json | None) -> TensorType | None:
    return None if data is None else TensorType(data["dtype"], tuple(data["shape"]))
