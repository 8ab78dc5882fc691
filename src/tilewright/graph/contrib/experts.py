"""Layers of language models that mix experts, or attention with linear recurrences."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tilewright.graph.contrib.call import Call, Expansion

_EPSILON = 1e-5
_INTERLEAVED = 1


def _wide(call: Call, value: str) -> str:
    """These operators compute in float32, whatever the type of their operands is."""
    return call.add("Cast", value, to=TensorProto.FLOAT)


def _narrow(call: Call, value: str) -> str:
    """A result of float32 in the type of the first operand."""
    return call.add("CastLike", value, call.required(0))


def _silu(call: Call, value: str) -> str:
    return call.add("Mul", value, call.add("Sigmoid", value))


def _gated_norm(call: Call) -> list[str]:
    """A scale that is shorter than the rows belongs to each head."""
    kind = call.attribute("activation", "silu")
    if kind not in ("silu", "swish", "sigmoid"):
        raise call.unsupported(f"the activation {kind} is not known here")
    shape, (size,) = call.shape(0), call.shape(1)
    heads = call.add("Reshape", _wide(call, call.required(0)), call.ints(*shape[:-1], shape[-1] // size, size))
    epsilon = call.attribute("epsilon", _EPSILON)
    rows = call.add("RMSNormalization", heads, _wide(call, call.required(1)), axis=-1, epsilon=epsilon)
    gate = _wide(call, call.required(2))
    opened = call.add("Sigmoid", gate) if kind == "sigmoid" else _silu(call, gate)
    return [_narrow(call, call.add("Mul", call.add("Reshape", rows, call.ints(*shape)), opened))]


def _gated_add(call: Call) -> list[str]:
    return [call.add("Add", call.required(0), call.add("Mul", call.required(1), call.required(2)))]


def _scaled_silu(call: Call) -> list[str]:
    if not call.input(1):
        return [_silu(call, call.scaled(call.required(0), call.attribute("alpha", 1.0), call.dtype(0)))]
    factor = call.add("Cast", call.input(1), to=TensorProto.FLOAT)
    scaled = call.add("Mul", _wide(call, call.required(0)), factor)
    return [_silu(call, _narrow(call, scaled))]


def _linear_attention_gate(call: Call) -> list[str]:
    """How fast a recurrence forgets, and how much of each token it takes."""
    total = call.add("Add", _wide(call, call.required(0)), call.required(1))
    decay = call.add("Mul", call.add("Softplus", total), call.required(2))
    return [_narrow(call, decay), call.add("Sigmoid", call.input(3)) if call.input(3) else ""]


def _mixture(call: Call) -> list[str]:
    """Each row is computed by all experts, of which all but `k` have no weight: which ones is known when it runs."""
    if call.attribute("use_sparse_mixer", 0) or call.input(6) or call.input(7):
        raise call.unsupported("a sparse mixer, and a third layer of experts, are not known here")
    shape = call.shape(0)
    rows = call.add("Reshape", call.required(0), call.ints(1, -1, shape[-1]))
    outer = _of_experts(call, _activated(call, _of_experts(call, rows, 2)), 4)
    shares = call.add("Transpose", _shares(call), perm=[1, 0])
    weighted = call.add("Mul", outer, call.add("Unsqueeze", shares, call.ints(2)))
    total = call.add("ReduceSum", weighted, call.ints(0), keepdims=0)
    return [call.add("Reshape", total, call.ints(*shape))]


def _activated(call: Call, value: str) -> str:
    kind = call.attribute("activation_type", "relu")
    match kind:
        case "relu":
            return call.add("Relu", value)
        case "gelu":
            return call.add("Gelu", value, approximate="tanh")
        case "silu":
            return _silu(call, value)
        case "identity":
            return value
        case "swiglu" if call.attribute("swiglu_fusion", 0) == _INTERLEAVED:
            return _gated(call, value)
        case _:
            raise call.unsupported(f"the activation {kind} is not known here")


def _gated(call: Call, value: str) -> str:
    """Of each two neighbours the first opens a gate for the second, after both are clipped."""
    dtype, size = call.dtype(0), call.shape(2)[1] // 2
    pairs = call.add("Reshape", value, call.ints(0, 0, size, 2))
    gate, rest = (
        call.add("Squeeze", half, call.ints(3)) for half in call.add_many("Split", 2, pairs, axis=3, num_outputs=2)
    )
    limit = call.attribute("swiglu_limit", np.inf)
    if limit < np.inf:
        most = call.constant(limit, dtype)
        gate, rest = call.add("Min", gate, most), call.add("Clip", rest, call.constant(-limit, dtype), most)
    opened = call.add("Sigmoid", call.scaled(gate, call.attribute("activation_alpha", 1.0), dtype))
    shifted = call.add("Add", rest, call.constant(call.attribute("activation_beta", 0.0), dtype))
    return call.add("Mul", call.add("Mul", gate, opened), shifted)


def _of_experts(call: Call, rows: str, weights: int) -> str:
    """What each expert makes of rows: [experts, rows, size]. Behind its weights stands what is added, if anything."""
    product = call.add("MatMul", rows, call.add("Transpose", call.required(weights), perm=[0, 2, 1]))
    bias = call.input(weights + 1)
    return call.add("Add", product, call.add("Unsqueeze", bias, call.ints(1))) if bias else product


def _shares(call: Call) -> str:
    """The weight of each expert for each row: [rows, experts]."""
    scores = call.required(1)
    if not call.attribute("normalize_routing_weights", 0):
        scores = call.add("Softmax", scores, axis=-1)
    chosen, experts = call.add_many("TopK", 2, scores, call.ints(call.attribute("k", 1)), axis=-1)
    if call.attribute("normalize_routing_weights", 0):
        chosen = call.add("Softmax", chosen, axis=-1)
    nothing = call.constant(np.zeros(call.shape(1)), call.dtype(1))
    return call.add("ScatterElements", nothing, experts, chosen, axis=-1)


def _causal_convolution(call: Call) -> list[str]:
    """Of each channel with its past, which is that before the first element, or zeros."""
    if any(call.attribute(name, default) != default for name, default in (("ndim", 1), ("channels_last", 0))):
        raise call.unsupported("more than one axis of places, and channels in the end, are not known here")
    if call.attribute("state_window", 0):
        raise call.unsupported("a window of states is not known here")
    batch, channels, length = call.shape(0)
    dilation = call.attribute("dilation", 1)
    num_past = (call.shape(1)[2] - 1) * dilation
    past = call.input(3) or call.constant(np.zeros((batch, channels, num_past)), call.dtype(0))
    whole = call.add("Concat", past, call.required(0), axis=2)
    result = call.add("Conv", whole, call.required(1), call.input(2), group=channels, dilations=[dilation])
    activation = call.attribute("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise call.unsupported(f"the activation {activation} is not known here")
    present = call.add("Slice", whole, call.ints(length), call.ints(length + num_past), call.ints(2))
    return [result if activation == "none" else _silu(call, result), present]


def _multimodal_rotation(call: Call) -> list[str]:
    """By the places of a token in time, height and width, of which each has a section of the angles."""
    if call.attribute("is_packed_batching", 0):
        raise call.unsupported("packed batches are not known here")
    shape, half = call.shape(0), call.shape(2)[1]
    in_height, in_width = _sections(call, half)

    def chosen(cache: int) -> str:
        rows = call.add("Gather", call.required(cache), call.required(1))
        parts = call.add_many("Split", 3, rows, axis=0, num_outputs=3)
        time, height, width = (call.add("Squeeze", part, call.ints(0)) for part in parts)
        taller = call.add("Where", call.constant(in_height, "bool"), height, time)
        return call.add("Where", call.constant(in_width, "bool"), width, taller)

    attributes = call.attributes("interleaved", "num_heads", "rotary_embedding_dim")
    if len(shape) == 3 and not attributes.get("num_heads"):
        attributes["num_heads"] = shape[2] // (2 * half)
    return [call.add("RotaryEmbedding", call.required(0), chosen(2), chosen(3), **attributes)]


def _sections(call: Call, half: int) -> tuple[np.ndarray, np.ndarray]:
    """Which angles are those of the height, and which of the width."""
    in_time, in_height, in_width = call.attribute("mrope_section")
    places = np.arange(half)
    if call.attribute("mrope_layout", 0):
        return (places % 3 == 1) & (places < 3 * in_height), (places % 3 == 2) & (places < 3 * in_width)
    after = in_time + in_height
    return (places >= in_time) & (places < after), (places >= after) & (places < after + in_width)


EXPANSIONS: dict[str, Expansion] = {
    "CausalConvWithState": _causal_convolution,
    "GatedAdd": _gated_add,
    "GatedRMSNorm": _gated_norm,
    "LinearAttentionGate": _linear_attention_gate,
    "MRotaryEmbedding": _multimodal_rotation,
    "MoE": _mixture,
    "ScaledSiLU": _scaled_silu,
}
