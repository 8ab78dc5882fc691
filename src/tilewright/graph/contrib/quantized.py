"""Operators on quantized values: by way of floats, which passes turn into sums of bytes where they can."""

from __future__ import annotations

from typing import Any

from onnx import TensorProto

from tilewright.graph.contrib.call import Call, Expansion
from tilewright.graph.contrib.fused import CONVOLUTION, channels_first, channels_last

_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")


def _real(call: Call, position: int, scale: int | None = None, axis: int | None = None) -> str:
    """The quantized operand at a position as floats; its scale and zero point follow it, unless told where."""
    at = position + 1 if scale is None else scale
    attributes = {} if axis is None else {"axis": axis}
    return call.add("DequantizeLinear", call.required(position), call.required(at), call.input(at + 1), **attributes)


def _quantized(call: Call, value: str, scale: int) -> list[str]:
    """Floats as integers by the scale at a position and the zero point after it."""
    return [call.add("QuantizeLinear", value, call.required(scale), call.input(scale + 1))]


def _elementwise(op: str) -> Expansion:
    def expansion(call: Call) -> list[str]:
        return _quantized(call, call.add(op, _real(call, 0), _real(call, 3)), 6)

    return expansion


def _unary(op: str, *attributes: str) -> Expansion:
    def expansion(call: Call) -> list[str]:
        return _quantized(call, call.add(op, _real(call, 0), **call.attributes(*attributes)), 3)

    return expansion


def _pool(op: str, *attributes: str) -> Expansion:
    def expansion(call: Call) -> list[str]:
        given = call.attributes(*attributes)
        if not call.attribute("channels_last", 0):
            return _quantized(call, call.add(op, _real(call, 0), **given), 3)
        pooled = call.add(op, channels_first(call, _real(call, 0), 0), **given)
        return _quantized(call, channels_last(call, pooled, 0), 3)

    return expansion


def _softmax(call: Call) -> list[str]:
    """Before opset 13 a row is an axis and all after it, and the attribute says which opset is meant."""
    rank = len(call.shape(0))
    axis = call.attribute("axis", -1) % rank
    x = _real(call, 0)
    if call.attribute("opset", 13) >= 13 or axis == rank - 1:
        return _quantized(call, call.add("Softmax", x, axis=axis), 3)
    rows = call.add("Softmax", call.add("Flatten", x, axis=axis), axis=1)
    return _quantized(call, call.add("Reshape", rows, call.ints(*call.shape(0))), 3)


def _reduce_mean(call: Call) -> list[str]:
    axes = call.ints(*call.attribute("axes")) if "axes" in call.node.attributes else ""
    return _quantized(call, call.add("ReduceMean", _real(call, 0), axes, **call.attributes("keepdims")), 3)


def _concat(call: Call) -> list[str]:
    parts = [_real(call, position) for position in range(2, len(call.node.inputs), 3)]
    return _quantized(call, call.add("Concat", *parts, axis=call.attribute("axis")), 0)


def _where(call: Call) -> list[str]:
    return _quantized(call, call.add("Where", call.required(0), _real(call, 1), _real(call, 4)), 7)


def _convolution(call: Call) -> list[str]:
    x, *rest = call.node.inputs
    attributes = call.attributes(*CONVOLUTION)
    if not call.attribute("channels_last", 0):
        return [call.add("QLinearConv", x, *rest, **attributes)]
    convolution = call.add("QLinearConv", channels_first(call, x, 0), *rest, **attributes)
    return [channels_last(call, convolution, 0)]


def _gemm(call: Call) -> list[str]:
    """A bias is in units of the scales of both factors."""
    is_transposed = call.attribute("transB", 0)
    right = _real(call, 3, axis=1 - is_transposed if call.shape(4) else None)
    product = call.add("Gemm", _real(call, 0), right, transB=is_transposed, **call.attributes("alpha", "transA"))
    if call.input(6):
        unit = call.scaled(call.add("Mul", call.required(1), call.required(4)), call.attribute("alpha", 1.0), "float32")
        bias = call.add("Mul", call.add("Cast", call.input(6), to=TensorProto.FLOAT), unit)
        product = call.add("Add", product, bias)
    return _quantized(call, product, 7) if call.input(7) else [product]


def _matmul_to_float(call: Call) -> list[str]:
    scale = call.add("Mul", call.required(2), call.required(3))
    return _integer_product(call, [call.required(0), call.required(1), call.input(4), call.input(5)], scale, 6)


def _dynamic_matmul(call: Call) -> list[str]:
    a, a_scale, a_zero = call.add_many("DynamicQuantizeLinear", 3, call.required(0))
    scale = call.add("Mul", a_scale, call.required(2))
    return _integer_product(call, [a, call.required(1), a_zero, call.input(3)], scale, 4)


def _integer_product(call: Call, operands: list[str], scale: str, bias: int) -> list[str]:
    product = call.add("Cast", call.add("MatMulInteger", *operands), to=TensorProto.FLOAT)
    return [call.plus(call.add("Mul", product, scale), call.input(bias))]


def _linear(op: str) -> Expansion:
    """Quantization with an axis that counts only for scales of a row."""

    def expansion(call: Call) -> list[str]:
        attributes: dict[str, Any] = call.attributes("block_size")
        if call.shape(1):
            attributes["axis"] = call.attribute("axis", 1)
        return [call.add(op, *call.node.inputs, **attributes)]

    return expansion


def _dynamic_lstm(call: Call) -> list[str]:
    """With weights as floats: the sums are those of the quantized ones, without the rounding of what they multiply."""
    weights = []
    for position, scale in ((1, 8), (2, 10)):
        real = _scaled_weights(call, position, scale)
        weights.append(call.add("Transpose", real, perm=[0, 2, 1]))
    names = ("activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "input_forget")
    rest = [call.input(position) for position in range(3, 8)]
    return call.add_many("LSTM", 3, call.required(0), *weights, *rest, **call.attributes(*names))


def _scaled_weights(call: Call, position: int, scale: int) -> str:
    """Weights of each direction by its scale, or the scales of its columns."""
    zero = call.input(scale + 1)
    values = call.add("Cast", call.required(position), to=TensorProto.FLOAT)
    shape = [call.shape(scale)[0], 1, *(call.shape(scale)[1:] or (1,))]
    if zero:
        zeros = call.add("Reshape", call.add("Cast", zero, to=TensorProto.FLOAT), call.ints(*shape))
        values = call.add("Sub", values, zeros)
    return call.add("Mul", values, call.add("Reshape", call.required(scale), call.ints(*shape)))


EXPANSIONS: dict[str, Expansion] = {
    "DequantizeLinear": _linear("DequantizeLinear"),
    "DynamicQuantizeLSTM": _dynamic_lstm,
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "MatMulIntegerToFloat": _matmul_to_float,
    "QGemm": _gemm,
    "QLinearAdd": _elementwise("Add"),
    "QLinearAveragePool": _pool("AveragePool", *_POOL),
    "QLinearConcat": _concat,
    "QLinearConv": _convolution,
    "QLinearGlobalAveragePool": _pool("GlobalAveragePool"),
    "QLinearLeakyRelu": _unary("LeakyRelu", "alpha"),
    "QLinearMul": _elementwise("Mul"),
    "QLinearReduceMean": _reduce_mean,
    "QLinearSigmoid": _unary("Sigmoid"),
    "QLinearSoftmax": _softmax,
    "QLinearWhere": _where,
    "QuantizeLinear": _linear("QuantizeLinear"),
}
