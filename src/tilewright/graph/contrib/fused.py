"""Products, convolutions and activations that were fused with what stood beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from tilewright.graph.contrib.call import Call, Expansion

CONVOLUTION = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_POOL = ("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides")


def activated(call: Call, value: str, parameters: Sequence[float], dtype: str) -> str:
    """A value after the activation that the call names, if any."""
    activation = call.attribute("activation", "")
    match activation:
        case "":
            return value
        case "Relu" | "Sigmoid" | "Tanh" | "HardSwish" | "Softplus" | "Softsign":
            return call.add(activation, value)
        case "LeakyRelu" | "ThresholdedRelu" | "Elu":
            return call.add(activation, value, **dict(zip(["alpha"], parameters, strict=False)))
        case "HardSigmoid":
            return call.add(activation, value, **dict(zip(["alpha", "beta"], parameters, strict=False)))
        case "Clip":
            return call.add(activation, value, *[call.constant(bound, dtype) for bound in parameters[:2]])
        case _:
            raise call.unsupported(f"the activation {activation} is not known here")


def _fused_conv(call: Call) -> list[str]:
    convolution = call.add("Conv", call.required(0), call.required(1), call.input(2), **call.attributes(*CONVOLUTION))
    total = call.plus(convolution, call.input(3))
    return [activated(call, total, call.attribute("activation_params", ()), call.dtype(0))]


def _fused_gemm(call: Call) -> list[str]:
    product = call.add(
        "Gemm",
        call.required(0),
        call.required(1),
        call.input(2),
        **call.attributes("alpha", "beta", "transA", "transB"),
    )
    parameters = call.attributes("activation_alpha", "activation_beta", "activation_gamma")
    return [activated(call, product, tuple(parameters.values()), call.dtype(0))]


def _fused_matmul(call: Call) -> list[str]:
    left = _operand(call, 0, bool(call.attribute("transA", 0)), bool(call.attribute("transBatchA", 0)))
    right = _operand(call, 1, bool(call.attribute("transB", 0)), bool(call.attribute("transBatchB", 0)))
    return [call.scaled(call.add("MatMul", left, right), call.attribute("alpha", 1.0), call.dtype(0))]


def _operand(call: Call, position: int, is_transposed: bool, is_batch_transposed: bool) -> str:
    """A factor: its first axis may be its rows, and its rows and columns may be exchanged."""
    value, axes = call.required(position), list(range(len(call.shape(position))))
    if len(axes) < 2:
        return value
    if is_batch_transposed:
        axes = [*axes[1:-1], 0, axes[-1]]
    if is_transposed:
        axes[-2:] = [axes[-1], axes[-2]]
    return value if axes == sorted(axes) else call.add("Transpose", value, perm=axes)


def _gelu(call: Call) -> list[str]:
    return [call.add("Gelu", call.plus(call.required(0), call.input(1)))]


def _fast_gelu(call: Call) -> list[str]:
    return [call.add("Gelu", call.plus(call.required(0), call.input(1)), approximate="tanh")]


def _quick_gelu(call: Call) -> list[str]:
    x = call.required(0)
    gate = call.add("Sigmoid", call.scaled(x, call.attribute("alpha", 1.702), call.dtype(0)))
    return [call.add("Mul", x, gate)]


def _nhwc_max_pool(call: Call) -> list[str]:
    pooled = call.add("MaxPool", channels_first(call, call.required(0), 0), **call.attributes(*_POOL))
    return [channels_last(call, pooled, 0)]


def _nhwc_conv(call: Call) -> list[str]:
    """Its weights are channels-last, too: [out, height, width, in]; those of NhwcFusedConv are not."""
    image, weights = (channels_first(call, call.required(i), i) for i in range(2))
    convolution = call.add("Conv", image, weights, call.input(2), **call.attributes(*CONVOLUTION))
    return [channels_last(call, convolution, 0)]


def _nhwc_fused_conv(call: Call) -> list[str]:
    image = channels_first(call, call.required(0), 0)
    convolution = call.add("Conv", image, call.required(1), call.input(2), **call.attributes(*CONVOLUTION))
    total = call.plus(channels_last(call, convolution, 0), call.input(3))
    return [activated(call, total, call.attribute("activation_params", ()), call.dtype(0))]


def channels_first(call: Call, value: str, position: int) -> str:
    """A value of the rank of an operand, channels-last, with its channels after the batch."""
    rank = len(call.shape(position))
    return call.add("Transpose", value, perm=[0, rank - 1, *range(1, rank - 1)])


def channels_last(call: Call, value: str, position: int) -> str:
    """A value of the rank of an operand with its channels last."""
    rank = len(call.shape(position))
    return call.add("Transpose", value, perm=[0, *range(2, rank), 1])


def _same(op: str, *attributes: str) -> Expansion:
    """An operator that ONNX has, too."""

    def expansion(call: Call) -> list[str]:
        return [call.add(op, *call.node.inputs, **call.attributes(*attributes))]

    return expansion


def _expand_dims(call: Call) -> list[str]:
    axis = call.add("Cast", call.required(1), to=TensorProto.INT64)
    return [call.add("Unsqueeze", call.required(0), call.add("Reshape", axis, call.ints(1)))]


def _grid_sample(call: Call) -> list[str]:
    modes = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
    mode = modes[call.attribute("mode", "bilinear")]
    attributes = call.attributes("align_corners", "padding_mode")
    return [call.add("GridSample", call.required(0), call.required(1), mode=mode, **attributes)]


def _distances(call: Call) -> list[str]:
    """Between all rows of one operand and all of the other: classifiers by neighbours end with them."""
    metric = call.attribute("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise call.unsupported(f"the metric {metric} is not known here")
    left, right = (
        call.add("Unsqueeze", call.required(0), call.ints(1)),
        call.add("Unsqueeze", call.required(1), call.ints(0)),
    )
    squares = call.add("ReduceSumSquare", call.add("Sub", left, right), call.ints(2), keepdims=0)
    return [call.add("Sqrt", squares) if metric == "euclidean" else squares]


def _unfold(call: Call) -> list[str]:
    """All slices of some length along an axis, at every step of it; their elements are a new last axis."""
    shape, size = call.shape(0), call.attribute("size")
    axis = call.attribute("dim", -1) % len(shape)
    starts = np.arange(0, shape[axis] - size + 1, call.attribute("step", 1))
    slices = call.add("Gather", call.required(0), call.constant(starts[:, None] + np.arange(size), "int64"), axis=axis)
    order = [d for d in range(len(shape) + 1) if d != axis + 1]
    return [call.add("Transpose", slices, perm=[*order, axis + 1])]


EXPANSIONS: dict[str, Expansion] = {
    "BiasGelu": _gelu,
    "CDist": _distances,
    "ExpandDims": _expand_dims,
    "FastGelu": _fast_gelu,
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "GatherND": _same("GatherND"),
    "Gelu": _gelu,
    "GridSample": _grid_sample,
    "NhwcConv": _nhwc_conv,
    "NhwcFusedConv": _nhwc_fused_conv,
    "NhwcMaxPool": _nhwc_max_pool,
    "Pad": _same("Pad", "mode"),
    "QuickGelu": _quick_gelu,
    "Range": _same("Range"),
    "TransposeMatMul": _fused_matmul,
    "Trilu": _same("Trilu", "upper"),
    "UnfoldTensor": _unfold,
}
