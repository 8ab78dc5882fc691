"""Windows that slide over an image: their geometry along each dimension, and the padding they need as a stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from tilewright import te
from tilewright.operators.layout import Layout
from tilewright.operators.registry import Call, MisfitError, NotCompilableError
from tilewright.te import Expr, Tensor


@dataclass(frozen=True, slots=True)
class Window:
    """How a kernel slides along one dimension of `size` elements, with `before` and `after` elements of padding."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    output: int

    @property
    def reach(self) -> int:
        """How many elements a kernel spans."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def padded_size(self) -> int:
        """The elements along the padded dimension: a last window that was rounded up may go past the padding."""
        return max(self.size + self.before + self.after, (self.output - 1) * self.stride + self.reach)

    def position(self, output: Expr, tap: Expr) -> Expr:
        """Where in the padded dimension the window of an output reads for a tap; a factor of 1 is not written."""
        start = output if self.stride == 1 else output * self.stride
        return start + (tap if self.dilation == 1 else tap * self.dilation)


def sliding(call: Call, kernel: Sequence[int], num: int) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Strides, dilations and pads of a kernel over `num` dimensions; pads are all those before, then all after."""
    strides = call.attribute("strides", [1] * num) or [1] * num
    dilations = call.attribute("dilations", [1] * num) or [1] * num
    pads = call.attribute("pads", [0] * (2 * num)) or [0] * (2 * num)
    lengths = tuple(map(len, (kernel, strides, dilations, pads)))
    if lengths != (num, num, num, 2 * num):
        raise MisfitError(f"kernel, strides, dilations and pads have {lengths} numbers for {num} dimensions")
    if min((*kernel, *strides, *dilations), default=1) < 1 or min(pads, default=0) < 0:
        raise MisfitError(
            f"kernel {tuple(kernel)}, strides {tuple(strides)} and dilations {tuple(dilations)} are 1 at least, "
            f"and pads {tuple(pads)} not negative"
        )
    return strides, dilations, pads


def windows(call: Call, sizes: Sequence[int], kernel: Sequence[int], *, may_exceed: bool = False) -> tuple[Window, ...]:
    """The windows of a convolution or a pool over spatial dimensions of these sizes, from the node's attributes.

    A pool's window may exceed the padded input.
    """
    num = len(sizes)
    strides, dilations, pads = sliding(call, kernel, num)
    auto_pad = call.attribute("auto_pad", "NOTSET")
    is_rounded_up = bool(call.attribute("ceil_mode", 0))
    found = []
    for d, size in enumerate(sizes):
        reach = (kernel[d] - 1) * dilations[d] + 1
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            output = math.ceil(size / strides[d])
            before, after = _same_padding((output - 1) * strides[d] + reach - size, auto_pad)
        else:
            before, after = (0, 0) if auto_pad == "VALID" else (pads[d], pads[num + d])
            output = _num_windows(size + before + after - reach, size + before, strides[d], is_rounded_up)
        if output < 0 or (not may_exceed and size + before + after < reach):
            raise MisfitError(
                f"the kernel of {call.node.op} does not fit into its padded input: it spans {reach} elements, and "
                f"there are {size + before + after}"
            )
        if output == 0:
            raise NotCompilableError(f"the kernel of {call.node.op} is larger than its padded input: nothing comes out")
        found.append(Window(size, kernel[d], strides[d], dilations[d], before, after, output))
    return tuple(found)


def _same_padding(total: int, auto_pad: str) -> tuple[int, int]:
    smaller, larger = max(total, 0) // 2, (max(total, 0) + 1) // 2
    return (smaller, larger) if auto_pad == "SAME_UPPER" else (larger, smaller)


def _num_windows(last_start: int, end: int, stride: int, is_rounded_up: bool) -> int:
    """The windows that start at up to `last_start`; rounded up, one more that still starts before `end`.

    The quotient is rounded towards zero: a window that exceeds the padded input by less than a stride counts.
    """
    if not is_rounded_up:
        return int(last_start / stride) + 1
    number = math.ceil(last_start / stride) + 1
    return number - 1 if (number - 1) * stride >= end else number


def pad_windows(call: Call, X: Tensor, layout: Layout, dimensions: Sequence[Window], value: float | Expr = 0) -> Tensor:
    """X with what its windows need around it, as a stage of its own; X itself where they stay inside."""
    return pad_spatial(call, X, layout, [(w.before, w.padded_size) for w in dimensions], value)


def pad_spatial(
    call: Call, X: Tensor, layout: Layout, dimensions: Sequence[tuple[int, int]], value: float | Expr = 0
) -> Tensor:
    """X with each spatial dimension moved by `before` in a new size, and `value` where there is no element."""
    batch, sizes, channels = layout.split(X.shape)
    if all(before == 0 and padded <= size for (before, padded), size in zip(dimensions, sizes, strict=True)):
        return X
    shape = layout.join(batch, [padded for _, padded in dimensions], *channels)

    def element(*i: Expr) -> Expr:
        n, positions, c = layout.split(i)
        inside: list[Expr] = []
        sources: list[Expr] = []
        for position, size, (before, padded) in zip(positions, sizes, dimensions, strict=True):
            inside += [position >= before] if before > 0 else []
            inside += [position < size + before] if padded > size + before else []
            sources.append(position - before if before else position)
        source = X[layout.join(n, sources, *c)]
        return te.select(reduce(te.logical_and, inside), source, value) if inside else source

    return te.compute(shape, element, call.name("padded"))
