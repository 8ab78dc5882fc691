"""Attention of decoders, whose queries share keys and values in groups: GroupQueryAttention.

Keys and values lie in a cache that is as long as the longest row may become. A row of the batch has some places of it
already, its new ones go behind these, and a query sees the places up to its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from tilewright.graph.contrib.attention import lowest, split_heads
from tilewright.graph.contrib.call import Call, Expansion

_PAST_KEY, _PAST_VALUE, _LAST_PLACES, _TOTAL_LENGTH, _COSINES, _SINES, _PLACES, _BIAS, _SINK = range(3, 12)
_FIRST_UNKNOWN = 12


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where the rows of the batch are in the cache. Values are of int64, and broadcast with [batch, length]."""

    batch: int
    length: int
    cache_length: int
    num_cached: str
    """How many places of each row are there already: [batch, 1], or 0 for all."""
    places: str
    """Those of the new elements: [batch, length], or [1, length]."""


def _group_query_attention(call: Call) -> list[str]:
    if any(call.input(position) for position in range(_FIRST_UNKNOWN, len(call.node.inputs))):
        raise call.unsupported("a cache of quantized keys and values is not known here")
    num_heads, num_groups = call.attribute("num_heads"), call.attribute("kv_num_heads")
    query, key, value, head_size = _projections(call, num_heads, num_groups)
    rows = _rows(call)
    if call.attribute("do_rotary", 0):
        query, key = _rotated(call, query, rows), _rotated(call, key, rows)
    key, value = _cached(call, key, _PAST_KEY, rows), _cached(call, value, _PAST_VALUE, rows)

    def grouped(heads: str, length: int) -> str:
        """All queries of a group as rows of one product."""
        return call.add("Reshape", heads, call.ints(rows.batch, num_groups, -1, length))

    def apart(heads: str, length: int) -> str:
        return call.add("Reshape", heads, call.ints(rows.batch, num_heads, rows.length, length))

    products = call.add("MatMul", grouped(query, head_size), call.add("Transpose", key, perm=[0, 1, 3, 2]))
    weights = _weights(call, apart(products, rows.cache_length), rows, head_size)
    taken = apart(call.add("MatMul", grouped(weights, rows.cache_length), value), head_size)
    together = call.add("Transpose", taken, perm=[0, 2, 1, 3])
    return [call.add("Reshape", together, call.ints(0, 0, num_heads * head_size)), key, value]


def _projections(call: Call, num_heads: int, num_groups: int) -> tuple[str, str, str, int]:
    """Queries, keys and values with their heads apart, and the size of a head; one operand may hold all three."""
    width = call.shape(0)[2]
    if call.input(1):
        parts = [call.required(position) for position in range(3)]
        head_size = width // num_heads
    else:
        head_size = width // (num_heads + 2 * num_groups)
        sizes = [number * head_size for number in (num_heads, num_groups, num_groups)]
        parts = call.add_many("Split", 3, call.required(0), call.ints(*sizes), axis=-1)
    numbers = (num_heads, num_groups, num_groups)
    query, key, value = (split_heads(call, part, number) for part, number in zip(parts, numbers, strict=True))
    return query, key, value, head_size


def _rows(call: Call) -> _Rows:
    """A first prompt starts the cache anew; other calls go on behind what each row has."""
    batch, length, _ = call.shape(0)
    total_length = int(call.known(_TOTAL_LENGTH).reshape(()))
    cache_length = max(total_length, call.shape(_PAST_KEY)[2] if call.input(_PAST_KEY) else 0)
    offsets = call.constant(np.arange(length)[None], "int64")
    if length == total_length:
        return _Rows(batch, length, cache_length, call.ints(0), offsets)
    lasts = call.add("Cast", call.required(_LAST_PLACES), to=TensorProto.INT64)
    num_cached = call.add("Add", call.add("Reshape", lasts, call.ints(batch, 1)), call.ints(1 - length))
    return _Rows(batch, length, cache_length, num_cached, call.add("Add", num_cached, offsets))


def _rotated(call: Call, heads: str, rows: _Rows) -> str:
    """Heads rotated by the angles of their places."""
    places = call.input(_PLACES) or call.add("Expand", rows.places, call.ints(rows.batch, rows.length))
    return call.add(
        "RotaryEmbedding",
        heads,
        call.required(_COSINES),
        call.required(_SINES),
        places,
        interleaved=call.attribute("rotary_interleaved", 0),
        rotary_embedding_dim=2 * call.shape(_COSINES)[1],
    )


def _cached(call: Call, new: str, past: int, rows: _Rows) -> str:
    """New keys or values behind those of the past, and zeros behind both: [batch, groups, places, size]."""
    if rows.length == rows.cache_length:
        return new
    at = call.constant(np.arange(rows.cache_length)[None], "int64")
    behind = call.add("Sub", at, rows.num_cached)
    zero = call.constant(0, call.dtype(0))
    if rows.length > 1:
        new = _by_row(call, new, behind, rows)
    is_new = call.add(
        "And", call.add("GreaterOrEqual", behind, call.ints(0)), call.add("Less", behind, call.ints(rows.length))
    )
    before = zero
    if call.input(past):
        pads = call.ints(*[0] * 6, rows.cache_length - call.shape(past)[2], 0)
        is_old = call.add("Less", behind, call.ints(0))
        before = call.add("Where", _of_places(call, is_old), call.add("Pad", call.required(past), pads, zero), zero)
    return call.add("Where", _of_places(call, is_new), new, before)


def _by_row(call: Call, new: str, behind: str, rows: _Rows) -> str:
    """The new element for each place of the cache; any of them where there is none."""
    chosen = call.add("Clip", behind, call.constant(0, "int64"), call.constant(rows.length - 1, "int64"))
    chosen = call.add("Expand", chosen, call.ints(rows.batch, rows.cache_length))
    by_place = call.add("Transpose", new, perm=[0, 2, 1, 3])
    taken = call.add("GatherND", by_place, call.add("Unsqueeze", chosen, call.ints(2)), batch_dims=1)
    return call.add("Transpose", taken, perm=[0, 2, 1, 3])


def _of_places(call: Call, condition: str) -> str:
    """A condition on rows and places, for values of [batch, groups, places, size]."""
    return call.add("Unsqueeze", condition, call.ints(1, 3))


def _weights(call: Call, products: str, rows: _Rows, head_size: int) -> str:
    """How much of each place a query takes: [batch, heads, length, length of the cache]."""
    dtype = call.dtype(0)
    scores = call.scaled(products, call.attribute("scale", 0.0) or head_size**-0.5, dtype)
    if cap := call.attribute("softcap", 0.0):
        scores = call.scaled(call.add("Tanh", call.scaled(scores, 1 / cap, dtype)), cap, dtype)
    scores = call.plus(scores, _bias(call, rows))
    scores = call.add("Where", _seen(call, rows), scores, call.constant(lowest(dtype), dtype))
    sink = _sink(call, rows)
    if not sink:
        return call.add("Softmax", scores, axis=-1)
    weights = call.add("Softmax", call.add("Concat", scores, sink, axis=-1), axis=-1)
    return call.add("Slice", weights, call.ints(0), call.ints(rows.cache_length), call.ints(3))


def _bias(call: Call, rows: _Rows) -> str:
    """What is added to scores, which may be shorter than the cache."""
    if not call.input(_BIAS):
        return ""
    missing = rows.cache_length - call.shape(_BIAS)[3]
    if not missing:
        return call.required(_BIAS)
    return call.add("Pad", call.required(_BIAS), call.ints(*[0] * 7, missing), call.constant(0, call.dtype(_BIAS)))


def _seen(call: Call, rows: _Rows) -> str:
    """Which places of the cache a query sees: those up to its own, or the last few of them."""
    at = call.constant(np.arange(rows.cache_length)[None, None], "int64")
    own = call.add("Unsqueeze", rows.places, call.ints(2))
    seen = call.add("LessOrEqual", at, own)
    window = call.attribute("local_window_size", -1)
    if window >= 0:
        first = call.add("Sub", own, call.ints(window))
        seen = call.add("And", seen, call.add("Greater", at, first))
    return call.add("Unsqueeze", seen, call.ints(1))


def _sink(call: Call, rows: _Rows) -> str:
    """The score of seeing nothing, for each head, if there is one."""
    shape = call.ints(rows.batch, call.attribute("num_heads"), rows.length, 1)
    if call.input(_SINK):
        return call.add("Expand", call.add("Reshape", call.required(_SINK), call.ints(1, -1, 1, 1)), shape)
    if call.attribute("smooth_softmax", 0) == 1:
        return call.add("Expand", call.constant(0, call.dtype(0)), shape)
    return ""


EXPANSIONS: dict[str, Expansion] = {"GroupQueryAttention": _group_query_attention}
