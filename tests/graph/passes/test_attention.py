"""Softmax and the product after it become one operator where scores are large; and what then is one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from tests.graph.onnx_models import reference
from tests.graph.passes.checking import ops, run
from tilewright.graph.onnx import load_model
from tilewright.graph.passes import optimize
from tilewright.network import InferenceSession, compile_network
from tilewright.partition import partition

FUSED = "SoftmaxMatMul*"


def model(text: str, opset: int = 18) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> net {text}')


def attention(
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    size: int = 16,
    values: int = 16,
    *,
    between: str = "",
    end: str = "",
) -> ModelProto:
    """Heads are split as exporters do; `between` makes x of the scores s, and `end` what follows."""
    return model(f"""(
        float[{batch}, {queries}, {heads}, {size}] q, float[{batch}, {keys}, {heads}, {size}] k,
        float[{batch}, {keys}, {heads}, {values}] v, float[{batch}, 1, 1, {keys}] m, bool[{queries}, {keys}] c
    ) => (y{", z" if "z =" in end else ""}) {{
        qt = Transpose<perm = [0, 2, 1, 3]>(q)
        kt = Transpose<perm = [0, 2, 3, 1]>(k)
        vt = Transpose<perm = [0, 2, 1, 3]>(v)
        s = MatMul(qt, kt)
        {between or "x = Add(s, m)"}
        p = Softmax<axis = -1>(x)
        o = MatMul(p, vt)
        {end or "y = Transpose<perm = [0, 2, 1, 3]>(o)"}
    }}""")


CAUSAL = "low = Constant<value_float = -10000.0>() scale = Constant<value_float = 0.25>() t = Mul(s, scale) \
x = Where(c, t, low)"
CASES = {
    "mask": attention(1, 4, 128, 128),
    "no mask": attention(2, 2, 96, 100, between="x = Identity(s)"),
    "causal": attention(1, 3, 131, 131, between=CAUSAL),
    "other values and lengths": attention(2, 2, 70, 250, 24, 40),
    "one long head": attention(1, 1, 200, 200, 7, 5),
}


@pytest.mark.parametrize("proto", CASES.values(), ids=CASES.keys())
def test_attention_is_one_kernel_that_computes_the_same(proto: ModelProto) -> None:
    graph = optimize(load_model(proto))
    assert FUSED in ops(graph)
    assert len(partition(graph).kernels) == 1
    rng = np.random.default_rng(0)
    inputs = {}
    for name in graph.inputs:
        known = graph.types[name]
        assert known is not None
        random = rng.standard_normal(known.shape)
        inputs[name] = random > -1 if known.dtype == "bool" else random.astype(known.dtype)
    found = InferenceSession(compile_network(proto, threads=2)).run(None, inputs)
    for value, expected in zip(found, reference(proto, inputs).values(), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_causal", [0, 1])
def test_the_operator_of_onnx_is_fused(is_causal: int) -> None:
    """Its rows that see nothing are zeros, which is said after the product."""
    sizes = "float[1, 2, 160, 16]"
    text = f"({sizes} q, {sizes} k, {sizes} v) => (y) {{ y = Attention<is_causal = {is_causal}>(q, k, v) }}"
    proto = model(text, opset=23)
    graph = run(proto)
    assert ops(graph)[-2:] == [FUSED, "Where"]
    assert partition(graph).kernels[-1].task.name.endswith("softmaxmatmul_where")


def test_rows_that_see_nothing_are_zeros() -> None:
    text = """(float[2, 160, 16] q, float[2, 16, 160] k, float[2, 160, 16] v, bool[160, 1] blind) => (y) {
        s = MatMul(q, k) p = Softmax<axis = -1>(s) zero = Constant<value_float = 0.0>()
        safe = Where(blind, zero, p) y = MatMul(safe, v)
    }"""
    proto = model(text)
    assert FUSED in ops(optimize(load_model(proto)))
    rng = np.random.default_rng(0)
    inputs: dict[str, Any] = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in {"q": (2, 160, 16), "k": (2, 16, 160), "v": (2, 160, 16)}.items()
    }
    inputs["blind"] = rng.random((160, 1)) < 0.3
    (found,) = InferenceSession(compile_network(proto, threads=1)).run(None, inputs)
    np.testing.assert_allclose(found, reference(proto, inputs)["y"], rtol=1e-4, atol=1e-5)
    assert not found[:, inputs["blind"][:, 0]].any()


@pytest.mark.parametrize(
    ("batch", "heads", "queries", "keys"),
    [(1, 2, 31, 4096), (1, 64, 1, 1024), (1, 2, 64, 64), (1, 128, 64, 31)],
    ids=["few rows", "one query", "small scores", "few keys"],
)
def test_what_gains_nothing_stays_as_it_is(batch: int, heads: int, queries: int, keys: int) -> None:
    assert FUSED not in ops(optimize(load_model(attention(batch, heads, queries, keys))))


@pytest.mark.parametrize(
    "end",
    ["y = Identity(o) z = Neg(p)", "y = MatMul(p, o)"],
    ids=["weights are a result", "weights are read twice"],
)
def test_weights_that_something_else_reads_are_computed(end: str) -> None:
    assert FUSED not in ops(optimize(load_model(attention(1, 4, 128, 128, 16, 16, end=end))))


def test_scores_that_something_else_reads_are_a_kernel_of_their_own() -> None:
    proto = attention(1, 4, 128, 128, end="y = Identity(o) z = Neg(s)")
    graph = run(proto)
    assert len(partition(graph).kernels) > 1


@pytest.mark.parametrize("axis", [1, 2])
def test_a_softmax_along_another_axis_stays_as_it_is(axis: int) -> None:
    proto = attention(1, 4, 128, 128)
    (softmax,) = (node for node in proto.graph.node if node.op_type == "Softmax")
    softmax.attribute[0].i = axis
    assert FUSED not in ops(optimize(load_model(proto)))


def test_weights_on_the_right_stay_as_they_are() -> None:
    proto = attention(1, 4, 128, 128)
    (product,) = (node for node in proto.graph.node if node.output[0] == "o")
    product.input[0], product.input[1] = "qt", "p"
    proto.graph.input[0].type.tensor_type.shape.dim[3].dim_value = 128
    proto.graph.input[1].type.tensor_type.shape.dim[3].dim_value = 128
    assert FUSED not in ops(optimize(load_model(proto)))


def test_scores_that_no_product_computes_stay_as_they_are() -> None:
    text = "(float[4, 128, 128] s, float[4, 128, 16] v) => (y) { p = Softmax<axis = -1>(s) y = MatMul(p, v) }"
    assert FUSED not in ops(optimize(load_model(model(text))))


def test_a_value_that_comes_from_the_scores_is_not_taken_along() -> None:
    """The values are the scores themselves."""
    text = """(float[4, 128, 16] q, float[4, 16, 128] k) => (y) {
        s = MatMul(q, k) p = Softmax<axis = -1>(s) y = MatMul(p, s)
    }"""
    graph = run(model(text))
    assert len(partition(graph).kernels) == 2
