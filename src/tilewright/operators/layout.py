"""The order of the axes of images: ONNX has channels first, networks run fastest with channels last.

A spatial operator is written once for both. Its ONNX form takes data [N, C, *spatial]; the form of our own domain takes
[N, *spatial, C], and passes put it in the place of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from tilewright import te
from tilewright.operators.node import OWN
from tilewright.operators.registry import NOTHING_KNOWN, Call, Facts, MisfitError, operator

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the channels of an image stand: before its spatial axes or after them."""

    is_channels_last: bool

    def join(self, batch: T, spatial: Sequence[T], *channels: T) -> tuple[T, ...]:
        """A shape, or indices, in the order of this layout; channels in groups have two axes, others one."""
        return (batch, *spatial, *channels) if self.is_channels_last else (batch, *channels, *spatial)

    def split(self, items: Sequence[T], num_channel_axes: int = 1) -> tuple[T, tuple[T, ...], tuple[T, ...]]:
        """What stands for the batch, for the spatial axes and for the channels: the inverse of `join`."""
        batch, *rest = items
        if self.is_channels_last:
            first = len(rest) - num_channel_axes
            return batch, tuple(rest[:first]), tuple(rest[first:])
        return batch, tuple(rest[num_channel_axes:]), tuple(rest[:num_channel_axes])

    def spatial(self, items: Sequence[T]) -> tuple[T, ...]:
        """What stands for the spatial axes."""
        return self.split(items)[1]

    def channel(self, items: Sequence[T]) -> T:
        """What stands for the channels."""
        return self.split(items)[2][0]


def groups_of(call: Call, attribute: str, *channels: int) -> int:
    """The number of groups that an attribute gives, each of as many of the channels as the others."""
    number = call.attribute(attribute, 1)
    if number < 1 or any(count % number for count in channels):
        raise MisfitError(f"{' and '.join(map(str, channels))} channels are not {number} groups of the same size")
    return number


CHANNELS_FIRST = Layout(is_channels_last=False)
CHANNELS_LAST = Layout(is_channels_last=True)

SpatialLowering: TypeAlias = Callable[[Call, Layout], "te.Tensor | tuple[te.Tensor, ...]"]


def spatial_operator(name: str, facts: Facts = NOTHING_KNOWN) -> Callable[[SpatialLowering], SpatialLowering]:
    """Register a function as the tensor expression of an operator in both layouts; `facts` are of ONNX's."""

    def register(function: SpatialLowering) -> SpatialLowering:
        operator(name, facts=facts)(lambda call: function(_checked(call), CHANNELS_FIRST))
        operator(name, domain=OWN)(lambda call: function(_checked(call), CHANNELS_LAST))
        return function

    return register


def _checked(call: Call) -> Call:
    if call.tensor(0).ndim < 2:
        raise MisfitError(f"it is for images with channels, but its input has the shape {call.tensor(0).shape}")
    return call
