"""onnxruntime's MatMulNBits, as its quantizers write it: with constant weights of few bits, which stay as they are.

One whose weights are computed is written in operators of ONNX, as others of onnxruntime's are (`graph/contrib`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from onnx.defs import OpSchema

from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.packed_weights import Array, PackedWeights
from tilewright.graph.protos import CONTRIB
from tilewright.graph.types import Constants, Types
from tilewright.operators import Node

_MATMUL_NBITS = "MatMulNBits"
_BITS = (2, 4, 8)
_INPUTS = ("A", "B", "scales", "zero_points", "g_idx", "bias")
_NUM_REQUIRED, _BIAS = 3, 5
_TYPES = [f"tensor({name})" for name in ("float", "float16", "bfloat16", "uint8", "int32")]


def quantized_schema(op: str, domain: str) -> OpSchema | None:
    """What onnxruntime says of MatMulNBits; None for any other operator."""
    return _SCHEMA if (op, domain) == (_MATMUL_NBITS, CONTRIB) else None


def is_quantized_product(node: Node, types: Types, constants: Constants) -> bool:
    """Whether a node is a product with constant weights of few bits, of data whose shape is known and not empty."""
    data = types.get(node.inputs[0]) if (node.op, node.domain) == (_MATMUL_NBITS, CONTRIB) else None
    return data is not None and 0 not in data.shape and all(not n or n in constants for n in node.inputs[1:_BIAS])


def _schema() -> OpSchema:
    def formal(name: str, is_required: bool = True) -> OpSchema.FormalParameter:
        option = OpSchema.FormalParameterOption
        return OpSchema.FormalParameter(name, "T", param_option=option.Single if is_required else option.Optional)

    integer = OpSchema.AttrType.INT
    return OpSchema(
        _MATMUL_NBITS,
        CONTRIB,
        1,
        inputs=[formal(name, n < _NUM_REQUIRED) for n, name in enumerate(_INPUTS)],
        outputs=[formal("Y")],
        type_constraints=[("T", _TYPES, "")],
        attributes=[
            *(OpSchema.Attribute(name, integer, "", required=True) for name in ("K", "N", "block_size")),
            *(OpSchema.Attribute(name, integer, "", required=False) for name in ("bits", "accuracy_level")),
        ],
    )


_SCHEMA = _schema()


@dataclass(frozen=True, slots=True)
class QuantizedProduct:
    """What a MatMulNBits computes: data, its columns in another order if need be, times weights, plus a bias."""

    data: str
    order: npt.NDArray[np.int64] | None
    weights: PackedWeights
    bias: str
    dtype: str
    is_packed: bool
    """Whether the weights are in blocks; those of any other groups have to become floats."""


def quantized_product(node: Node, types: Types, constants: Constants) -> QuantizedProduct:
    """What such a node computes; ModelError says where its operands do not fit."""
    data, _, _, zero_points, groups, bias = (*node.inputs, "", "", "")[: len(_INPUTS)]
    depth, columns, block = (cast(int, node.attributes[name]) for name in ("K", "N", "block_size"))
    bits = cast(int, node.attributes.get("bits", 4))
    if bits not in _BITS:
        raise UnsupportedOperatorError(
            f"node {node} (MatMulNBits) has weights of {bits} bits, but those of {', '.join(map(str, _BITS))} are "
            f"compiled; quantize the model with one of these"
        )
    if min(depth, columns) < 1 or block < 16 or block & (block - 1):
        raise _misfit(
            node, f"K and N are at least 1 and block_size is 16, 32, 64, ...; got {depth}, {columns}, {block}"
        )
    known = types[data]
    assert known is not None, "is_quantized_product"
    if not known.shape or known.shape[-1] != depth:
        raise _misfit(node, f"the last axis of A is K = {depth} long, got the shape {list(known.shape)}")
    num_blocks, num_bytes = -(-depth // block), block * bits // 8
    packed = _constant(node, constants, 1, np.uint8)
    if packed.size != columns * num_blocks * num_bytes:
        raise _misfit(node, f"B has {columns} x {num_blocks} x {num_bytes} bytes, got the shape {packed.shape}")
    values = _unpacked(packed.reshape(columns, -1), bits)[:, :depth].T
    scales = _of_blocks(node, _constant(node, constants, 2, None), columns, num_blocks)
    zeros = _zeros(node, constants, columns, num_blocks, bits) if zero_points else None
    weights = PackedWeights(np.ascontiguousarray(values), scales, zeros, bits, block)
    product = QuantizedProduct(data, None, weights, bias, known.dtype, is_packed=True)
    if not groups:
        return product
    of_rows = _constant(node, constants, 4, np.int32)[:depth]
    if of_rows.shape != (depth,) or of_rows.min() < 0 or of_rows.max() >= num_blocks:
        raise _misfit(node, f"g_idx has a block from 0 to {num_blocks - 1} for each of {depth} rows")
    return _grouped(product, of_rows.astype(np.int64))


def _grouped(product: QuantizedProduct, groups: npt.NDArray[np.int64]) -> QuantizedProduct:
    """Rows that name their blocks: sorted by these, unless blocks then do not begin where they should."""
    weights = product.weights
    blocks = np.arange(len(groups)) // weights.block_size
    order = np.argsort(groups, kind="stable")
    if np.array_equal(groups[order], blocks):
        values = np.ascontiguousarray(weights.values[order])
        is_sorted = np.array_equal(groups, blocks)
        return replace(product, order=None if is_sorted else order, weights=replace(weights, values=values))
    zeros = None if weights.zeros is None else weights.zeros[groups]
    by_row = replace(weights, scales=weights.scales[groups], zeros=zeros, block_size=1)
    return replace(product, weights=by_row, is_packed=False)


def _zeros(node: Node, constants: Constants, columns: int, num_blocks: int, bits: int) -> Array:
    """One zero point for each block and column: packed as the weights are, or floats."""
    zeros = _constant(node, constants, 3, None)
    if zeros.dtype != np.uint8:
        return _of_blocks(node, zeros.astype(np.float32), columns, num_blocks)
    num_bytes = -(-num_blocks * bits // 8)
    if zeros.size != columns * num_bytes:
        raise _misfit(node, f"zero_points has {columns} x {num_bytes} bytes, got the shape {zeros.shape}")
    return np.ascontiguousarray(_unpacked(zeros.reshape(columns, -1), bits)[:, :num_blocks].T)


def _of_blocks(node: Node, values: Array, columns: int, num_blocks: int) -> Array:
    if values.dtype.kind not in "fV" or values.size != columns * num_blocks:
        raise _misfit(
            node, f"there are floats for {columns} x {num_blocks} blocks, got {values.dtype}{list(values.shape)}"
        )
    return np.ascontiguousarray(values.reshape(columns, num_blocks).T)


def _unpacked(packed: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """The parts of each byte along the last axis, the lowest first.

    >>> _unpacked(np.array([[0x21, 0x43]], np.uint8), 4)
    array([[1, 2, 3, 4]], dtype=uint8)
    """
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = packed[..., None] >> shifts & np.uint8((1 << bits) - 1)
    return parts.reshape(*packed.shape[:-1], -1)


def _constant(
    node: Node, constants: Mapping[str, Array], position: int, dtype: type[np.generic] | None
) -> npt.NDArray[Any]:
    value = constants[node.inputs[position]]
    if dtype is not None and value.dtype != dtype:
        raise _misfit(node, f"{_INPUTS[position]} is {np.dtype(dtype).name}, got {value.dtype}")
    return value


def _misfit(node: Node, rule: str) -> ModelError:
    return ModelError(f"node {node} (MatMulNBits) does not fit its operands: {rule}; quantize the model again")
