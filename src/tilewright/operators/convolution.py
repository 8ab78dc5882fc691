"""Convolutions in any number of dimensions, in groups, and of quantized integers.

Weights are [M, C / group, *kernel] with channels first, and [*kernel, C / group, M] with channels last. The channels
of a grouped convolution are computed as groups of channels: a flat channel f would read the input at f // (channels
per group), which no tile of f can rely on. A last stage gives them as flat channels again; it takes the bias along.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tilewright import te
from tilewright.operators.layout import Layout, groups_of, spatial_operator
from tilewright.operators.registry import Call, Facts, MisfitError
from tilewright.operators.window import Window, pad_windows, windows
from tilewright.te import Expr, Tensor

Epilogue: TypeAlias = Callable[[Expr, Expr], Expr]
"""What is done to an element, given with its channel, after the sum."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The weights of a convolution, in the order of their layout."""

    tensor: Tensor
    layout: Layout
    group: int

    @property
    def kernel(self) -> tuple[int, ...]:
        shape = self.tensor.shape
        return shape[:-2] if self.layout.is_channels_last else shape[2:]

    @property
    def num_inputs(self) -> int:
        """Input channels of one group."""
        return self.tensor.shape[-2 if self.layout.is_channels_last else 1]

    @property
    def num_outputs(self) -> int:
        """Output channels of one group."""
        return self.tensor.shape[-1 if self.layout.is_channels_last else 0] // self.group

    def read(self, taps: Sequence[Expr], c: Expr | int, f: Expr) -> Expr:
        """The weight of input channel `c` of its group for output channel `f` of all."""
        return self.tensor[(*taps, c, f) if self.layout.is_channels_last else (f, c, *taps)]


def filter_of(call: Call, position: int, layout: Layout) -> Filter:
    """The weights that an operand gives."""
    W = call.tensor(position)
    num_outputs = W.shape[-1 if layout.is_channels_last else 0]
    return Filter(W, layout, groups_of(call, "group", num_outputs))


@spatial_operator("Conv", Facts(prefers_channels_last=True))
def conv(call: Call, layout: Layout) -> Tensor:
    X, bias = call.tensor(0), call.optional(2)
    weights = filter_of(call, 1, layout)
    dimensions = windows(call, layout.spatial(X.shape), weights.kernel)
    P = pad_windows(call, X, layout, dimensions)
    summed = convolve(call, P, weights, dimensions, lambda x, w, f: x * w)
    return flatten(call, summed, layout, None if bias is None else lambda value, f: value + bias[f])


def convolve(
    call: Call,
    P: Tensor,
    weights: Filter,
    dimensions: Sequence[Window],
    product: Callable[[Expr, Expr, Expr], Expr],
) -> Tensor:
    """The sums of `product(element, weight, output channel)` over each window of the padded data.

    Its channels have one axis, or those of groups two: groups, and channels of a group.
    """
    layout, group, num_inputs, num_outputs = weights.layout, weights.group, weights.num_inputs, weights.num_outputs
    if layout.channel(P.shape) != group * num_inputs:
        raise MisfitError(f"{call.node.op} has weights for another number of channels than its input has")
    taps = [te.reduce_axis(w.kernel, f"r{d}") for d, w in enumerate(dimensions)]
    is_depthwise = group > 1 and num_inputs == 1
    c = None if is_depthwise else te.reduce_axis(num_inputs, "c")
    over = taps if c is None else [*taps, c] if layout.is_channels_last else [c, *taps]
    if group == 1:
        channels: tuple[int, ...] = (num_outputs,)
    else:
        channels = (group,) if is_depthwise and num_outputs == 1 else (group, num_outputs)

    def element(*i: Expr) -> Expr:
        n, outputs, (*g, f) = layout.split(i, len(channels))
        flat = g[0] * num_outputs + f if g else f
        first = g[0] if g else f
        positions = [w.position(y, r) for w, y, r in zip(dimensions, outputs, taps, strict=True)]
        source = first if c is None else c if group == 1 else first * num_inputs + c
        x = P[layout.join(n, positions, source)]
        return te.sum(product(x, weights.read(taps, 0 if c is None else c, flat), flat), axis=over)

    shape = layout.join(P.shape[0], [w.output for w in dimensions], *channels)
    return te.compute(shape, element, call.name("conv"))


def flatten(call: Call, summed: Tensor, layout: Layout, epilogue: Epilogue | None) -> Tensor:
    """The sums with the epilogue applied; channels in groups become flat channels."""
    num_channel_axes = summed.ndim - call.tensor(0).ndim + 1
    if num_channel_axes == 1 and epilogue is None:
        return summed
    batch, sizes, channels = layout.split(summed.shape, num_channel_axes)

    def element(*i: Expr) -> Expr:
        n, outputs, (f,) = layout.split(i)
        value = summed[layout.join(n, outputs, *group_indices(f, channels))]
        return value if epilogue is None else epilogue(value, f)

    shape = layout.join(batch, sizes, math.prod(channels))
    return te.compute(shape, element, call.name("flat" if epilogue is None else "biased"))


def group_indices(f: Expr, channels: Sequence[int]) -> tuple[Expr, ...]:
    """A flat channel as indices of the channel axes: itself, or its group and its place there."""
    return (f,) if len(channels) == 1 else (f // channels[1], f % channels[1])
