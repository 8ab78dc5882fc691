"""Computes ahead of time what does not depend on the inputs of the network."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from onnx import SparseTensorProto

from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.evaluation.fallback import FallbackOperator, empty_outputs
from tilewright.graph.protos import array_type, has_subgraphs, schema_of
from tilewright.graph.tensor_protos import dense_array
from tilewright.graph.types import Constants, Types
from tilewright.operators import ONNX, Node, TensorType, is_random

# What is larger than its inputs and than this is computed when the network runs: a file should not carry it.
LARGEST_EXPANSION_BYTES = 64 * 2**20


def fold(
    node: Node, types: Types, constants: Constants, output_types: tuple[TensorType | None, ...]
) -> tuple[npt.NDArray[np.generic] | None, ...] | None:
    """The outputs of a node that are known ahead, one for each of the node's; None where the node has to run."""
    if node.op in ("Shape", "Size") and node.domain == ONNX and (known := types.get(node.inputs[0])) is not None:
        return (_shape(node, known.shape) if node.op == "Shape" else np.array(math.prod(known.shape), np.int64),)
    if node.op == "Constant" and node.domain == ONNX:
        return (_constant(node),)
    empty = empty_outputs(node, output_types)
    if empty is not None:
        return tuple(empty)
    if not all(name in constants for name in node.inputs if name) or is_random(node) or has_subgraphs(node):
        return None
    if schema_of(node) is None or _is_expansion(node, constants, output_types):
        return None
    try:
        outputs = FallbackOperator(node, output_types)([constants.get(name) for name in node.inputs])
    except (ModelError, UnsupportedOperatorError):
        return None
    if not all(isinstance(output, np.ndarray) for name, output in zip(node.outputs, outputs, strict=True) if name):
        return None
    return tuple(None if output is None else _owned(output) for output in outputs)


def _constant(node: Node) -> npt.NDArray[np.generic]:
    if len(node.attributes) != 1:
        raise ModelError(f"node {node} (Constant) has {len(node.attributes)} values; give it one attribute")
    (name, value) = next(iter(node.attributes.items()))
    match name, value:
        case "sparse_value", SparseTensorProto():
            return dense_array(value)
        case "value", np.ndarray():
            return value
        case "value_float" | "value_floats", _:
            return np.array(value, np.float32)
        case "value_int" | "value_ints", _:
            return np.array(value, np.int64)
        case _:
            return np.array(value, object)


def _shape(node: Node, shape: tuple[int, ...]) -> npt.NDArray[np.generic]:
    start, end = node.attributes.get("start", 0), node.attributes.get("end", len(shape))
    assert isinstance(start, int)
    assert isinstance(end, int)
    # Both are clamped, and count from the end where negative: as Python's slices do.
    return np.array(shape[start:end], np.int64)


def _is_expansion(node: Node, constants: Constants, output_types: tuple[TensorType | None, ...]) -> bool:
    result = sum(_num_bytes(type_) for type_ in output_types if type_ is not None)
    given = sum(_num_bytes(array_type(constants[name])) for name in node.inputs if name)
    return result > LARGEST_EXPANSION_BYTES and result > given


def _num_bytes(type_: TensorType) -> int:
    itemsize = 8 if type_.dtype == "string" else np.dtype(type_.dtype).itemsize
    return math.prod(type_.shape) * itemsize


def _owned(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """In C order; `np.ascontiguousarray` would give a scalar an axis."""
    return np.asarray(array, order="C")
