"""What a graph computes, node by node on the reference evaluator of ONNX: to compare graphs before and after a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright import te
from tilewright.graph.evaluation.fallback import FallbackOperator
from tilewright.graph.graph import Graph
from tilewright.operators import ONNX, OWN, Call, Node, TensorType, express

_BY_EXPRESSION = frozenset(("Words", "ConvWords", "ConvBytes", "MatMulWords", "MatMulPacked", "SoftmaxMatMul"))


def evaluate(graph: Graph, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of the network by name."""
    values = evaluate_all(graph, inputs)
    return {name: values[name] for name in graph.outputs}


def evaluate_all(graph: Graph, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Every value of the network by name."""
    values: dict[str, Any] = {**graph.constants, **inputs}
    for node in graph.nodes:
        operands = [values[name] if name else None for name in node.inputs]
        outputs = _run(node, operands, [graph.types.get(name) for name in node.outputs])
        values.update((name, value) for name, value in zip(node.outputs, outputs, strict=True) if name)
    return values


def _run(node: Node, operands: Sequence[Any], types: Sequence[TensorType | None]) -> list[Any]:
    if node.domain != OWN:
        return FallbackOperator(node, types)(operands)
    if node.op in _BY_EXPRESSION:
        return [_by_expression(node, operands)]
    # A channels-last operator is the one of ONNX between two changes of layout.
    first = [_channels_first(node.op, position, value) for position, value in enumerate(operands)]
    output = FallbackOperator(replace(node, domain=ONNX), types)(first)[0]
    return [np.moveaxis(output, 1, -1)]


def _by_expression(node: Node, operands: Sequence[Any]) -> Any:
    """What NumPy computes for the tensor expression of a node."""
    tensors = [te.placeholder(x.shape, x.dtype.name, f"x{n}") for n, x in enumerate(operands)]
    (output,) = express(Call(node, tensors, [None] * len(tensors)))
    return te.evaluate(te.Task(tensors, output), *operands)[0]


def _channels_first(op: str, position: int, value: Any) -> Any:
    if value is None:
        return None
    if position == 0:
        return np.moveaxis(value, -1, 1)
    if op == "Conv" and position == 1:
        return np.moveaxis(value, (-1, -2), (0, 1))
    if op == "ConvTranspose" and position == 1:
        return np.moveaxis(value, (-2, -1), (0, 1))
    if op == "Resize":
        return np.concatenate([value[:1], value[-1:], value[1:-1]])
    return value
