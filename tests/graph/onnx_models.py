"""Small ONNX models for tests, and what they compute by the reference evaluator of ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.reference import ReferenceEvaluator

OPSET = 20

Shape = Sequence[int | str | None]


def tensor(name: str, shape: Shape | None, elem_type: int = TensorProto.FLOAT) -> ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, elem_type, shape)


def anything(name: str) -> ValueInfoProto:
    """An output of which nothing is said."""
    return onnx.helper.make_empty_tensor_value_info(name)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    return onnx.helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **attributes)


def graph(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[str | ValueInfoProto],
    constants: Mapping[str, Any] | None = None,
) -> GraphProto:
    return onnx.helper.make_graph(
        nodes,
        "test",
        inputs,
        [anything(output) if isinstance(output, str) else output for output in outputs],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[str | ValueInfoProto],
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = OPSET,
    **fields: Any,
) -> ModelProto:
    opsets = fields.pop("opset_imports", [onnx.helper.make_opsetid("", opset)])
    return onnx.helper.make_model(graph(nodes, inputs, outputs, constants), opset_imports=opsets, **fields)


def reference(proto: ModelProto, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What the whole model computes, without importing it."""
    evaluator = ReferenceEvaluator(proto)
    return dict(zip([output.name for output in proto.graph.output], evaluator.run(None, dict(inputs)), strict=True))


def random(shape: Sequence[int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(np.float32)
