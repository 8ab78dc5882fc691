"""Attention of several heads in one operator, and the rotation of places before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from tilewright.graph.contrib.call import Call, Expansion

_FILTER = -10000.0


@dataclass(slots=True)
class _Heads:
    """Queries, keys and values with their heads apart: [batch, heads, length, size of a head]."""

    query: str
    key: str
    value: str
    batch: int
    length: int
    num_keys: int
    num_heads: int
    head_size: int


def _attention(call: Call) -> list[str]:
    """Projects its input to queries, keys and values, whose weights stand side by side."""
    projected = call.plus(call.add("MatMul", call.required(0), call.required(1)), call.input(2))
    return _attend_to_itself(call, projected, call.dtype(0), mask=3, past=4, bias=5)


def _quantized_attention(call: Call) -> list[str]:
    """The same with an input and weights of bytes; what they sum up to are floats again."""
    sums = call.add("MatMulInteger", call.required(0), call.required(1), call.input(6), call.input(7))
    scale = call.add("Mul", call.required(3), call.required(4))
    real = call.add("Mul", call.add("Cast", sums, to=TensorProto.FLOAT), scale)
    return _attend_to_itself(call, call.plus(real, call.input(2)), "float32", mask=5, past=8)


def _attend_to_itself(
    call: Call, projected: str, dtype: str, mask: int, past: int, bias: int | None = None
) -> list[str]:
    """Attention of projected queries, keys and values, side by side. `mask`, `past` and `bias` are positions."""
    batch, length, _ = call.shape(0)
    num_heads = call.attribute("num_heads")
    if call.attribute("do_rotary", 0):
        raise call.unsupported("rotation is not known here")
    width = call.shape(1)[1]
    sizes = list(call.attribute("qkv_hidden_sizes", (width // 3,) * 3))
    parts = call.add_many("Split", 3, projected, call.ints(*sizes), axis=-1)
    query, key, value = (split_heads(call, part, num_heads) for part in parts)
    num_keys, present = length, ""
    if call.input(past):
        before = call.add_many("Split", 2, call.input(past), axis=0, num_outputs=2)
        key, value = (
            call.add("Concat", call.add("Squeeze", old, call.ints(0)), new, axis=2)
            for old, new in zip(before, (key, value), strict=True)
        )
        num_keys += call.shape(past)[3]
    if call.is_wanted(1):
        present = call.add("Concat", *[call.add("Unsqueeze", x, call.ints(0)) for x in (key, value)], axis=0)
    heads = _Heads(query, key, value, batch, length, num_keys, num_heads, sizes[0] // num_heads)
    return [_attend(call, heads, dtype, mask, bias), present]


def _multi_head_attention(call: Call) -> list[str]:
    """Of queries, keys and values that are projected already; past keys and values come before the new ones."""
    num_heads = call.attribute("num_heads")
    if len(call.shape(0)) != 3 or any(call.input(i) and len(call.shape(i)) == 5 for i in (1, 2)) or not call.input(1):
        raise call.unsupported("queries, keys and values in one operand are not known here")
    batch, length, width = call.shape(0)
    biases = _biases(call, width)
    query = split_heads(call, call.plus(call.required(0), biases[0]), num_heads)
    key = _keys(call, 1, biases[1], num_heads)
    value = _keys(call, 2, biases[2], num_heads)
    num_keys = call.shape(1)[-2]
    if call.input(6):
        key = call.add("Concat", call.input(6), key, axis=2)
        value = call.add("Concat", call.required(7), value, axis=2)
        num_keys += call.shape(6)[2]
    heads = _Heads(query, key, value, batch, length, num_keys, num_heads, width // num_heads)
    return [_attend(call, heads, call.dtype(0), mask=4, bias=5), key, value]


def _biases(call: Call, width: int) -> list[str]:
    if not call.input(3):
        return ["", "", ""]
    return call.add_many("Split", 3, call.input(3), call.ints(width, width, call.shape(3)[0] - 2 * width), axis=0)


def _keys(call: Call, position: int, bias: str, num_heads: int) -> str:
    """Keys or values; those of four axes have their heads apart already."""
    if len(call.shape(position)) == 4:
        return call.required(position)
    return split_heads(call, call.plus(call.required(position), bias), num_heads)


def split_heads(call: Call, value: str, num_heads: int) -> str:
    """A value of [batch, length, heads * size] as [batch, heads, length, size]."""
    apart = call.add("Reshape", value, call.ints(0, 0, num_heads, -1))
    return call.add("Transpose", apart, perm=[0, 2, 1, 3])


def lowest(dtype: str) -> float:
    """A score of what is not seen at all."""
    return -65504.0 if dtype == "float16" else -3.4e38


def _attend(call: Call, heads: _Heads, dtype: str, mask: int, bias: int | None) -> str:
    """What each query takes of the values, heads side by side again. `mask` and `bias` are positions of operands."""
    scale = call.attribute("scale", 0.0) or heads.head_size**-0.5
    keys = call.add("Transpose", heads.key, perm=[0, 1, 3, 2])
    scores = call.scaled(call.add("MatMul", heads.query, keys), scale, dtype)
    scores = call.plus(scores, "" if bias is None else call.input(bias))
    hidden = call.attribute("mask_filter_value", _FILTER)
    if call.input(mask):
        scores = call.add("Add", scores, _hidden(call, heads, mask, hidden, dtype))
    if call.attribute("unidirectional", 0):
        first = heads.num_keys - heads.length
        later = np.arange(heads.num_keys) > first + np.arange(heads.length)[:, None]
        hides = call.constant(lowest(dtype), dtype)
        scores = call.add("Where", call.constant(later, "bool"), hides, scores)
    taken = call.add("MatMul", call.add("Softmax", scores, axis=-1), heads.value)
    together = call.add("Transpose", taken, perm=[0, 2, 1, 3])
    return call.add("Reshape", together, call.ints(0, 0, -1))


def _hidden(call: Call, heads: _Heads, position: int, amount: float, dtype: str) -> str:
    """What is added to scores: 0 for keys that are seen, and `amount` for others.

    A mask says of each key whether it is seen, for all queries or for each; or how many are, and from where on.
    """
    shape, mask = call.shape(position), call.required(position)
    places = call.constant(np.arange(heads.num_keys), "int32")
    zero = call.constant(0, call.dtype(position))
    match shape:
        case (size,) if size in (heads.batch, 2 * heads.batch):
            ends = call.add("Slice", mask, call.ints(0), call.ints(heads.batch))
            seen = call.add("Less", places, call.add("Reshape", ends, call.ints(-1, 1)))
            if size == 2 * heads.batch and size != heads.batch:
                starts = call.add("Slice", mask, call.ints(heads.batch), call.ints(size))
                after = call.add("GreaterOrEqual", places, call.add("Reshape", starts, call.ints(-1, 1)))
                seen = call.add("And", seen, after)
            seen = call.add("Unsqueeze", seen, call.ints(1, 2))
        case (heads.batch, heads.num_keys):
            seen = call.add("Unsqueeze", call.add("Greater", mask, zero), call.ints(1, 2))
        case (heads.batch, heads.length, heads.num_keys):
            seen = call.add("Unsqueeze", call.add("Greater", mask, zero), call.ints(1))
        case _:
            raise call.unsupported(f"a mask of shape {list(shape)} is not known here")
    return call.add("Where", seen, call.constant(0, dtype), call.constant(amount, dtype))


def _rotary_embedding(call: Call) -> list[str]:
    """ONNX wants the place of every element of the sequence; one alone is that of the first.

    The attribute `scale` changes nothing in onnxruntime.
    """
    shape = call.shape(0)
    batch, length = (shape[0], shape[1]) if len(shape) == 3 else (shape[0], shape[2])
    if call.attribute("is_packed_batching", 0):
        raise call.unsupported("packed batches are not known here")
    places = call.required(1)
    if len(call.shape(1)) < 2:
        row = call.add("Add", places, call.constant(np.arange(length), "int64"))
        places = call.add("Expand", row, call.ints(batch, length))
    attributes = call.attributes("interleaved", "num_heads", "rotary_embedding_dim")
    if len(shape) == 3 and not attributes.get("num_heads"):
        attributes["num_heads"] = shape[2] // (2 * call.shape(2)[1])
    return [call.add("RotaryEmbedding", call.required(0), call.required(2), call.required(3), places, **attributes)]


EXPANSIONS: dict[str, Expansion] = {
    "Attention": _attention,
    "MultiHeadAttention": _multi_head_attention,
    "QAttention": _quantized_attention,
    "RotaryEmbedding": _rotary_embedding,
}
