"""Quantized networks become products of bytes that give what the model says, up to one step of the scale."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto
from onnx.parser import parse_model

from tests.graph.onnx_models import model, node, reference, tensor
from tilewright.graph.onnx import load_model
from tilewright.graph.passes import optimize
from tilewright.graph.verify import verifying
from tilewright.partition import partition
from tilewright.partition.parts import Partition
from tilewright.testing.partitions import run_partition

X_SCALE, Y_SCALE = 0.02, 0.07


class Qdq:
    """A model of QuantizeLinear and DequantizeLinear, as quantizers write it."""

    def __init__(self, shape: tuple[int, ...], dtype: Any = np.uint8, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Any] = {}
        self.input = tensor("x", list(shape))
        self.zero = 3 if dtype is np.int8 else 131

    def step(self, source: str, name: str, scale: float, zero: int | None = None) -> str:
        """The value rounded to steps of a scale."""
        point = self.zero if zero is None else zero
        self.constants |= {f"{name}.s": np.float32(scale), f"{name}.z": self.dtype(point)}
        parameters = [f"{name}.s", f"{name}.z"]
        self.nodes += [
            node("QuantizeLinear", [source, *parameters], [f"{name}.q"]),
            node("DequantizeLinear", [f"{name}.q", *parameters], [name]),
        ]
        return name

    def weights(self, name: str, shape: tuple[int, ...], axis: int | None, dtype: Any = np.int8) -> str:
        low, high, zero = (-127, 128, 0) if dtype is np.int8 else (0, 256, 128)
        count = 1 if axis is None else shape[axis]
        scale = self.rng.uniform(0.001, 0.02, count).astype(np.float32)
        points = np.full(count, zero, dtype)
        self.constants |= {
            f"{name}.q": self.rng.integers(low, high, shape).astype(dtype),
            f"{name}.s": scale[0] if axis is None else scale,
            f"{name}.z": points[0] if axis is None else points,
        }
        attributes = {} if axis is None else {"axis": axis}
        self.nodes.append(node("DequantizeLinear", [f"{name}.q", f"{name}.s", f"{name}.z"], [name], **attributes))
        return name

    def bias(self, name: str, count: int) -> str:
        self.constants |= {
            f"{name}.q": self.rng.integers(-20000, 20000, count).astype(np.int32),
            f"{name}.s": self.rng.uniform(1e-4, 2e-4, count).astype(np.float32),
            f"{name}.z": np.zeros(count, np.int32),
        }
        self.nodes.append(node("DequantizeLinear", [f"{name}.q", f"{name}.s", f"{name}.z"], [name], axis=0))
        return name

    def op(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(node(op, inputs, [output], **attributes))
        return output

    def model(self, output: str) -> ModelProto:
        return model(self.nodes, [self.input], [output], self.constants, opset=21)


def check(proto: ModelProto, step: float, most_different: float = 0.05) -> Partition:
    """The kernels of the model; what they compute differs from what it says by a step here and there."""
    with verifying():
        parts = partition(optimize(load_model(proto)))
    shape = [dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim]
    inputs = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    (expected,) = reference(proto, inputs).values()
    (got,) = run_partition(parts, inputs).values()
    assert got.dtype == expected.dtype
    assert len(np.unique(expected)) > 8, "the model says nothing"
    difference = np.abs(got.astype(np.float64) - expected)
    assert difference.max() <= 1.001 * step, f"{difference.max() / step} steps"
    assert np.mean(difference > 0.5 * step) <= most_different
    return parts


def ops(parts: Partition) -> list[str]:
    return [n.op for part in parts.kernels for n in part.nodes]


def convolution(dtype: Any, weights: Any, per_channel: bool, shape: Any, filters: Any, **attributes: Any) -> ModelProto:
    net = Qdq(shape, dtype)
    x = net.step("x", "h", X_SCALE)
    w = net.weights("w", filters, 0 if per_channel else None, weights)
    y = net.op("Conv", [x, w, net.bias("b", filters[0])], "c", **attributes)
    return net.model(net.step(y, "y", Y_SCALE * math.sqrt(math.prod(filters[1:])) / 4))


CONVOLUTIONS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "3x3": ((1, 8, 7, 6), (20, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
    "colours": ((2, 3, 9, 8), (16, 3, 5, 5), {"pads": [2, 1, 0, 2], "strides": [2, 1]}),
    "odd channels": ((1, 5, 6, 6), (7, 5, 1, 1), {}),
    "one channel": ((1, 1, 6, 6), (4, 1, 3, 3), {"auto_pad": "SAME_UPPER"}),
    "dilated": ((1, 4, 9, 9), (5, 4, 3, 3), {"dilations": [2, 2], "pads": [2, 2, 2, 2]}),
    "groups of words": ((1, 8, 5, 5), (6, 4, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    "depthwise": ((1, 20, 6, 5), (20, 1, 3, 3), {"group": 20, "pads": [1, 1, 1, 1]}),
    "one dimension": ((1, 8, 11), (9, 8, 3), {"pads": [1, 1]}),
    "three dimensions": ((1, 4, 4, 5, 3), (6, 4, 3, 3, 1), {"pads": [1, 1, 0, 1, 1, 0]}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_sums_bytes(name: str) -> None:
    shape, filters, attributes = CONVOLUTIONS[name]
    step = Y_SCALE * math.sqrt(math.prod(filters[1:])) / 4
    for dtype, per_channel in ((np.uint8, True), (np.int8, False)):
        parts = check(convolution(dtype, np.int8, per_channel, shape, filters, **attributes), step)
        found = [op for op in ops(parts) if op.startswith("Conv")]
        assert found == (["ConvBytes"] if name == "depthwise" else ["ConvWords"])


def test_weights_may_be_unsigned_around_their_middle() -> None:
    shape, filters, attributes = CONVOLUTIONS["3x3"]
    step = Y_SCALE * math.sqrt(math.prod(filters[1:])) / 4
    assert "ConvWords" in ops(check(convolution(np.int8, np.uint8, True, shape, filters, **attributes), step))


def test_groups_that_are_no_words_and_zero_points_of_weights_stay_floats() -> None:
    grouped = convolution(np.uint8, np.int8, True, (1, 6, 5, 5), (6, 3, 3, 3), group=2)
    assert "ConvWords" not in ops(check(grouped, 1.0))
    net = Qdq((2, 8))
    w = net.weights("w", (8, 6), None)
    net.constants["w.z"] = np.int8(5)
    y = net.op("MatMul", [net.step("x", "h", X_SCALE), w], "c")
    assert "MatMulWords" not in ops(check(net.model(net.step(y, "y", Y_SCALE)), Y_SCALE))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(
    ("op", "shape", "transposed"), [("MatMul", (2, 3, 10), 0), ("Gemm", (5, 7), 1), ("Gemm", (4, 8), 0)]
)
def test_a_product_sums_bytes(op: str, shape: tuple[int, ...], transposed: int, dtype: Any) -> None:
    net = Qdq(shape, dtype)
    x = net.step("x", "h", X_SCALE)
    w = net.weights("w", (11, shape[-1]) if transposed else (shape[-1], 11), 0 if transposed else 1)
    if op == "Gemm":
        y = net.op("Gemm", [x, w, net.bias("b", 11)], "c", transB=transposed)
    else:
        y = net.op("Add", [net.op("MatMul", [x, w], "p"), net.bias("b", 11)], "c")
    parts = check(net.model(net.step(y, "y", Y_SCALE)), Y_SCALE)
    assert ops(parts).count("MatMulWords") == 1
    assert "MatMul" not in ops(parts)


def block(scale: float, channels: int = 8) -> ModelProto:
    """Two convolutions with a shortcut around them, as those of a residual network, and a pool."""
    net = Qdq((1, channels, 8, 8), np.int8)
    x = net.step("x", "h", X_SCALE * scale)
    for n in range(2):
        w = net.weights(f"w{n}", (channels, channels, 3, 3), 0)
        net.constants[f"w{n}.s"] *= np.float32(0.2)
        y = net.op("Conv", [x, w, net.bias(f"b{n}", channels)], f"c{n}", pads=[1, 1, 1, 1])
        y = net.op("Relu", [y], f"r{n}")
        y = net.step(y, f"y{n}", 0.04 * scale, -128)
        total = net.step(net.op("Add", [y, x], f"a{n}"), f"s{n}", 0.06 * scale)
        x = net.step(net.op("MaxPool", [total], f"m{n}", kernel_shape=[2, 2], strides=[2, 2]), f"p{n}", 0.06 * scale)
    return net.model(x)


def test_a_shortcut_and_a_pool_stay_bytes_and_scales_are_operands() -> None:
    parts = check(block(1.0), 0.06, most_different=0.1)
    kernels = [part.task for part in parts.kernels]
    read = {t.dtype for task in kernels[-3:] for t in task.inputs if not t.is_constant}
    assert read == {"int32", "uint8"}, "what goes from kernel to kernel are bytes, or words of them"
    others = partition(optimize(load_model(block(1.3)))).kernels
    assert [part.task.hash for part in others][1:-1] == [task.hash for task in kernels][1:-1]


@pytest.mark.parametrize("shape", [(), (1,)])  # the second is no scalar, and is written by some tools
def test_bounds_that_rounding_does_not_imply_are_kept(shape: tuple[int, ...]) -> None:
    net = Qdq((1, 8, 6, 6))
    x = net.step("x", "h", X_SCALE)
    y = net.op("Conv", [x, net.weights("w", (8, 8, 1, 1), 0)], "c")
    net.constants |= {"low": np.full(shape, -0.5, np.float32), "high": np.full(shape, 1.5, np.float32)}
    y = net.op("Clip", [y, "low", "high"], "k")
    check(net.model(net.step(y, "y", 0.02, 100)), 0.02)


def test_a_float_that_others_read_is_there_for_them() -> None:
    net = Qdq((3, 8))
    y = net.op("MatMul", [net.step("x", "h", X_SCALE), net.weights("w", (8, 16), 1)], "c")
    both = net.op("Add", [net.step(y, "y", Y_SCALE), net.op("Sigmoid", [y], "g")], "z")
    check(net.model(both), Y_SCALE)


def test_int8_that_the_model_gives_away_is_int8() -> None:
    net = Qdq((3, 8), np.int8)
    y = net.op("MatMul", [net.step("x", "h", X_SCALE), net.weights("w", (8, 16), 1)], "c")
    net.step(y, "y", Y_SCALE)
    proto = net.model("y.q")
    proto.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y.q", TensorProto.INT8, [3, 16]))
    check(proto, 1.0)


def quantized(
    rng: np.random.Generator, op: str, w_dtype: Any = np.int8, y_zero: int = 120, w_zero: int | None = None
) -> ModelProto:
    """A QLinearConv or QLinearMatMul of the input, rounded to uint8."""
    is_conv = op == "QLinearConv"
    shape, filters = ((1, 6, 5, 5), (7, 6, 3, 3)) if is_conv else ((4, 9), (9, 7))
    middle = 128 if w_dtype is np.uint8 else 0
    constants = {
        "xs": np.float32(0.02), "xz": np.uint8(100),
        "w": (rng.integers(-127, 128, filters) + middle).astype(w_dtype),
        "ws": rng.uniform(0.002, 0.02, 7).astype(np.float32),
        "wz": np.full(7, middle if w_zero is None else w_zero, w_dtype),
        "ys": np.float32(0.2), "yz": np.uint8(y_zero), "b": rng.integers(-3000, 3000, 7).astype(np.int32),
    }  # fmt: skip
    inputs = ["q", "xs", "xz", "w", "ws", "wz", "ys", "yz", *(["b"] if is_conv else [])]
    if not is_conv:
        del constants["b"]
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], ["q"]), node(op, inputs, ["y"])]
    return model(nodes, [tensor("x", list(shape))], ["y"], constants, opset=21)


@pytest.mark.parametrize("w_dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("op", ["QLinearConv", "QLinearMatMul"])
def test_operators_of_quantized_values_sum_bytes(op: str, w_dtype: Any) -> None:
    parts = check(quantized(np.random.default_rng(0), op, w_dtype), 1.0)
    assert ops(parts).count("ConvWords" if op == "QLinearConv" else "MatMulWords") == 1


@pytest.mark.parametrize("op", ["ConvInteger", "MatMulInteger", "depthwise", "groups"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("x_dtype", "w_dtype", "is_odd"), [
    (np.uint8, np.int8, False), (np.uint8, np.uint8, True), (np.int8, np.int8, True), (np.int8, np.uint8, False),
])  # fmt: skip
def test_sums_of_integers_are_exact(op: str, dynamic: bool, x_dtype: Any, w_dtype: Any, is_odd: bool) -> None:
    """`is_odd` weights have zero points that are not in the middle, another for each output."""
    rng = np.random.default_rng(2)
    shape, filters, group = {
        "ConvInteger": ((1, 6, 5, 5), (7, 6, 3, 3), 1),
        "MatMulInteger": ((4, 9), (9, 7), 1),
        "depthwise": ((1, 6, 5, 4), (12, 1, 3, 3), 6),
        "groups": ((1, 8, 5, 4), (6, 4, 3, 3), 2),
    }[op]
    is_product = op == "MatMulInteger"
    middle = 128 if w_dtype is np.uint8 else 0
    num_outputs = filters[-1] if is_product else filters[0]
    zeros = (middle + rng.integers(-99, 99, num_outputs)) if is_odd else np.full((), middle)
    constants = {"w": _any_bytes(rng, filters, w_dtype), "w_zero": zeros.astype(w_dtype), "zero": x_dtype(77)}
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(x_dtype))
    inputs = [tensor("q", list(shape), kind)]
    given = {"q": _any_bytes(rng, shape, x_dtype)}
    if dynamic:
        inputs.append(tensor("zero", [], kind))
        given["zero"] = np.array(constants.pop("zero"))
    attributes = {} if is_product else {"pads": [1, 1, 0, 1], "group": group}
    name = "MatMulInteger" if is_product else "ConvInteger"
    proto = model([node(name, ["q", "w", "zero", "w_zero"], ["y"], **attributes)], inputs, ["y"], constants, opset=21)
    with verifying():
        parts = partition(optimize(load_model(proto)))
    x, w = given["q"].astype(np.int64) - 77, constants["w"].astype(np.int64)
    if is_product:
        expected = x @ (w - zeros)
    else:
        moved = w - zeros.reshape(-1, 1, 1, 1)
        expected = _convolved(np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 1))), moved, group)
    np.testing.assert_array_equal(run_partition(parts, given)["y"], expected)
    own = [part for part in ops(parts) if part.endswith(("Words", "Bytes"))]
    assert bool(own) == (op != "groups" or not is_odd)


def _any_bytes(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


def _convolved(x: Any, w: Any, group: int) -> Any:
    """A convolution in NumPy, of data that is padded."""
    outputs, (rows, columns) = [], np.array(x.shape[2:]) - w.shape[2:] + 1
    for f, filters in enumerate(w):
        first = f // (len(w) // group) * w.shape[1]
        total = np.zeros((len(x), rows, columns), np.int64)
        for c, r, s in np.ndindex(filters.shape):
            total += x[:, first + c, r : r + rows, s : s + columns] * filters[c, r, s]
        outputs.append(total)
    return np.stack(outputs, axis=1)


def test_a_network_of_a_dynamic_quantizer_sums_bytes_and_moves_none() -> None:
    rng = np.random.default_rng(8)
    constants = {
        "w0": _any_bytes(rng, (8, 3, 3, 3), np.uint8), "z0": np.uint8(120), "s0": np.float32(0.01),
        "w1": _any_bytes(rng, (5, 8, 1, 1), np.int8), "z1": np.int8(0), "s1": np.float32(0.02),
    }  # fmt: skip
    nodes = []
    for n, source in enumerate(("x", "a0")):
        nodes += [
            node("DynamicQuantizeLinear", [source], [f"q{n}", f"xs{n}", f"xz{n}"]),
            node("ConvInteger", [f"q{n}", f"w{n}", f"xz{n}", f"z{n}"], [f"i{n}"], pads=[1 - n] * 4),
            node("Cast", [f"i{n}"], [f"f{n}"], to=TensorProto.FLOAT),
            node("Mul", [f"xs{n}", f"s{n}"], [f"m{n}"]),
            node("Mul", [f"f{n}", f"m{n}"], [f"y{n}"]),
            node("Relu", [f"y{n}"], [f"a{n}"]),
        ]
    proto = model(nodes, [tensor("x", [1, 3, 6, 7])], ["a1"], constants, opset=21)
    with verifying():
        parts = partition(optimize(load_model(proto)))
    x = rng.normal(size=(1, 3, 6, 7)).astype(np.float32)
    expected = reference(proto, {"x": x})["a1"]
    found = run_partition(parts, {"x": x})["a1"]
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.01 * np.sqrt(np.mean(expected**2))
    assert ops(parts).count("ConvWords") == 3  # and once for the sums of the data
    assert ops(parts).count("Transpose") <= 2  # of the input and of the output


@pytest.mark.parametrize("op", ["QLinearConv", "QLinearMatMul"])
def test_zero_points_that_are_not_in_the_middle_are_summed_as_bytes_too(op: str) -> None:
    parts = check(quantized(np.random.default_rng(1), op, np.uint8, w_zero=100), 1.0)
    assert ops(parts).count("ConvWords" if op == "QLinearConv" else "MatMulWords") == 2


def test_a_sum_of_scalars() -> None:
    proto = parse_model("""<ir_version: 8, opset_import: ["" : 13]>
    g (float[1] x) => (float[1] y) <float s = {0.1}, uint8 z = {3}, int64[1] axes = {0}> {
        a = Squeeze(x, axes)
        q = QuantizeLinear(a, s, z)
        d = DequantizeLinear(q, s, z)
        c = Add(d, d)
        r = QuantizeLinear(c, s, z)
        e = DequantizeLinear(r, s, z)
        y = Unsqueeze(e, axes)
    }""")
    (got,) = run_partition(partition(optimize(load_model(proto))), {"x": np.array([1.23], np.float32)}).values()
    np.testing.assert_allclose(got, [2.4], rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 6), (5, 1), (5, 6), ()])
@pytest.mark.parametrize("is_rounded", [False, True])
def test_the_bias_of_a_product_may_have_rows(shape: tuple[int, ...], is_rounded: bool) -> None:
    net = Qdq((5, 8))
    net.constants["bias"] = net.rng.standard_normal(shape).astype(np.float32)
    y = net.op("Gemm", [net.step("x", "h", X_SCALE), net.weights("w", (8, 6), 1), "bias"], "g")
    parts = check(net.model(net.step(y, "y", Y_SCALE) if is_rounded else y), Y_SCALE if is_rounded else 1e-4)
    assert "MatMulWords" in ops(parts)
