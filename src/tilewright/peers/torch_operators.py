"""The calls of torch for the operators of ONNX, as `torch_network` writes them: one function an operator.

torch is imported in the functions, so that the module can be read without it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from tilewright.peers.torch_graph import NodeCall, Value, tensor

# Attributes of windows as torch takes them: sizes, strides and pads, one for each dimension.
_Window = tuple[list[int], list[int], list[int]]


def _conv(call: NodeCall) -> Value:
    from torch import nn

    weight = call.known(1)
    kernel, strides, pads = _window(call, list(weight.shape[2:]))
    groups = call.attribute("group", 1)
    make = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[len(kernel) - 1]
    # Made without memory: the weights follow.
    module = make(
        weight.shape[1] * groups, weight.shape[0], kernel, strides, pads,
        call.attribute("dilations", [1] * len(kernel)), groups, device="meta",
    )  # fmt: skip
    _set_weights(module, weight, call.known(2) if call.has(2) else None)
    return call.writer.call_module(module, call[0])


def _conv_transpose(call: NodeCall) -> Value:
    from torch import nn

    if call.attribute("output_shape", None) is not None:
        raise call.refused("its output_shape has no call in torch here")
    weight = call.known(1)
    kernel, strides, pads = _window(call, list(weight.shape[2:]))
    groups = call.attribute("group", 1)
    zeros, ones = [0] * len(kernel), [1] * len(kernel)
    make = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[len(kernel) - 1]
    module = make(
        weight.shape[0], weight.shape[1] * groups, kernel, strides, pads, call.attribute("output_padding", zeros),
        groups, dilation=call.attribute("dilations", ones), device="meta",
    )  # fmt: skip
    _set_weights(module, weight, call.known(2) if call.has(2) else None)
    return call.writer.call_module(module, call[0])


def _batch_norm(call: NodeCall) -> Value:
    """Folded into the convolution that computes its input, where nobody else reads that."""
    from torch.nn import functional
    from torch.nn.utils import fusion

    call.require(training_mode=0)
    epsilon = call.attribute("epsilon", 1e-5)
    scale, shift, mean, variance = (call.known(position) for position in range(1, 5))
    module = call.writer.module_behind(call.node.input[0])
    if not _is_convolution(module) or (module.transposed and module.groups > 1):
        statistics = (call.writer.stored(array) for array in (mean, variance, scale, shift))
        return call.call(functional.batch_norm, call[0], *statistics, eps=epsilon)
    module.weight, module.bias = fusion.fuse_conv_bn_weights(
        module.weight, module.bias, tensor(mean), tensor(variance), epsilon, tensor(scale), tensor(shift),
        transpose=module.transposed,
    )  # fmt: skip
    return call[0]


def _gemm(call: NodeCall) -> Value:
    call.require(transA=0, alpha=1.0, beta=1.0)
    weight = call.known(1)
    bias = call.known(2) if call.has(2) else None
    if not call.attribute("transB", 0):
        weight = weight.T
    if bias is not None and bias.shape != weight.shape[:1]:
        raise call.refused(f"its bias has the shape {bias.shape}, and only {weight.shape[:1]} has a call in torch here")
    return _linear(call, weight, bias)


def _matmul(call: NodeCall) -> Value:
    if call.is_known(1) and call.known(1).ndim == 2:
        return _linear(call, call.known(1).T, None)
    return call.call(operator.matmul, call[0], call[1])


def _add(call: NodeCall) -> Value:
    """The bias of the Linear before it, where it is one."""
    from torch import nn

    for position in (0, 1):
        module = call.writer.module_behind(call.node.input[position])
        if not isinstance(module, nn.Linear) or module.bias is not None or not call.is_known(1 - position):
            continue
        bias = call.known(1 - position)
        if bias.shape == (module.out_features,):
            module.bias = _parameter(bias)
            return call[position]
    return call.call(operator.add, call[0], call[1])


def _divide(call: NodeCall) -> Value:
    return call.call(divided, call[0], call[1])


def divided(x: Value, y: Value) -> Value:
    """x / y as ONNX divides: whole numbers are rounded towards zero."""
    import torch

    is_whole = not any(v.is_floating_point() if isinstance(v, torch.Tensor) else isinstance(v, float) for v in (x, y))
    return torch.div(x, y, rounding_mode="trunc" if is_whole else None)


def _relu(call: NodeCall) -> Value:
    from torch.nn import functional

    return call.call(functional.relu, call[0], inplace=_is_fresh(call))


def _clip(call: NodeCall) -> Value:
    import torch

    bounds = [call.known(position).item() if call.has(position) else None for position in (1, 2)]
    return call.call(torch.clamp_ if _is_fresh(call) else torch.clamp, call[0], *bounds)


def _max_pool(call: NodeCall) -> Value:
    from torch.nn import functional

    call.require(storage_order=0)
    kernel, strides, pads = _window(call, [])
    function = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[len(kernel) - 1]
    dilations = call.attribute("dilations", [1] * len(kernel))
    return call.call(function, call[0], kernel, strides, pads, dilations, bool(call.attribute("ceil_mode", 0)))


def _average_pool(call: NodeCall) -> Value:
    from torch.nn import functional

    kernel, strides, pads = _window(call, [])
    call.require(ceil_mode=0, dilations=[1] * len(kernel))
    function = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[len(kernel) - 1]
    includes_pads = bool(call.attribute("count_include_pad", 0))
    return call.call(function, call[0], kernel, strides, pads, False, includes_pads)


def _global_average(call: NodeCall) -> Value:
    return call.call(averaged, call[0])


def averaged(x: Value) -> Value:
    """The mean of each channel."""
    return x.mean(tuple(range(2, x.ndim)), keepdim=True)


def _flatten(call: NodeCall) -> Value:
    call.require(axis=1)
    return call.call_method("flatten", call[0], 1)


def _layer_norm(call: NodeCall) -> Value:
    from torch import nn

    call.require(axis=-1)
    weight = call.known(1)
    module = nn.LayerNorm(weight.shape, call.attribute("epsilon", 1e-5), bias=call.has(2), device="meta")
    _set_weights(module, weight, call.known(2) if call.has(2) else None)
    return call.writer.call_module(module, call[0])


def _softmax(call: NodeCall) -> Value:
    from torch.nn import functional

    return call.call(functional.softmax, call[0], call.attribute("axis", -1))


def _gather(call: NodeCall) -> Value:
    """A row of all, or an embedding."""
    from torch.nn import functional

    axis = call.attribute("axis", 0)
    if call.is_known(1) and call.known(1).ndim == 0:
        return call.call_method("select", call[0], axis, call.known(1).item())
    if axis != 0 or not call.is_known(0) or call.known(0).ndim != 2:
        raise call.refused("only the look-up of rows in a constant table has a call in torch here")
    return call.call(functional.embedding, call[1], call[0])


def _cast(call: NodeCall) -> Value:
    dtype = tensor(np.empty(0, helper.tensor_dtype_to_np_dtype(call.attribute("to", 1)))).dtype
    return call.call_method("to", call[0], dtype)


def _unsqueeze(call: NodeCall) -> Value:
    x = call[0]
    axes = call.known(1).tolist()
    if min(axes) < 0:
        raise call.refused(f"its axes are {axes}, and only those from the front have a call in torch here")
    for axis in sorted(axes):
        x = call.call_method("unsqueeze", x, axis)
    return x


def _reshape(call: NodeCall) -> Value:
    shape = call.known(1).tolist()
    if 0 in shape:
        raise call.refused("a size of 0 has no call in torch here")
    return call.call_method("reshape", call[0], shape)


def _transpose(call: NodeCall) -> Value:
    order: list[int] = call.attribute("perm", [])
    if not order:
        raise call.refused("only a perm that is written out has a call in torch here")
    return call.call_method("permute", call[0], order)


def _concat(call: NodeCall) -> Value:
    import torch

    values = [call[position] for position in range(len(call.node.input))]
    return call.call(torch.cat, values, call.attribute("axis", 0))


def _binary(function: Callable[..., Any]) -> Callable[[NodeCall], Value]:
    return lambda call: call.call(function, call[0], call[1])


def _unary(name: str) -> Callable[[NodeCall], Value]:
    return lambda call: call.call_method(name, call[0])


def _window(call: NodeCall, default: list[int]) -> _Window:
    call.require(auto_pad=b"NOTSET")
    kernel = call.attribute("kernel_shape", default)
    rank = len(kernel)
    pads = call.attribute("pads", [0] * 2 * rank)
    if pads[:rank] != pads[rank:]:
        raise call.refused(f"its pads are {pads}, and only equal ones on both sides have a call in torch here")
    return kernel, call.attribute("strides", [1] * rank), pads[:rank]


def _linear(call: NodeCall, weight: NDArray[Any], bias: NDArray[Any] | None) -> Value:
    from torch import nn

    module = nn.Linear(weight.shape[1], weight.shape[0], device="meta")
    _set_weights(module, np.ascontiguousarray(weight), bias)
    return call.writer.call_module(module, call[0])


def _set_weights(module: Any, weight: NDArray[Any], bias: NDArray[Any] | None) -> None:
    module.weight = _parameter(weight)
    module.bias = None if bias is None else _parameter(bias)


def _parameter(array: NDArray[Any]) -> Any:
    from torch import nn

    return nn.Parameter(tensor(array), requires_grad=False)


def _is_convolution(module: Any) -> bool:
    return hasattr(module, "transposed")


def _is_fresh(call: NodeCall) -> bool:
    """Whether the input may be overwritten: a layer made it for this node alone."""
    return call.writer.module_behind(call.node.input[0]) is not None


CALLS: dict[str, Callable[[NodeCall], Value]] = {
    "Add": _add,
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": _concat,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Div": _divide,
    "Erf": _unary("erf"),
    "Flatten": _flatten,
    "Gather": _gather,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_average,
    "LayerNormalization": _layer_norm,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
    "Mul": _binary(operator.mul),
    "Relu": _relu,
    "Reshape": _reshape,
    "Sigmoid": _unary("sigmoid"),
    "Softmax": _softmax,
    "Sub": _binary(operator.sub),
    "Tanh": _unary("tanh"),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
