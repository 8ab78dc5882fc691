"""Weights of few bits in blocks that have a scale each."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tilewright.graph.contrib.call import Call, Expansion

_ELEMENTS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
_POSITIVE_FP4 = (0.0, 0.00520833333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
_FLOATS_OF_FOUR_BITS = ((*_POSITIVE_FP4, *(-value for value in _POSITIVE_FP4)), _NF4)
"""By the number that MatMulBnb4 has for a type of floats."""


def _matmul_n_bits(call: Call) -> list[str]:
    """A product with the transpose of weights that lie in bytes, the first in the lowest bits.

    `B` is [columns, blocks, bytes of a block]; blocks may reach beyond the rows that there are.
    """
    num_rows, num_columns = call.attribute("K"), call.attribute("N")
    bits, block = call.attribute("bits", 4), call.attribute("block_size")
    num_blocks = -(-num_rows // block)
    dtype = call.dtype(0)
    if bits not in (2, 4, 8) or call.input(4):
        raise call.unsupported("only 2, 4 or 8 bits, without an order of rows, are known here")
    shape = call.ints(num_columns, num_blocks, 1)
    if not call.input(3):
        zeros = call.constant(2 ** (bits - 1), dtype)
    elif call.dtype(3) != "uint8":
        zeros = call.add("Reshape", call.input(3), shape)
    else:
        parts = _parts(call, call.add("Reshape", call.input(3), call.ints(num_columns, 1, -1)), bits, dtype)
        zeros = call.add("Slice", parts, call.ints(0), call.ints(num_blocks), call.ints(2))
        zeros = call.add("Reshape", zeros, shape)
    packed = call.add("Reshape", call.required(1), call.ints(num_columns, num_blocks, -1))
    whole = call.add("Sub", _parts(call, packed, bits, dtype), zeros)
    real = call.add("Mul", whole, call.add("Reshape", call.required(2), shape))
    rows = call.add("Reshape", real, call.ints(num_columns, num_blocks * block))
    weights = call.add("Slice", rows, call.ints(0), call.ints(num_rows), call.ints(1))
    product = call.add("MatMul", call.required(0), call.add("Transpose", weights, perm=[1, 0]))
    return [call.plus(product, call.input(5))]


def _parts(call: Call, packed: str, bits: int, dtype: str) -> str:
    """The numbers in bytes of [a, b, bytes], as floats: [a, b, numbers]."""
    element = TensorProto.FLOAT16 if dtype == "float16" else TensorProto.FLOAT
    if bits == 8:
        return call.add("Cast", packed, to=element)
    mask = call.constant(2**bits - 1, "uint8")
    places = [call.constant(shift, "uint8") for shift in range(0, 8, bits)]
    shifted = [call.add("BitShift", packed, place, direction="RIGHT") for place in places]
    columns = [call.add("Unsqueeze", call.add("BitwiseAnd", part, mask), call.ints(3)) for part in shifted]
    together = call.add("Reshape", call.add("Concat", *columns, axis=3), call.ints(0, 0, -1))
    return call.add("Cast", together, to=element)


def _matmul_bnb4(call: Call) -> list[str]:
    """A product with weights of which every four bits stand for a float, the first in the highest bits.

    `B` has the rows of the transposed weights one after the other, in blocks that have a factor each.
    """
    num_rows, num_columns, block = call.attribute("K"), call.attribute("N"), call.attribute("block_size")
    if not call.attribute("transB", 1):
        raise call.unsupported("weights that are not transposed are not known here")
    size, num_blocks = num_rows * num_columns, -(-num_rows * num_columns // block)
    bytes_ = call.add("Reshape", call.required(1), call.ints(-1, 1))
    halves = [
        call.add("BitShift", bytes_, call.constant(4, "uint8"), direction="RIGHT"),
        call.add("BitwiseAnd", bytes_, call.constant(15, "uint8")),
    ]
    codes = call.add(
        "Cast", call.add("Reshape", call.add("Concat", *halves, axis=1), call.ints(-1)), to=TensorProto.INT32
    )
    table = call.constant(_FLOATS_OF_FOUR_BITS[call.attribute("quant_type")], call.dtype(0))
    real = call.add("Slice", call.add("Gather", table, codes), call.ints(0), call.ints(size))
    factors = call.add("Expand", call.add("Reshape", call.required(2), call.ints(-1, 1)), call.ints(num_blocks, block))
    factors = call.add("Slice", call.add("Reshape", factors, call.ints(-1)), call.ints(0), call.ints(size))
    weights = call.add("Reshape", call.add("Mul", real, factors), call.ints(num_columns, num_rows))
    return [call.add("MatMul", call.required(0), call.add("Transpose", weights, perm=[1, 0]))]


def _gather_block_quantized(call: Call) -> list[str]:
    """Slices of weights in blocks along an axis, as floats; only what is taken is turned into floats."""
    rank, dtype = len(call.shape(0)), call.dtype(2)
    gather_axis, axis = call.attribute("gather_axis", 0) % rank, call.attribute("quantize_axis", 1) % rank
    block, bits = call.attribute("block_size", 128), call.attribute("bits", 4)
    if gather_axis == axis or bits not in (2, 4, 8):
        raise call.unsupported("slices through blocks, and other than 2, 4 or 8 bits, are not known here")
    is_packed = call.dtype(0) == "uint8"

    def taken(position: int) -> str:
        value = call.required(position)
        if call.dtype(position) in ("int4", "uint4"):
            value = call.add("Cast", value, to=TensorProto.INT8)
        return call.add("Gather", value, call.required(1), axis=gather_axis)

    def unpacked(position: int, length: int) -> str:
        value = taken(position)
        if is_packed and bits < 8:
            value = _parts_of_rows(call, value, bits)
            value = call.add("Slice", value, call.ints(0), call.ints(length), call.ints(-1))
        return call.add("Cast", value, to=_ELEMENTS[dtype])

    size = call.shape(0)[axis] * (8 // bits if is_packed and axis == rank - 1 else 1)
    blocks = call.constant(np.arange(size) // block, "int64")
    shifted = axis + (len(call.shape(1)) - 1 if axis > gather_axis else 0)
    whole = unpacked(0, call.shape(0)[-1] * (8 // bits if is_packed else 1))
    if call.input(3):
        zeros = call.add("Gather", unpacked(3, call.shape(2)[-1]), blocks, axis=shifted)
        whole = call.add("Sub", whole, zeros)
    elif is_packed:
        whole = call.add("Sub", whole, call.constant(2 ** (bits - 1), dtype))
    return [call.add("Mul", whole, call.add("Gather", taken(2), blocks, axis=shifted))]


def _parts_of_rows(call: Call, packed: str, bits: int) -> str:
    """The numbers in bytes along the last axis, as bytes."""
    mask = call.constant(2**bits - 1, "uint8")
    shifts = call.constant(range(0, 8, bits), "uint8")
    shifted = call.add("BitShift", call.add("Unsqueeze", packed, call.ints(-1)), shifts, direction="RIGHT")
    parts = call.add("BitwiseAnd", shifted, mask)
    shape = call.add("Concat", call.add("Shape", packed, end=-1), call.ints(-1), axis=0)
    return call.add("Reshape", parts, shape)


EXPANSIONS: dict[str, Expansion] = {
    "GatherBlockQuantized": _gather_block_quantized,
    "MatMulBnb4": _matmul_bnb4,
    "MatMulNBits": _matmul_n_bits,
}
