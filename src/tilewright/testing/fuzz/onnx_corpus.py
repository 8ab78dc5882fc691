"""The models that the fuzzer of ONNX files changes: ONNX's own cases, and some with what those do not have."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import ModelProto, TensorProto
from onnx.backend.test.loader import load_model_tests

WEIGHTS_FILE = "weights.bin"
WEIGHTS = np.linspace(-1, 1, 256, dtype=np.float32).tobytes()
"""What is in the file beside a model that keeps its weights there."""

_LARGEST_MODEL_BYTES = 40_000
_LARGEST_CONSTANT = 64
# So that one file in ten begins with one of those that are written here.
_OWN_TIMES = 16

# Written as text where that says everything; each has something that no case of ONNX has.
_TEXTS = (
    """<ir_version: 8, opset_import: ["" : 9]> upsample (float[1,2,3,3] x) => (y)
    <float[4] s = {1., 1., 2., 2.}> { y = Upsample <mode = "nearest"> (x, s) }""",
    """<ir_version: 3, opset_import: ["" : 7]> old (float[2,3] x, float[3] w) => (y)
    <float[3] w = {1., 2., 3.}> { a = Mul(x, w) b = Softmax(a) c = Dropout(b) y = Sum(c, x) }""",
    """<ir_version: 3, opset_import: ["" : 8]> old_conv (float[1,3,8,8] x, float[4,3,3,3] w, float[4] b) => (y)
    { c = Conv <pads = [1,1,1,1]> (x, w, b) r = Relu(c) p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (r)
      f = Flatten(p) s = Slice <starts = [0,0], ends = [1,8]> (f) y = Clip <min = 0.0, max = 6.0> (s) }""",
    """<ir_version: 8, opset_import: ["" : 17]> shapes (float[2,3,4] x, int64[2] i) => (y, z)
    <int64[1] n = {-1}, int64 zero = {0}> { s = Shape(x) g = Gather(s, zero) u = Unsqueeze(g, n)
      t = Concat <axis = 0> (u, n) r = Reshape(x, t) y = Softmax(r) z = Gather(x, i) }""",
    """<ir_version: 8, opset_import: ["" : 18, "local" : 1]> functions (float[4,4] x) => (y)
    { a = local.twice(x) y = local.scaled <factor = 2.0> (a) }
    <domain: "local", opset_import: ["" : 18, "local" : 1]> twice (v) => (w) { w = Add(v, v) }
    <domain: "local", opset_import: ["" : 18, "local" : 1]> scaled <factor> (v) => (w)
    { f = Constant <value_float: float = @factor> () t = local.twice(v) w = Mul(t, f) }""",
    """<ir_version: 8, opset_import: ["" : 17]> branches (float[3] x, bool c, float[3] b) => (y)
    { y = If (c) <then_branch = yes () => (float[3] p) { p = Add(x, b) },
                  else_branch = no () => (float[3] q) { t = Neg(x) q = Identity(t) }> }""",
    """<ir_version: 8, opset_import: ["" : 17]> counted (float[3] x, bool c) => (y, all)
    <int64 n = {4}, bool yes = {1}> { y, all = Loop (n, c, x) <body = step (int64 i, bool go, float[3] s)
      => (bool on, float[3] t, float[3] u) { on = Identity(yes) t = Add(s, x) u = Relu(t) }> }""",
    """<ir_version: 8, opset_import: ["" : 17]> scanned (float[2] s, float[5,2] x) => (y, all)
    { y, all = Scan <num_scan_inputs = 1, body = step (float[2] a, float[2] b) => (float[2] c, float[2] d)
      { c = Add(a, b) d = Identity(c) }> (s, x) }""",
    """<ir_version: 8, opset_import: ["" : 17]> sequences (float[4,2] x, int64 i) => (y)
    { s = SplitToSequence <axis = 0> (x) t = SequenceInsert(s, x) y = SequenceAt(t, i) }""",
    """<ir_version: 8, opset_import: ["" : 17]> network (float[1,3,8,8] x, float[4,3,3,3] w, float[64,5] m) => (y, k)
    <float[4] b = {1., 2., 3., 4.}, int64[2] shape = {1, -1}>
    { c = Conv <kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]> (x, w, b)
      n = BatchNormalization(c, b, b, b, b) r = Relu(n) t = Transpose <perm = [0,2,3,1]> (r)
      f = Reshape(t, shape) y = MatMul(f, m) k = ArgMax <axis = 1> (y) }""",
    """<ir_version: 8, opset_import: ["" : 17]> quantized (float[2,4] x, int8[4,3] w) => (y)
    <float s = {0.1}, uint8 z = {128}, int8 zw = {0}>
    { q = QuantizeLinear(x, s, z) p = QLinearMatMul(q, s, z, w, s, zw, s, z) y = DequantizeLinear(p, s, z) }""",
    """<ir_version: 8, opset_import: ["" : 11]> resized (float[1,1,4,4] x) => (y)
    <float[4] s = {1., 1., 2., 2.}> { y = Resize <mode = "linear"> (x, , s) }""",
    """<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]> fused (float[1,3,8,8] x, float[2,4,8] h) => (y, z)
    <int64[4] k = {4, 3, 3, 3}, float[8] g = {1., 2., 3., 4., 5., 6., 7., 8.}>
    { w = ConstantOfShape <value = float[1] {0.5}> (k) c = com.microsoft.FusedConv <activation = "Relu"> (x, w)
      t = com.microsoft.FusedMatMul <transB = 1, alpha = 0.5> (h, h) u = MatMul(t, h)
      l, , , v = com.microsoft.SkipLayerNormalization(u, h, g) n = LayerNormalization(v, g)
      y = com.microsoft.BiasGelu(n, g) z = com.microsoft.QuickGelu(c) }""",
    """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> attention
    (float[2,3,4] x, float[4,12] w, float[12] b, int32[2] m, int64[1] p, float[5,1] c, float[5,1] s, uint8[2,1,2] n)
    => (y, z, q) <float[2] scales = {0.5, 0.25}, float scale = {0.1}, uint8 zero = {3}>
    { a = com.microsoft.Attention <num_heads = 2> (x, w, b, m)
      t = com.microsoft.MultiHeadAttention <num_heads = 2> (a, x, x)
      r = com.microsoft.RotaryEmbedding <num_heads = 2> (t, p, c, s)
      y = com.microsoft.MatMulNBits <K = 4, N = 2, bits = 4, block_size = 4> (r, n, scales)
      z = QuantizeLinear(y, scale, zero) q = com.microsoft.QLinearAdd(z, scale, zero, z, scale, zero, scale, zero) }""",
    """<ir_version: 8, opset_import: ["" : 17]> twice (float[3] x) => (y, y, x) { t = Neg(x) y = Identity(t) }""",
)


def own_models() -> tuple[bytes, ...]:
    """Models written here: old operator sets, functions, branches, loops, sequences, data beside the model."""
    parsed = [onnx.parser.parse_model(text) for text in _TEXTS]
    return tuple(model.SerializeToString() for model in (*parsed, _sparse_model(), _external_model()))


def all_models() -> tuple[bytes, ...]:
    """Those and ONNX's own cases: of every operator, as exported by PyTorch, and some with constants for inputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of the arithmetic that gives the expected outputs
        found = [*own_models() * _OWN_TIMES, *_cases()]
    return tuple(model for model in found if len(model) <= _LARGEST_MODEL_BYTES)


def _cases() -> Iterator[bytes]:
    for case in sorted(load_model_tests(kind="node"), key=lambda case: str(case.name)):
        if not case.name.endswith("_expanded"):
            yield case.model.SerializeToString()
            inputs = case.data_sets[0][0] if case.data_sets else ()
            yield _with_constants(case.model, inputs).SerializeToString()
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        for case in sorted(load_model_tests(kind=kind), key=lambda case: str(case.name)):
            yield Path(case.model_dir, "model.onnx").read_bytes()


def _with_constants(model: ModelProto, inputs: Any) -> ModelProto:
    """The model with its short inputs, such as axes and shapes, as constants: only so most of them can be compiled."""
    changed = ModelProto()
    changed.CopyFrom(model)
    for value, given in zip(model.graph.input[1:], inputs[1:], strict=False):
        if isinstance(given, np.ndarray) and given.ndim <= 1 and given.size <= _LARGEST_CONSTANT:
            changed.graph.input.remove(value)
            changed.graph.initializer.append(onnx.numpy_helper.from_array(given, value.name))
    return changed


def _sparse_model() -> ModelProto:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> sparse (float[2,3] x) => (y) { y = Add(x, s) }'
    )
    values = onnx.helper.make_tensor("s", TensorProto.FLOAT, [2], [5.0, 7.0])
    indices = onnx.helper.make_tensor("indices", TensorProto.INT64, [2], [1, 5])
    model.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2, 3]))
    return model


def _external_model() -> ModelProto:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> external (float[2,8] x) => (y) { h = MatMul(x, w) y = Add(h, b) }'
    )
    for name, shape, offset in (("w", [8, 4], 0), ("b", [4], 128)):
        tensor = model.graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        entries = {"location": WEIGHTS_FILE, "offset": offset, "length": 4 * int(np.prod(shape))}
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=str(value))
    return model
