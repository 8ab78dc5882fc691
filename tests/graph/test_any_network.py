"""Networks that are valid and awkward: one tensor read twice, products side by side, dimensions of 1 between others.

They compile with no sketch dropped, which holds in all tests, and compute what the reference evaluator of ONNX does.
"""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tilewright.network import InferenceSession

HEADER = '<ir_version: 8, opset_import: ["" : 20]> net '
NETWORKS = {
    "a matrix times itself": "(float[24, 24] x) => (float[24, 24] y) { y = MatMul(x, x) }",
    "a matrix times itself, then scaled": """(float[40, 40] x) => (float[40, 40] y)
        <float s = {0.5}> { p = MatMul(x, x) q = Mul(p, s) y = Relu(q) }""",
    "batches of matrices times themselves": "(float[3, 17, 17] x) => (float[3, 17, 17] y) { y = MatMul(x, x) }",
    "a matrix times itself transposed": "(float[33, 20] x) => (float[33, 33] y) { y = Gemm <transB = 1> (x, x) }",
    "a matrix transposed times itself": "(float[20, 33] x) => (float[33, 33] y) { y = Gemm <transA = 1> (x, x) }",
    "Einsum of one operand twice": """(float[12, 30] x) => (float[12, 12] y)
        { y = Einsum <equation = "ik,jk->ij"> (x, x) }""",
    "Einsum of one operand three times": """(float[9, 9] x) => (float[9, 9] y)
        { y = Einsum <equation = "ij,jk,kl->il"> (x, x, x) }""",
    "cosine similarity": """(float[20, 48] x) => (float[20, 20] y) <int64[1] last = {-1}> {
        n = ReduceL2 (x, last) u = Div(x, n) t = Transpose <perm = [1, 0]> (u) y = MatMul(u, t) }""",
    "SwiGLU": """(float[8, 36] x, float[36, 72] v, float[36, 72] w) => (float[8, 72] y) {
        a = MatMul(x, v) s = Sigmoid(a) g = Mul(a, s) b = MatMul(x, w) y = Mul(g, b) }""",
    "products of the same operands side by side": """(float[16, 16] x) => (float[16, 16] y) {
        a = MatMul(x, x) e = Tanh(a) b = MatMul(x, x) f = Sigmoid(b) y = Add(e, f) }""",
    "three gates": """(float[4, 20] x, float[20, 24] u, float[20, 24] v, float[20, 24] w) => (float[4, 24] y) {
        a = MatMul(x, u) b = MatMul(x, v) c = MatMul(x, w) s = Sigmoid(a) t = Tanh(b) p = Mul(s, t) y = Add(p, c) }""",
    "one head": "(float[8, 1, 128, 32] x, float[8, 1, 32, 128] w) => (float[8, 1, 128, 128] y) { y = MatMul(x, w) }",
    "one row": "(float[4, 1, 30] x, float[4, 30, 40] w) => (float[4, 1, 40] y) { y = MatMul(x, w) }",
    "one column": "(float[4, 3, 40, 30] x, float[4, 3, 30, 1] w) => (float[4, 3, 40, 1] y) { y = MatMul(x, w) }",
    "a column of pixels": """(float[2, 3, 16, 1] x, float[8, 3, 3, 1] w) => (float[2, 8, 14, 1] y)
        { y = Conv(x, w) }""",
    "one pixel": "(float[2, 8, 1, 1] x, float[16, 8, 1, 1] w) => (float[2, 16, 1, 1] y) { y = Conv(x, w) }",
    "one pixel of integers": """(uint8[1, 40, 1, 1] x, uint8[3, 40, 1, 1] w) => (int32[1, 3, 1, 1] y)
        { y = ConvInteger(x, w) }""",
    "running sums": "(float[6, 1, 20, 9] x) => (float[6, 1, 20, 9] y) <int64 a = {2}> { y = CumSum(x, a) }",
    "the sum of a column": "(float[500, 1] x) => (float y) { y = ReduceSum <keepdims = 0> (x) }",
    "the mean of a column": "(float[500, 1] x) => (float[1, 1] y) { y = ReduceMean(x) }",
    "the largest of a row": "(float[1, 1, 300] x) => (float[1, 1, 1] y) { y = ReduceMax(x) }",
    "the norm of one number": "(float[1, 1] x) => (float y) { y = ReduceL2 <keepdims = 0> (x) }",
}


@pytest.mark.parametrize("text", NETWORKS.values(), ids=NETWORKS.keys())
def test_an_awkward_network_computes_what_the_reference_computes(text: str) -> None:
    model = onnx.parser.parse_model(HEADER + text)
    onnx.checker.check_model(model)
    rng = np.random.default_rng(0)
    feed = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        feed[value.name] = (rng.standard_normal(shape) if dtype == np.float32 else rng.integers(0, 9, shape)).astype(
            dtype
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no part of it is left to a fallback
        (found,) = InferenceSession(model, threads=2).run(None, feed)
    (expected,) = ReferenceEvaluator(model).run(None, feed)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_place_that_all_lanes_share_may_be_read_under_a_mask() -> None:
    """Found by random graphs: the place was loaded lane by lane, and the element at it as if it were one."""
    text = """(int64[33, 19] x, int64[2, 3, 1] i, bool[2, 3, 19] c, int64[2, 19] w) => (int64[2, 2, 3] y) {
        g = GatherND(x, i) s = Where(c, i, g) y = Einsum <equation = "bij,kj->bki"> (s, w) }"""
    rng = np.random.default_rng(0)
    feed = {
        "x": rng.integers(-9, 9, (33, 19)),
        "i": rng.integers(-33, 33, (2, 3, 1)),
        "c": rng.integers(0, 2, (2, 3, 19)).astype(bool),
        "w": rng.integers(-9, 9, (2, 19)),
    }
    model = onnx.parser.parse_model(HEADER + text)
    (found,) = InferenceSession(model).run(None, feed)
    np.testing.assert_array_equal(found, ReferenceEvaluator(model).run(None, feed)[0])
