"""Dimensions of zero: arrays without elements go in, through and out of networks, and what is computed from nothing."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tilewright.deploy.artifact import save
from tilewright.network import InferenceSession, compile_network, partition_network

HEADER = '<ir_version: 8, opset_import: ["" : 20]> net '


def run(text: str, folder: Path) -> list[Any]:
    """The outputs for inputs of ones, of a session that is compiled and of one that is loaded, which are the same."""
    model = onnx.parser.parse_model(HEADER + text)
    feed = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        feed[value.name] = np.ones([dim.dim_value for dim in tensor.shape.dim], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fallbacks, and NumPy's of the mean of nothing
        compiled = compile_network(model, threads=1)
        save(compiled, folder / "net.tw")
        fresh, loaded = (InferenceSession(m).run(None, feed) for m in (compiled, folder / "net.tw"))
    for a, b in zip(fresh, loaded, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, output in zip(fresh, model.graph.output, strict=True):
        assert a.dtype == onnx.helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type)
        assert list(a.shape) == [dim.dim_value for dim in output.type.tensor_type.shape.dim]
    return fresh


@pytest.mark.parametrize(
    "text",
    [
        "(float[0, 4] x) => (float[0, 4] y) { a = Relu(x) y = Exp(a) }",
        "(float[1, 3] x, float[0, 1] z) => (float[0, 3] y) { y = Add(x, z) }",
        "(float[0, 3] x) => (int64[0, 3] y) { y = Cast <to = 7> (x) }",
        "(bool[0] c, float[1] x) => (float[0] y) { y = Where(c, x, x) }",
        "(float[0, 2] x) => (float[0, 2] y) <float[2, 2] w = {1, 2, 3, 4}> { y = MatMul(x, w) }",
        "(float[0, 1, 3, 3] x) => (float[0, 1, 2, 2] y) <float[1, 1, 2, 2] w = {1, 2, 3, 4}> { y = Conv(x, w) }",
        "(float[0, 1, 3] x) => (float[0, 1, 4] y) <float[1, 1, 2] w = {1, 2}> { y = ConvTranspose(x, w) }",
        "(float[0, 2, 4, 4] x) => (float[0, 2, 3, 3] y) { y = MaxPool <kernel_shape = [2, 2]> (x) }",
        "(float[0, 2, 4, 4] x) => (float[0, 2, 1, 1] y) { y = GlobalAveragePool(x) }",
        "(float[0, 2, 3] x) => (float[0, 2, 3] y) <float[2] s = {1, 2}> { y = BatchNormalization(x, s, s, s, s) }",
        "(float[0, 3] x) => (float[0, 3] y) <float[3] s = {1, 2, 3}> { y = LayerNormalization(x, s) }",
        "(float[2, 0] x) => (float[2, 0] y) { y = Softmax(x) }",
        "(float[0, 3] x) => (float[0, 3] y) { y = Softmax <axis = 0> (x) }",
        "(float[0, 3] x) => (float[0, 1] y) <int64[1] axes = {1}> { y = ReduceMax(x, axes) }",
        "(float[0, 3] x) => (int64[0, 1] y) { y = ArgMax <axis = 1> (x) }",
        "(float[4, 3] x, int64[0] i) => (float[0, 3] y) { y = Gather(x, i) }",
        "(float[0, 3] x, int64[0] i) => (float[0, 3] y) { y = Gather(x, i) }",
        "(float[0, 3, 2] x) => (float[2, 0, 3] y) { y = Transpose <perm = [2, 0, 1]> (x) }",
        "(float[0, 3] x) => (float[3, 0] y) <int64[2] s = {3, 0}> { y = Reshape <allowzero = 1> (x, s) }",
        "(float[1, 3] x) => (float[0, 3] y) <int64[2] s = {0, 3}> { y = Expand(x, s) }",
        "(float[1, 3] x) => (float[0, 3] y) <int64[2] s = {0, 1}> { y = Tile(x, s) }",
        "(float[0, 2, 4, 4] x) => (float[0, 2, 8, 8] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> { y = Resize(x, , s) }",
        "(float[2, 3] x) => (float[2, 0] v, int64[2, 0] i) <int64[1] k = {0}> { v, i = TopK(x, k) }",
    ],
)
def test_nothing_comes_out_of_nothing(text: str, tmp_path: Path) -> None:
    """And it takes neither a kernel nor the reference evaluator."""
    assert all(result.size == 0 for result in run(text, tmp_path))
    assert partition_network(onnx.parser.parse_model(HEADER + text)).parts == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(float[2, 0] x, float[0, 3] w) => (float[2, 3] y) { y = MatMul(x, w) }", np.zeros((2, 3))),
        (
            "(float[2, 0] x, float[0, 3] w, float[3] b) => (float[2, 3] y) { z = Gemm(x, w, b) y = Neg(z) }",
            -np.ones((2, 3)),
        ),
        ('(float[2, 0] x, float[0] w) => (float[2] y) { y = Einsum <equation = "ij,j->i"> (x, w) }', np.zeros(2)),
        ("(float[2, 0] x) => (float[2, 1] y) <int64[1] axes = {1}> { y = ReduceSum(x, axes) }", np.zeros((2, 1))),
        ("(float[2, 0] x) => (float[2, 1] y) <int64[1] axes = {1}> { y = ReduceProd(x, axes) }", np.ones((2, 1))),
        (
            "(float[2, 0] x) => (float[2, 1] y) <int64[1] axes = {1}> { y = ReduceMax(x, axes) }",
            np.full((2, 1), -np.inf),
        ),
        (
            "(float[2, 0] x) => (float[2, 1] y) <int64[1] axes = {1}> { y = ReduceMin(x, axes) }",
            np.full((2, 1), np.inf),
        ),
        (
            "(float[2, 0] x) => (float[2, 1] y) <int64[1] axes = {1}> { y = ReduceMean(x, axes) }",
            np.full((2, 1), np.nan),
        ),
        ("(float[2, 0] x, float[2, 2] z) => (float[2, 2] y) { y = Concat <axis = 1> (x, z) }", np.ones((2, 2))),
        ("(float[0, 3] x) => (float[2, 3] y) <int64[4] pads = {1, 0, 1, 0}> { y = Pad(x, pads) }", np.zeros((2, 3))),
        ("(float[0, 3] x) => (int64[2] y) { y = Shape(x) }", [0, 3]),
        ("(float[0, 3] x) => (int64 y) { y = Size(x) }", 0),
    ],
)
def test_what_is_computed_from_nothing(text: str, expected: Any, tmp_path: Path) -> None:
    (result,) = run(text, tmp_path)
    np.testing.assert_array_equal(result, expected)


def test_values_without_elements_inside_a_network(tmp_path: Path) -> None:
    """They take no part in what the kernels around them compute."""
    text = """(float[2, 3] x) => (float[2, 3] y, float[2, 0] nothing, float[2, 3] all)
    <int64[1] o = {0}, int64[1] axis = {1}, int64[2] parts = {0, 3}> {
        s = Slice(x, o, o, axis)
        nothing = Exp(s)
        r = Neg(x)
        y = Concat <axis = 1> (nothing, r)
        none, rest = Split <axis = 1> (r, parts)
        all = Relu(rest)
    }"""
    y, nothing, everything = run(text, tmp_path)
    np.testing.assert_array_equal(y, -np.ones((2, 3)))
    assert nothing.shape == (2, 0)
    np.testing.assert_array_equal(everything, np.zeros((2, 3)))
