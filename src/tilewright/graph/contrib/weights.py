"""Weights of few bits in blocks that have a scale each."""

from __future__ import annotations

from onnx import TensorProto

from tilewright.graph.contrib.call import Call, Expansion


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


EXPANSIONS: dict[str, Expansion] = {"MatMulNBits": _matmul_n_bits}
