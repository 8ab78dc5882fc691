"""Transposed convolutions, without the multiplications by zero that their definition has.

Along one dimension, input i and kernel tap r meet in output i * stride + r - padding. So output y = j * stride + p of
phase p meets only the taps that are p + padding modulo the stride: every phase is a convolution of its own with
ceil(kernel / stride) taps. The phases are axes of the sum, so that its reads are affine and its weights do not depend
on the position j; a last stage puts the phases together.

Weights are [C, M / group, *kernel] with channels first, and [*kernel, C, M / group] with channels last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tilewright import te
from tilewright.operators.convolution import Epilogue, group_indices
from tilewright.operators.layout import Layout, groups_of, spatial_operator
from tilewright.operators.operands import check_lengths
from tilewright.operators.registry import Call, Facts, MisfitError, NotCompilableError
from tilewright.operators.window import pad_spatial, sliding
from tilewright.te import Axis, Expr, Tensor


@dataclass(frozen=True, slots=True)
class Phases:
    """One dimension as phases: output y is step y // stride of phase y % stride.

    Of stride and dilation one is 1.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    output: int

    @property
    def num_taps(self) -> int:
        """The taps that each phase meets."""
        return -(-self.kernel // self.stride)

    @property
    def num_phases(self) -> int:
        return min(self.stride, self.output)

    @property
    def num_steps(self) -> int:
        return -(-self.output // self.stride)

    @property
    def axes(self) -> tuple[int, ...]:
        """The extents of the phases and of the steps; one of them alone where the other is 1."""
        if self.num_phases == 1:
            return (self.num_steps,)
        return (self.num_phases,) if self.num_steps == 1 else (self.num_phases, self.num_steps)

    @property
    def padding(self) -> tuple[int, int]:
        """Where input 0 stands in the padded input, and how long that is."""
        reach = (self.num_taps - 1) * self.dilation
        return reach - self.before // self.stride, reach + self.num_steps + int(self._wraps)

    def locate(self, indices: Sequence[Expr]) -> tuple[Expr | None, Expr | None]:
        """Phase and step among the indices of `axes`; None where there is only one."""
        if len(self.axes) == 2:
            return indices[0], indices[1]
        return (None, indices[0]) if self.num_phases == 1 else (indices[0], None)

    def indices(self, output: Expr) -> tuple[Expr, ...]:
        """The indices of `axes` for an output position."""
        return (output,) if len(self.axes) == 1 else (output % self.stride, output // self.stride)

    def source(self, phase: Expr | None, step: Expr | None, tap: Axis) -> Expr:
        """Where in the padded input the phase reads for a tap, of which the last comes first."""
        position: Expr = tap if self.dilation == 1 else tap * self.dilation
        position = position if step is None else step + position
        if phase is None or not self._wraps:
            return position
        return position + (phase if self.stride == 2 else (phase + self._shift) // self.stride)

    def weight(self, phase: Expr | None, tap: Axis) -> Expr:
        """The tap of the kernel that it is."""
        last = (self.num_taps - 1) * self.stride
        back: Expr = tap if self.stride == 1 else tap * self.stride
        if phase is None:
            return last + self._shift - back
        return self._first_tap(phase) + (last - back) if last else self._first_tap(phase)

    @property
    def leaves_kernel(self) -> bool:
        """Whether some phase meets fewer taps than others, so that `weight` leaves the kernel."""
        last = self.stride - 1 if self._wraps else self.num_phases - 1 + self._shift
        return last + (self.num_taps - 1) * self.stride >= self.kernel

    @property
    def _shift(self) -> int:
        return self.before % self.stride

    @property
    def _wraps(self) -> bool:
        """Whether later phases begin with the next input, and with the first taps again."""
        return self.num_phases - 1 + self._shift >= self.stride

    def _first_tap(self, phase: Expr) -> Expr:
        if not self._wraps:
            return phase + self._shift if self._shift else phase
        return 1 - phase if self.stride == 2 else (phase + self._shift) % self.stride


@spatial_operator("ConvTranspose", Facts(prefers_channels_last=True))
def conv_transpose(call: Call, layout: Layout) -> Tensor:
    X, W, bias = call.tensor(0), call.tensor(1), call.optional(2)
    kernel = W.shape[:-2] if layout.is_channels_last else W.shape[2:]
    if W.shape[-2 if layout.is_channels_last else 0] != layout.channel(X.shape):
        raise MisfitError(f"weights of shape {W.shape} do not fit an input of {layout.channel(X.shape)} channels")
    dimensions = _dimensions(call, layout.spatial(X.shape), kernel)
    if any(p.stride > 1 and p.dilation > 1 for p in dimensions):
        X = _spread(call, X, layout, dimensions)
        dimensions = [replace(p, size=(p.size - 1) * p.stride + 1, stride=1) for p in dimensions]
    dimensions = [_of_one_element(p) for p in dimensions]
    P = pad_spatial(call, X, layout, [p.padding for p in dimensions])
    group = groups_of(call, "group", layout.channel(X.shape))
    summed = _convolve(call, P, W, layout, dimensions, group)
    return _interleave(call, summed, layout, dimensions, None if bias is None else lambda value, f: value + bias[f])


def _dimensions(call: Call, sizes: Sequence[int], kernel: Sequence[int]) -> list[Phases]:
    num = len(sizes)
    strides, dilations, pads = sliding(call, kernel, num)
    more = call.attribute("output_padding", [0] * num)
    auto_pad = call.attribute("auto_pad", "NOTSET")
    wanted = call.attribute("output_shape", [n * s for n, s in zip(sizes, strides, strict=True)])
    check_lengths(call, num, more, wanted)
    has_wanted = "output_shape" in call.node.attributes or auto_pad in ("SAME_UPPER", "SAME_LOWER")
    found = []
    for d, size in enumerate(sizes):
        full = (size - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1 + more[d]
        if has_wanted:
            total, output = full - wanted[d], wanted[d]
            before = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        else:
            before, after = (0, 0) if auto_pad == "VALID" else (pads[d], pads[num + d])
            output = full - before - after
        if output < 1:
            raise NotCompilableError("the padding of ConvTranspose leaves no output")
        found.append(Phases(size, kernel[d], strides[d], dilations[d], before, output))
    return found


def _of_one_element(p: Phases) -> Phases:
    """One input meets each output in one tap at most: as if the stride were so long that nothing overlaps."""
    if p.size > 1 or p.dilation > 1 or p.before < 0:
        return p
    return replace(p, stride=max(p.kernel, p.output + p.before))


def _spread(call: Call, X: Tensor, layout: Layout, dimensions: Sequence[Phases]) -> Tensor:
    """The input with the zeros between its elements that the definition has."""
    batch, _, channels = layout.split(X.shape)
    shape = layout.join(batch, [(p.size - 1) * p.stride + 1 for p in dimensions], *channels)
    strides = [p.stride for p in dimensions]

    def element(*i: Expr) -> Expr:
        n, positions, c = layout.split(i)
        pairs = list(zip(positions, strides, strict=True))
        is_element = reduce(te.logical_and, (te.equal(y % s, 0) for y, s in pairs if s > 1))
        return te.select(is_element, X[layout.join(n, [y if s == 1 else y // s for y, s in pairs], *c)], 0)

    return te.compute(shape, element, call.name("spread"))


def _convolve(call: Call, P: Tensor, W: Tensor, layout: Layout, dimensions: Sequence[Phases], group: int) -> Tensor:
    """The sums of all phases: [N, *phases, *steps, channels], where the channels of groups have two axes."""
    num_inputs = layout.channel(P.shape) // group
    num_outputs = W.shape[-1] if layout.is_channels_last else W.shape[1]
    taps = [te.reduce_axis(p.num_taps, f"r{d}") for d, p in enumerate(dimensions)]
    c = None if group > 1 and num_inputs == 1 else te.reduce_axis(num_inputs, "c")
    over = taps if c is None else [*taps, c] if layout.is_channels_last else [c, *taps]
    channels = (num_outputs,) if group == 1 else (group,) if c is None and num_outputs == 1 else (group, num_outputs)

    def element(*i: Expr) -> Expr:
        n, spatial, (*g, f) = layout.split(i, len(channels))
        located = [p.locate(axes) for p, axes in zip(dimensions, _of_dimensions(spatial, dimensions), strict=True)]
        both = list(zip(dimensions, located, taps, strict=True))
        first = g[0] if g else f
        source = first if c is None else c if group == 1 else first * num_inputs + c
        x = P[layout.join(n, [p.source(phase, step, r) for p, (phase, step), r in both], source)]
        tap = [p.weight(phase, r) for p, (phase, _), r in both]
        output: Expr | int = f if g or group == 1 else 0
        w = W[(*tap, source, output) if layout.is_channels_last else (source, output, *tap)]
        missing = [r < p.kernel for p, r in zip(dimensions, tap, strict=True) if p.leaves_kernel]
        return te.sum(x * (te.select(reduce(te.logical_and, missing), w, 0) if missing else w), axis=over)

    extents = [p.axes for p in dimensions]
    order = [axes[0] for axes in extents if len(axes) == 2] + [axes[-1] for axes in extents]
    return te.compute(layout.join(P.shape[0], order, *channels), element, call.name("conv"))


def _of_dimensions(spatial: Sequence[Expr], dimensions: Sequence[Phases]) -> list[tuple[Expr, ...]]:
    """The indices of each dimension from those in the order of the sum: phases first, so that tiles run along steps."""
    num_first = len(spatial) - len(dimensions)
    phases = iter(spatial[:num_first])
    return [
        (next(phases), last) if len(p.axes) == 2 else (last,)
        for p, last in zip(dimensions, spatial[num_first:], strict=True)
    ]


def _interleave(
    call: Call, summed: Tensor, layout: Layout, dimensions: Sequence[Phases], epilogue: Epilogue | None
) -> Tensor:
    """The phases put together, groups as flat channels, and the epilogue applied."""
    num_spatial = sum(len(p.axes) for p in dimensions)
    num_channel_axes = summed.ndim - 1 - num_spatial
    if num_channel_axes == 1 and num_spatial == len(dimensions) and epilogue is None:
        return summed
    batch, _, channels = layout.split(summed.shape, num_channel_axes)

    def element(*i: Expr) -> Expr:
        n, outputs, (f,) = layout.split(i)
        indices = [p.indices(y) for p, y in zip(dimensions, outputs, strict=True)]
        order = [index[0] for index in indices if len(index) == 2] + [index[-1] for index in indices]
        value = summed[layout.join(n, order, *group_indices(f, channels))]
        return value if epilogue is None else epilogue(value, f)

    shape = layout.join(batch, [p.output for p in dimensions], math.prod(channels))
    return te.compute(shape, element, call.name("interleaved"))
