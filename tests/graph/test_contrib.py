"""Operators of onnxruntime's, next to onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.graph.onnx_models import graph, model, node, random, tensor
from tilewright.errors import ModelError, UnsupportedOperatorError
from tilewright.graph.contrib import contrib_operators
from tilewright.graph.evaluation.fallback import run_fallback
from tilewright.graph.onnx import load_model
from tilewright.graph.protos import CONTRIB
from tilewright.network import InferenceSession, partition_network
from tilewright.operators import Node
from tilewright.partition import Fallback

OPSETS = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(CONTRIB, 1)]
RNG = np.random.default_rng(0)
Case = tuple[str, list[Any], dict[str, Any]]


def uint8(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape).astype(np.uint8)


def int8(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape).astype(np.int8)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def zero(value: int) -> np.ndarray:
    return np.array(value, np.uint8)


def ints(values: Any) -> np.ndarray:
    return np.array(values, np.int32)


IMAGE, FILTERS = random((1, 3, 5, 6)), random((4, 3, 3, 3), 1)
ATTENTION = [random((2, 5, 8)), random((8, 24), 1), random((24,), 2)]
QUERIES = [random((2, 5, 8)), random((2, 5, 8), 1), random((2, 5, 8), 2)]
BYTES = [uint8(2, 3, 4, 4), scale(0.02), zero(120)]
RESULT = [scale(0.03), zero(100)]
MASK = ints([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
EMBEDDINGS = [random((9, 8)), random((7, 8), 1), random((2, 8), 2), random((8,), 3), random((8,), 4)]
WORDS = [ints([[1, 8, 0, 3, 3], [2, 2, 5, 7, 1]]), ints([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]])]
CACHES = [random((20, 4)), random((20, 4), 1)]

QUANTIZED_ATTENTION = [
    uint8(2, 5, 8), int8(8, 24), random((24,)), scale(0.02), scale(0.01), None, zero(120), np.int8(3)
]  # fmt: skip


def groups(
    batch: int, length: int, num_cached: int | None, total: int, ends: Sequence[int], **attributes: Any
) -> tuple[list[Any], dict[str, Any]]:
    """The operands of a decoder with four heads in two groups; `ends` are where the rows of the batch end."""
    new = [random((batch, length, width), seed) for seed, width in enumerate((64, 32, 32))]
    past = [None, None] if num_cached is None else [random((batch, 2, num_cached, 16), seed) for seed in (3, 4)]
    rotation = [random((20, 8), seed) for seed in (5, 6)] if attributes.get("do_rotary") else [None, None]
    operands = [*new, *past, ints([end - 1 for end in ends]), ints(total), *rotation]
    return operands, {"num_heads": 4, "kv_num_heads": 2, **attributes}


PROMPT, CHUNK = groups(1, 5, None, 5, [5]), groups(1, 3, 2, 5, [5])
TOGETHER = np.concatenate(PROMPT[0][:3], axis=-1)
GROUPS = [
    PROMPT,
    CHUNK,
    groups(2, 5, 0, 5, [5, 5], do_rotary=1, rotary_interleaved=1),
    groups(1, 5, 16, 5, [5], do_rotary=1),
    groups(1, 3, 6, 9, [9], do_rotary=1),
    groups(2, 1, 6, 7, [7, 4], do_rotary=1),
    groups(2, 1, 16, 7, [7, 4], do_rotary=1, local_window_size=3),
    groups(1, 6, None, 6, [6], local_window_size=2, softcap=2.0),
    groups(1, 3, 2, 5, [5], smooth_softmax=1, scale=0.9),
    ([TOGETHER, None, None, *PROMPT[0][3:]], PROMPT[1]),
    ([*CHUNK[0], np.arange(2, 5)[None], random((1, 4, 3, 5))], {**CHUNK[1], "softcap": 1.0}),
    ([*CHUNK[0], None, None, random((4,))], CHUNK[1]),
]
"""A prompt; what follows one; with a cache that is longer than its rows; and what else there is."""

TOKENS, ROUTES = random((5, 8)), random((5, 4), 1)
EXPERTS = [random((4, 6, 8), 2), random((4, 6), 3), random((4, 8, 6), 4), random((4, 8), 5)]
GATED_EXPERTS = [random((4, 12, 8), 2), random((4, 12), 3), *EXPERTS[2:]]
SWIGLU: dict[str, Any] = {
    "activation_type": "swiglu",
    "swiglu_fusion": 1,
    "activation_alpha": 1.702,
    "activation_beta": 1.0,
}
PLACES = RNG.integers(0, 20, (3, 2, 5))
MIXTURES: list[tuple[list[Any], dict[str, Any]]] = [
    ([TOKENS, ROUTES, *EXPERTS], {"k": 2, "activation_type": "silu"}),
    ([TOKENS, ROUTES, *EXPERTS], {"k": 2, "activation_type": "gelu", "normalize_routing_weights": 1}),
    ([random((2, 5, 8)), random((10, 4), 1), EXPERTS[0], None, EXPERTS[2]], {}),
    ([TOKENS, ROUTES, *GATED_EXPERTS], {"k": 3, "swiglu_limit": 0.7, **SWIGLU}),
    ([TOKENS, ROUTES, *GATED_EXPERTS], {"k": 2, "normalize_routing_weights": 1, **SWIGLU}),
]
RECURRENT: list[Case] = [
    ("GatedAdd", [random((2, 3, 8)), random((2, 3, 8), 1), random((2, 3, 1), 2)], {}),
    ("GatedRMSNorm", [random((2, 3, 8)), random((4,), 1), random((2, 3, 8), 2)], {"epsilon": 0.1}),
    ("GatedRMSNorm", [random((2, 3, 8)), random((8,), 1), random((2, 3, 8), 2)], {"activation": "sigmoid"}),
    ("GatedRMSNorm", [x.astype(np.float16) for x in (random((3, 8)), random((8,), 1), random((3, 8), 2))], {}),
    ("LinearAttentionGate", [random((2, 3, 4)), random((4,), 1), random((4,), 2), random((2, 3, 4), 3)], {}),
    ("ScaledSiLU", [random((2, 3))], {"alpha": 1.7}),
    ("ScaledSiLU", [random((2, 3)), scale(0.5)], {}),
    ("CausalConvWithState", [random((2, 3, 9)), random((3, 1, 4), 1)], {"activation": "silu"}),
    (
        "CausalConvWithState",
        [random((2, 3, 1)), random((3, 1, 4), 1), random((3,), 2), random((2, 3, 6), 3)],
        {"dilation": 2},
    ),
    *[
        ("MRotaryEmbedding", [random((2, 2, 5, 8)), PLACES, *CACHES], {"mrope_section": [2, 1, 1], **more})
        for more in ({}, {"mrope_layout": 1, "interleaved": 1})
    ],
    (
        "MRotaryEmbedding",
        [random((2, 5, 32)), PLACES, *CACHES],
        {"mrope_section": [1, 1, 2], "num_heads": 2, "rotary_embedding_dim": 8},
    ),
]

CASES: list[Case] = [
    *[("MoE", *case) for case in MIXTURES],
    *RECURRENT,
    ("FusedConv", [IMAGE, FILTERS, random((4,))], {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    ("FusedConv", [IMAGE, FILTERS], {"activation": "LeakyRelu", "activation_params": [0.1]}),
    ("FusedConv", [IMAGE, FILTERS], {"activation": "Clip", "activation_params": [0.0, 1.0]}),
    ("FusedConv", [IMAGE, FILTERS], {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]}),
    ("FusedConv", [IMAGE, FILTERS, random((4,)), random((1, 4, 3, 4))], {"activation": "Relu"}),
    (
        "FusedGemm",
        [random((3, 5)), random((4, 5)), random((4,))],
        {"transB": 1, "alpha": 0.5, "beta": 2.0, "activation": "LeakyRelu", "activation_alpha": 0.2},
    ),
    ("FusedMatMul", [random((2, 3, 5)), random((2, 3, 4))], {"transA": 1, "alpha": 0.3}),
    ("FusedMatMul", [random((5, 3, 4, 2)), random((3, 4, 2, 6))], {"transBatchA": 1}),
    ("FusedMatMul", [random((5, 3, 4, 2)), random((3, 4, 5, 6))], {"transBatchA": 1, "transA": 1}),
    ("FusedMatMul", [random((5,)), random((5, 4))], {"alpha": 2.0}),
    ("Gelu", [random((3, 5))], {}),
    ("BiasGelu", [random((3, 5)), random((5,), 1)], {}),
    ("FastGelu", [random((3, 5)), random((5,), 1)], {}),
    ("QuickGelu", [random((3, 5))], {"alpha": 1.3}),
    ("SkipLayerNormalization", [*QUERIES[:2], random((8,)), random((8,), 1), random((8,), 2)], {"epsilon": 1e-5}),
    ("SkipLayerNormalization", [QUERIES[0], random((5, 8)), random((8,))], {}),
    ("SkipSimplifiedLayerNormalization", [*QUERIES[:2], random((8,)), random((8,), 1)], {"epsilon": 1e-5}),
    ("EmbedLayerNormalization", [*WORDS, *EMBEDDINGS, MASK], {"epsilon": 1e-5}),
    ("EmbedLayerNormalization", [WORDS[0], None, *EMBEDDINGS[:2], None, *EMBEDDINGS[3:]], {"epsilon": 1e-5}),
    (
        "QEmbedLayerNormalization",
        [*WORDS, *[uint8(*x.shape) for x in EMBEDDINGS], MASK, *[scale(0.02)] * 5, *[zero(120)] * 5],
        {"epsilon": 1e-5},
    ),
    ("CDist", [random((3, 4)), random((5, 4), 1)], {"metric": "euclidean"}),
    ("CDist", [random((3, 4)), random((1, 4), 1)], {"metric": "sqeuclidean"}),
    ("Attention", ATTENTION, {"num_heads": 2, "unidirectional": 1}),
    ("Attention", [*ATTENTION, MASK], {"num_heads": 2}),
    ("Attention", [*ATTENTION, ints([3, 5])], {"num_heads": 2}),
    ("Attention", [*ATTENTION, ints([3, 5, 1, 0])], {"num_heads": 2}),
    ("Attention", [*ATTENTION, None, random((2, 2, 2, 3, 4))], {"num_heads": 2, "unidirectional": 1}),
    ("Attention", [*ATTENTION, None, None, random((2, 2, 5, 5))], {"num_heads": 2, "scale": 0.2}),
    ("MultiHeadAttention", [*QUERIES, random((24,))], {"num_heads": 2}),
    ("MultiHeadAttention", [*QUERIES, None, MASK], {"num_heads": 2}),
    (
        "MultiHeadAttention",
        [*QUERIES, None, None, random((1, 2, 5, 8)), random((2, 2, 3, 4)), random((2, 2, 3, 4), 1)],
        {"num_heads": 2},
    ),
    ("RotaryEmbedding", [random((2, 2, 5, 8)), np.array([3]), *CACHES], {}),
    ("RotaryEmbedding", [random((2, 5, 16)), np.arange(10).reshape(2, 5), *CACHES], {"interleaved": 1, "scale": 2.0}),
    *[("GroupQueryAttention", *case) for case in GROUPS],
    ("QAttention", QUANTIZED_ATTENTION, {"num_heads": 2}),
    ("QAttention", [*QUANTIZED_ATTENTION[:5], ints([3, 5]), *QUANTIZED_ATTENTION[6:]], {"num_heads": 2}),
    ("QAttention", [*QUANTIZED_ATTENTION, random((2, 2, 2, 3, 4))], {"num_heads": 2, "unidirectional": 1}),
    ("QLinearAdd", [*BYTES, uint8(3, 1, 4), scale(0.03), zero(130), *RESULT], {}),
    ("QLinearMul", [*BYTES, uint8(3, 1, 4), scale(0.03), zero(130), *RESULT], {}),
    ("QLinearSigmoid", [*BYTES, *RESULT], {}),
    ("QLinearLeakyRelu", [*BYTES, *RESULT], {"alpha": 0.1}),
    ("QLinearGlobalAveragePool", [*BYTES, *RESULT], {"channels_last": 1}),
    ("QLinearAveragePool", [*BYTES, *RESULT], {"kernel_shape": [2, 2]}),
    ("QLinearConcat", [*RESULT, *BYTES, *BYTES], {"axis": 1}),
    ("QLinearWhere", [BYTES[0] > 99, *BYTES, *BYTES, *RESULT], {}),
    ("QGemm", [uint8(3, 5), *BYTES[1:], int8(5, 4), scale(0.01), np.int8(0), ints([9, -9, 5, 0]), *RESULT], {}),
    ("QGemm", [uint8(3, 5), *BYTES[1:], int8(4, 5), random((4,)) ** 2, int8(4)], {"transB": 1, "alpha": 0.5}),
    (
        "QLinearConv",
        [uint8(1, 5, 6, 3), *BYTES[1:], int8(4, 3, 3, 3), scale(0.01), np.int8(0), *RESULT],
        {"channels_last": 1},
    ),
    ("NhwcMaxPool", [uint8(1, 5, 6, 3)], {"kernel_shape": [3, 3], "strides": [2, 2]}),
    (
        "MatMulIntegerToFloat",
        [uint8(3, 5), int8(5, 4), scale(0.02), scale(0.01), zero(120), np.int8(3), random((4,))],
        {},
    ),
    ("DynamicQuantizeMatMul", [random((3, 5)), int8(5, 4), scale(0.01), np.int8(0), random((4,))], {}),
    ("DequantizeLinear", [uint8(3, 5), scale(0.1), zero(3)], {}),
    ("MatMulNBits", [random((2, 3, 40)), uint8(6, 3, 8), random((18,)) ** 2], {"K": 40, "N": 6, "block_size": 16}),
    (
        "MatMulNBits",
        [random((3, 40)), uint8(6, 3, 8), random((18,)) ** 2, uint8(12)],
        {"K": 40, "N": 6, "bits": 4, "block_size": 16},
    ),
    ("MatMulBnb4", [random((3, 32)), uint8(96), random((12,))], {"K": 32, "N": 6, "block_size": 16, "quant_type": 0}),
    ("MatMulBnb4", [random((2, 3, 5)), uint8(8), random((1,))], {"K": 5, "N": 3, "block_size": 16, "quant_type": 1}),
    ("GatherBlockQuantized", [uint8(9, 16), WORDS[0], random((9, 2))], {"block_size": 16}),
    ("GatherBlockQuantized", [uint8(9, 20), WORDS[0], random((9, 3)), uint8(9, 2)], {"block_size": 16}),
    ("GatherBlockQuantized", [uint8(9, 32), ints(-1), random((9, 2)), uint8(9, 2)], {"block_size": 16, "bits": 8}),
    ("GridSample", [random((1, 2, 4, 4)), random((1, 3, 3, 2))], {}),
    ("Trilu", [random((3, 4))], {"upper": 0}),
    ("ExpandDims", [random((3, 4)), ints(1)], {}),
    ("UnfoldTensor", [random((3, 7))], {"size": 3}),
    ("UnfoldTensor", [random((2, 8, 3))], {"dim": 1, "size": 3, "step": 2}),
]
OUTPUTS = {
    "SkipLayerNormalization": ("y", "", "", "total"),
    "SkipSimplifiedLayerNormalization": ("y", "", "", "total"),
    "EmbedLayerNormalization": ("y", "lengths"),
    "QEmbedLayerNormalization": ("y", "lengths"),
    "GroupQueryAttention": ("y", "key", "value"),
    "CausalConvWithState": ("y", "present"),
}
CONSTANT = {"QLinearSigmoid": 1, "QLinearLeakyRelu": 1, "QLinearConv": 1, "MatMulNBits": 1, "MatMulBnb4": 1}
"""From which operand on onnxruntime wants constants."""


def outputs_of(op: str, inputs: Sequence[Any]) -> tuple[str, ...]:
    past = {"Attention": 4, "QAttention": 8}.get(op, len(inputs))
    if past < len(inputs) and inputs[past] is not None:
        return ("y", "present")
    if op == "LinearAttentionGate":
        return ("y", "beta")[: len(inputs) - 2]
    return ("y", "key", "value") if len(inputs) == 8 and op == "MultiHeadAttention" else OUTPUTS.get(op, ("y",))


def by_onnxruntime(op: str, inputs: Sequence[Any], outputs: Sequence[str], attributes: dict[str, Any]) -> list[Any]:
    arrays = {f"in{i}": np.asarray(value) for i, value in enumerate(inputs) if value is not None}
    operands = [f"in{i}" if value is not None else "" for i, value in enumerate(inputs)]
    constants = {f"in{i}": inputs[i] for i in range(CONSTANT.get(op, len(inputs)), len(inputs))}
    given = {name: array for name, array in arrays.items() if name not in constants}
    declared = [
        tensor(name, array.shape, onnx.helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in given.items()
    ]
    call = onnx.helper.make_node(op, operands, outputs, domain=CONTRIB, **attributes)
    proto = model([call], declared, list(filter(None, outputs)), constants, opset_imports=OPSETS, ir_version=8)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, given))


@pytest.mark.parametrize(("op", "inputs", "attributes"), CASES, ids=[f"{i} {case[0]}" for i, case in enumerate(CASES)])
def test_an_operator_computes_what_onnxruntime_does(op: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    outputs = outputs_of(op, inputs)
    expected = by_onnxruntime(op, inputs, outputs, attributes)
    names = tuple("" if value is None else f"in{i}" for i, value in enumerate(inputs))
    arrays = [None if value is None else np.asarray(value) for value in inputs]
    found = run_fallback(Node(op, names, outputs, attributes, domain=CONTRIB, opset=1), arrays)
    for result, wanted in zip([value for value in found if value is not None], expected, strict=True):
        assert result.dtype == wanted.dtype
        # Halves of a step may be rounded either way, and onnxruntime may take products of few bits as bytes.
        step = 2e-3 * np.abs(wanted).max() if wanted.dtype == np.float32 else 1
        np.testing.assert_allclose(result.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=step)


def test_every_operator_has_a_case_or_is_another_name() -> None:
    others = {"NhwcFusedConv", "TransposeMatMul", "GatherND", "Pad", "Range", "QuantizeLinear", "DynamicQuantizeLSTM"}
    assert {case[0] for case in CASES} | others | {"NhwcConv", "QLinearReduceMean", "QLinearSoftmax"} == {
        op for domain, op in contrib_operators() if domain == CONTRIB
    }


@pytest.mark.parametrize("group", [1, 3])
def test_a_convolution_with_channels_last_has_weights_with_channels_last(group: int) -> None:
    """onnxruntime's optimizer of diffusion models writes it for graphics processors; its own CPU kernels lack it."""
    image, weights, bias = random((2, 7, 5, 3)), random((6, 3, 2, 3 // group)), random((6,))
    attributes = {"group": group, "pads": [1, 0, 1, 1], "strides": [2, 1]}
    call = onnx.helper.make_node("NhwcConv", ["x", "w", "b"], ["y"], domain=CONTRIB, **attributes)
    constants = {"w": weights, "b": bias}
    proto = model([call], [tensor("x", image.shape)], ["y"], constants, opset_imports=OPSETS, ir_version=8)
    (found,) = InferenceSession(proto).run(None, {"x": image})
    conv = onnx.helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)
    constants["w"] = weights.transpose(0, 3, 1, 2)
    plain = model([conv], [tensor("x", (2, 3, 7, 5))], ["y"], constants, opset_imports=OPSETS, ir_version=8)
    session = onnxruntime.InferenceSession(plain.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": image.transpose(0, 3, 1, 2)})
    np.testing.assert_allclose(found, wanted.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_decoder_is_compiled_if_the_length_of_its_cache_is_known(is_known: bool) -> None:
    """Exporters take the length from the shape of the mask; as an input it is known only when the model runs."""
    operands, attributes = groups(2, 1, 6, 7, [7, 4], do_rotary=1)
    names, total = [f"in{i}" for i in range(len(operands))], 6
    constants = {names[i]: operands[i] for i in range(total if is_known else total + 1, len(operands))}
    given = {name: value for name, value in zip(names, operands, strict=True) if name not in constants}
    declared = [tensor(name, x.shape, onnx.helper.np_dtype_to_tensor_dtype(x.dtype)) for name, x in given.items()]
    outputs = ["y", "key", "value"]
    call = onnx.helper.make_node("GroupQueryAttention", names, outputs, domain=CONTRIB, **attributes)
    proto = model([call], declared, outputs, constants, opset_imports=OPSETS, ir_version=8)
    assert ("GroupQueryAttention" in {node.op for node in load_model(proto).nodes}) is not is_known
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    with nullcontext() if is_known else pytest.warns(UserWarning, match="GroupQueryAttention"):
        found = InferenceSession(proto).run(None, given)
    for result, wanted in zip(found, session.run(None, given), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


def check_optimized(text: str, shapes: Mapping[str, Sequence[int]], level: str, ops: set[str], folder: Path) -> None:
    """A network of which onnxruntime makes the operators `ops`; `shapes` are those of its weights."""
    proto = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 13]> ' + text)
    weights = {name: random(shape) for name, shape in shapes.items()}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    optimized = onnx.load(folder / "optimized.onnx")
    assert ops <= {op.op_type for op in optimized.graph.node if op.domain}
    feed = {
        value.name: random([dim.dim_value for dim in value.type.tensor_type.shape.dim]) for value in proto.graph.input
    }
    for found, wanted in zip(InferenceSession(optimized).run(None, feed), session.run(None, feed), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_network_that_onnxruntime_optimized_is_compiled(tmp_path: Path) -> None:
    text = """net (float[2, 4, 8] x, float[1, 6, 5, 5] image) => (float[2, 4, 8] y, float[1, 4, 3, 3] z)
        <float half = {0.5}, float one = {1}, float root = {1.41421356}> {
            p = MatMul(x, w) a = Relu(p) q = Add(a, b)
            d = Div(q, root) e = Erf(d) f = Add(e, one) h = Mul(q, f) i = Mul(h, half)
            t = Transpose <perm = [0, 2, 1]> (x) u = MatMul(t, i) y = MatMul(i, u)
            c = Conv(image, v) z = Relu(c)
        }"""
    shapes = {"w": (8, 8), "b": (8,), "v": (4, 6, 3, 3)}
    check_optimized(text, shapes, "ORT_ENABLE_EXTENDED", {"FusedMatMul", "BiasGelu", "FusedConv"}, tmp_path)


def test_a_network_with_channels_in_blocks_is_compiled(tmp_path: Path) -> None:
    text = """net (float[1, 3, 8, 8] x, float[1, 16, 6, 6] y) => (float[1, 20, 1, 1] z, float[1, 20, 8, 8] r)
        <float[4] twice = {1, 1, 2, 2}> {
            a = Conv <pads = [1, 1, 1, 1]> (x, v) b = Relu(a) c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)
            d = Resize <mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "asymmetric">
                (c, , twice)
            e = Conv <pads = [1, 1, 1, 1], group = 32> (d, g) f = Add(e, b) h = Conv(f, w) r = Conv(h, u)
            i = Conv(y, t) j = AveragePool <kernel_shape = [2, 2]> (i) k = GlobalAveragePool(j) z = Sigmoid(k)
        }"""
    shapes = {
        "v": (32, 3, 3, 3), "g": (32, 1, 3, 3), "w": (20, 32, 1, 1), "u": (20, 20, 1, 1), "t": (20, 16, 2, 3)
    }  # fmt: skip
    names = {"Conv", "MaxPool", "Upsample", "ReorderInput", "ReorderOutput"}
    check_optimized(text, shapes, "ORT_ENABLE_ALL", names, tmp_path)


def test_a_layer_normalization_of_before_opset_17_and_one_in_a_branch() -> None:
    """The first stands in ONNX's own domain; the second has types that are known only when it runs."""
    branch = [node("LayerNormalization", ["x", "g"], ["r"], epsilon=1e-3), node("Gelu", ["r"], ["y"])]
    branch[1].domain = CONTRIB
    other, typed = [node("Neg", ["x"], ["y"])], [tensor("y", [2, 8])]
    nodes = [
        node("LayerNormalization", ["x", "g"], ["n"], epsilon=1e-3),
        node("ReduceMax", ["x"], ["m"], keepdims=0),
        node("Greater", ["m", "zero"], ["c"]),
        node("If", ["c"], ["y"], then_branch=graph(branch, [], typed), else_branch=graph(other, [], typed)),
    ]
    opsets = [onnx.helper.make_opsetid("", 13), OPSETS[1]]
    constants = {"g": random((8,)), "zero": np.float32(0)}
    proto = model(nodes, [tensor("x", [2, 8])], ["n", "y"], constants, opset_imports=opsets, ir_version=8)
    x = random((2, 8))
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    with pytest.warns(UserWarning, match="If"):
        found = InferenceSession(proto).run(None, {"x": x})
    for result, wanted in zip(found, session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


def test_a_mixture_of_experts_is_compiled() -> None:
    operands, attributes = MIXTURES[3]
    names = [f"in{i}" for i in range(len(operands))]
    declared = [tensor(name, x.shape) for name, x in zip(names[:2], operands[:2], strict=True)]
    call = onnx.helper.make_node("MoE", names, ["y"], domain=CONTRIB, **attributes)
    constants = dict(zip(names[2:], operands[2:], strict=True))
    proto = model([call], declared, ["y"], constants, opset_imports=OPSETS, ir_version=8)
    assert not [part for part in partition_network(proto).parts if isinstance(part, Fallback)]
    (expected,) = by_onnxruntime("MoE", operands, ["y"], attributes)
    found = InferenceSession(proto).run(None, dict(zip(names[:2], operands[:2], strict=True)))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "shapes", "attributes", "text"),
    [
        ("MoE", [[5, 8], [5, 4], [4, 6, 8], [4, 6], [4, 8, 6]], {"activation_type": "swiglu"}, "activation swiglu"),
        ("MoE", [[5, 8], [5, 4], [4, 6, 8], [4, 6], [4, 8, 6]], {"use_sparse_mixer": 1}, "a sparse mixer"),
        ("GatedRMSNorm", [[2, 8], [8], [2, 8]], {"activation": "tanh"}, "activation tanh"),
        ("CausalConvWithState", [[2, 3, 9], [3, 1, 4]], {"state_window": 2}, "a window of states"),
        ("CausalConvWithState", [[2, 9, 3], [3, 1, 4]], {"channels_last": 1}, "channels in the end"),
    ],
)
def test_what_is_not_known_of_an_operator_is_named(
    op: str, shapes: list[list[int]], attributes: dict[str, Any], text: str
) -> None:
    with pytest.raises(UnsupportedOperatorError, match=text):
        load(op, shapes, **attributes)


def load(op: str, inputs: Sequence[Sequence[int]], **attributes: Any) -> None:
    names = [f"in{i}" for i in range(len(inputs))]
    call = onnx.helper.make_node(op, names, ["y"], domain=CONTRIB, **attributes)
    declared = [tensor(name, shape) for name, shape in zip(names, inputs, strict=True)]
    load_model(model([call], declared, ["y"], opset_imports=OPSETS))


def test_a_node_that_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"\(Attention\).*attribute num_heads is missing"):
        load("Attention", [(2, 5, 8), (8, 24)])
    with pytest.raises(ModelError, match=r"\(Attention\) does not fit its attributes and inputs float32\[2, 5\]"):
        load("Attention", [(2, 5), (8, 24)], num_heads=2)
    with pytest.raises(ModelError, match=r"\(FusedConv\).*input 1 is left out"):
        load("FusedConv", [(1, 3, 5, 5)])
    with pytest.raises(UnsupportedOperatorError, match="activation Swirl is not known"):
        load("FusedConv", [(1, 3, 5, 5), (4, 3, 3, 3)], activation="Swirl")
    with pytest.raises(UnsupportedOperatorError, match="no operator BeamSearch of domain com.microsoft"):
        load("BeamSearch", [(1, 3)])


def test_a_version_that_is_no_version_is_no_matter_for_a_domain_without_versions() -> None:
    """Found by changed files: onnx is asked for operators of a version that does not fit in 32 bits."""
    gelu = onnx.helper.make_node("Gelu", ["x"], ["y"], domain=CONTRIB)
    opsets = [OPSETS[0], onnx.helper.make_opsetid(CONTRIB, 2**40)]
    imported = load_model(model([gelu], [tensor("x", [3])], ["y"], opset_imports=opsets))
    assert [op.op for op in imported.nodes if op.op != "Identity"] == ["Gelu"]


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Affine", {"alpha": 0.5, "beta": 2.0}),
        ("Crop", {"border": [1, 2, 0, 1]}),
        ("Crop", {"border": [1, 2, 0, 0], "scale": [2, 3]}),
        ("ImageScaler", {"scale": 0.5, "bias": [1.0, 2.0, 3.0]}),
        ("ParametricSoftplus", {"alpha": 0.5, "beta": 2.0}),
        ("Scale", {"scale": 0.5}),
        ("ScaledTanh", {"alpha": 0.5, "beta": 2.0}),
        ("ThresholdedRelu", {"alpha": 0.25}),
    ],
)
@pytest.mark.parametrize("opset", [5, 8])
def test_operators_that_onnx_had_for_a_trial(op: str, attributes: dict[str, Any], opset: int) -> None:
    """With a node after it that has to be converted."""
    nodes = [
        onnx.helper.make_node(op, ["x"], ["h"], **attributes),
        onnx.helper.make_node("Unsqueeze", ["h"], ["y"], axes=[0]),
    ]
    proto = model(nodes, [tensor("x", [2, 3, 6, 5])], ["y"], opset=opset, ir_version=3)
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 5)).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    compiled = InferenceSession(proto)
    assert not compiled.model.fallbacks
    np.testing.assert_allclose(compiled.run(None, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)
