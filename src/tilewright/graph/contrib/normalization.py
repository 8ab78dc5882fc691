"""Normalizations of rows, with the sums before them."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.graph.contrib.call import Call, Expansion

_EPSILON = 1e-5
_SKIP_EPSILON = 1e-12


def _layer(call: Call) -> list[str]:
    attributes = call.attributes("axis", "epsilon", "stash_type")
    return call.add_many("LayerNormalization", 3, call.required(0), call.required(1), call.input(2), **attributes)


def _simplified_layer(call: Call) -> list[str]:
    axis, epsilon = call.attribute("axis", -1), call.attribute("epsilon", _EPSILON)
    return [call.add("RMSNormalization", call.required(0), call.required(1), axis=axis, epsilon=epsilon)]


def _skip_layer(call: Call) -> list[str]:
    total = call.plus(call.required(0), call.required(1), call.input(4))
    epsilon = call.attribute("epsilon", _SKIP_EPSILON)
    results = call.add_many("LayerNormalization", 3, total, call.required(2), call.input(3), axis=-1, epsilon=epsilon)
    return [*results, total]


def _skip_simplified_layer(call: Call) -> list[str]:
    total = call.plus(call.required(0), call.required(1), call.input(3))
    epsilon = call.attribute("epsilon", _SKIP_EPSILON)
    return [call.add("RMSNormalization", total, call.required(2), axis=-1, epsilon=epsilon), "", "", total]


def _embed_layer(call: Call) -> list[str]:
    """The sum of the embeddings of words, places and segments, normalized; and how long each row of words is."""
    return _embedded(call, call.input(8), lambda _, value: value)


def _quantized_embed_layer(call: Call) -> list[str]:
    """The same with tables of bytes; their scales, and then their zero points, come after all other operands."""

    def real(table: int, value: str) -> str:
        return call.add("DequantizeLinear", value, call.required(table + 6), call.required(table + 11))

    return _embedded(call, "", real)


def _embedded(call: Call, places: str, real: Callable[[int, str], str]) -> list[str]:
    """`real` gives what is taken of the operand at a position as floats."""
    batch, length = call.shape(0)
    places = places or call.add("Range", *[call.constant(value, "int64") for value in (0, length, 1)])

    def rows(table: int, chosen: str) -> str:
        return real(table, call.add("Gather", call.required(table), chosen))

    of_segments = rows(4, call.required(1)) if call.input(1) else ""
    total = call.plus(rows(2, call.required(0)), rows(3, places), of_segments)
    epsilon = call.attribute("epsilon", _SKIP_EPSILON)
    scale, shift = (real(position, call.required(position)) for position in (5, 6))
    result = call.add("LayerNormalization", total, scale, shift, axis=-1, epsilon=epsilon)
    if not call.is_wanted(1):
        return [result, "", total]
    if call.input(7):
        lengths = call.add("ReduceSum", call.input(7), call.ints(1), keepdims=0)
    else:
        lengths = call.constant([0] * batch, "int32")
    return [result, lengths, total]


EXPANSIONS: dict[str, Expansion] = {
    "EmbedLayerNormalization": _embed_layer,
    "QEmbedLayerNormalization": _quantized_embed_layer,
    "SkipLayerNormalization": _skip_layer,
    "SkipSimplifiedLayerNormalization": _skip_simplified_layer,
}
IN_DOMAIN_OF_ONNX: dict[str, Expansion] = {
    "LayerNormalization": _layer,
    "SimplifiedLayerNormalization": _simplified_layer,
}
