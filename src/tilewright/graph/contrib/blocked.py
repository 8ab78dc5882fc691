"""Convolutions and pools in blocks of channels, which onnxruntime's highest level of optimization makes of others.

Only the memory of onnxruntime is in blocks: by its shape, a value is an image with channels first, as many as whole
blocks hold. So it is here, and the weights, which are saved in blocks, are laid out as usual again. How large blocks
are is not written: a file is for processors with vectors like those of the one that made it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tilewright.graph.contrib.call import Call, Expansion
from tilewright.graph.contrib.fused import CONVOLUTION, activated, channels_first, channels_last
from tilewright.target import Target

_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "storage_order", "strides")


@cache
def _channels_of_machine() -> int:
    return 16 if "avx512f" in Target.native().enabled_features else 8


def _block(num_channels: int) -> int:
    """How many channels a block has, where there are so many in whole blocks."""
    return _channels_of_machine() if num_channels % _channels_of_machine() == 0 else 8


def _reorder_input(call: Call) -> list[str]:
    """More channels, of zeros, up to the end of a block."""
    value, rank = call.required(0), len(call.shape(0))
    num_channels = call.shape(0)[1]
    if call.attribute("channels_last", 0):
        value, num_channels = channels_first(call, value, 0), call.shape(0)[-1]
    missing = -num_channels % _channels_of_machine()
    if not missing:
        return [value]
    return [call.add("Pad", value, call.ints(*[0] * (rank + 1), missing, *[0] * (rank - 2)))]


def _reorder_output(call: Call) -> list[str]:
    channels = call.attribute("channels")
    value = call.add("Slice", call.required(0), call.ints(0), call.ints(channels), call.ints(1))
    return [channels_last(call, value, 0) if call.attribute("channels_last", 0) else value]


def _convolution(call: Call) -> list[str]:
    convolution = call.add("Conv", call.required(0), _filters(call), call.input(2), **call.attributes(*CONVOLUTION))
    total = call.plus(convolution, call.input(3))
    return [activated(call, total, call.attribute("activation_params", ()), call.dtype(0))]


def _filters(call: Call) -> str:
    """Weights [out, in, ...] that lie as [blocks of out, (blocks of) in, ..., (in,) out]."""
    num_out, num_in, *sizes = call.shape(1)
    block, rank = _block(num_out), len(sizes)
    if num_in < block:
        apart = call.add("Reshape", call.required(1), call.ints(num_out // block, num_in, *sizes, block))
        usual = call.add("Transpose", apart, perm=[0, rank + 2, 1, *range(2, rank + 2)])
    else:
        shape = (num_out // block, num_in // block, *sizes, block, block)
        apart = call.add("Reshape", call.required(1), call.ints(*shape))
        usual = call.add("Transpose", apart, perm=[0, rank + 3, 1, rank + 2, *range(2, rank + 2)])
    return call.add("Reshape", usual, call.ints(*call.shape(1)))


def _pool(op: str, *attributes: str) -> Expansion:
    def expansion(call: Call) -> list[str]:
        return [call.add(op, call.required(0), **call.attributes(*attributes))]

    return expansion


def _upsample(call: Call) -> list[str]:
    scales = call.constant(call.attribute("scales"), "float32")
    given: dict[str, Any] = call.attributes("mode", "coordinate_transformation_mode")
    if given.get("mode", "nearest") == "nearest":
        given |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return [call.add("Resize", call.required(0), "", scales, **given)]


EXPANSIONS: dict[str, Expansion] = {
    "AveragePool": _pool("AveragePool", *_POOL),
    "Conv": _convolution,
    "GlobalAveragePool": _pool("GlobalAveragePool"),
    "GlobalMaxPool": _pool("GlobalMaxPool"),
    "MaxPool": _pool("MaxPool", *_POOL),
    "ReorderInput": _reorder_input,
    "ReorderOutput": _reorder_output,
    "Upsample": _upsample,
}
