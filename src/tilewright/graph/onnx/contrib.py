"""Operators of onnxruntime's own domain that models hold which its quantizers have made: MatMulNBits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from onnx.defs import OpSchema

from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.packed_weights import Array, PackedWeights
from tilewright.graph.types import Constants, Types
from tilewright.operators import Node

MICROSOFT = "com.microsoft"
_BITS = (2, 4, 8)
_INPUTS = ("A", "B", "scales", "zero_points", "g_idx", "bias")
_NUM_REQUIRED = 3
_TYPES = [f"tensor({name})" for name in ("float", "float16", "bfloat16", "uint8", "int32")]


def contrib_schema(op: str, domain: str) -> OpSchema | None:
    """What onnxruntime says of an operator of its domain that is imported; ONNX knows none of them."""
    return _MATMUL_NBITS if (op, domain) == ("MatMulNBits", MICROSOFT) else None


def _schema() -> OpSchema:
    def formal(name: str, is_required: bool = True) -> OpSchema.FormalParameter:
        option = OpSchema.FormalParameterOption
        return OpSchema.FormalParameter(name, "T", param_option=option.Single if is_required else option.Optional)

    integer = OpSchema.AttrType.INT
    return OpSchema(
        "MatMulNBits",
        MICROSOFT,
        1,
        inputs=[formal(name, n < _NUM_REQUIRED) for n, name in enumerate(_INPUTS)],
        outputs=[formal("Y")],
        type_constraints=[("T", _TYPES, "")],
        attributes=[
            *(OpSchema.Attribute(name, integer, "", required=True) for name in ("K", "N", "block_size")),
            *(OpSchema.Attribute(name, integer, "", required=False) for name in ("bits", "accuracy_level")),
        ],
    )


_MATMUL_NBITS = _schema()


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
    """A MatMulNBits whose weights are constants of the model."""
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
    known = types.get(data)
    if known is None or 0 in known.shape:
        raise UnsupportedOperatorError(
            f"node {node} (MatMulNBits) is compiled for data of a known shape that are not empty; got "
            f"{'an open one' if known is None else list(known.shape)}: give the shapes of the model's inputs"
        )
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
    value = constants.get(node.inputs[position])
    if value is None:
        raise UnsupportedOperatorError(
            f"node {node} (MatMulNBits) computes its {_INPUTS[position]} while it runs, but packed weights and what "
            f"belongs to them are constants; make {node.inputs[position]} an initializer of the model"
        )
    if dtype is not None and value.dtype != dtype:
        raise _misfit(node, f"{_INPUTS[position]} is {np.dtype(dtype).name}, got {value.dtype}")
    return value


def _misfit(node: Node, rule: str) -> ModelError:
    return ModelError(f"node {node} (MatMulNBits) does not fit its operands: {rule}; quantize the model again")
