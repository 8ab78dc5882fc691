"""Convolutions, found in expressions: sums of products of windows of data with constant weights."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.te.expr import Axis, Binary, Expr, Read, Reduce
from tilewright.te.index import LinearForms
from tilewright.te.tensor import Tensor
from tilewright.te.transform import visit


@dataclass(frozen=True, slots=True)
class Window:
    """A dimension of the data that is read at `output * stride + tap * dilation + offset`, in windows that overlap.

    Of stride and dilation one is 1.
    """

    dim: int
    output: Axis
    tap: Axis
    offset: int
    stride: int
    dilation: int


@dataclass(frozen=True, slots=True)
class Convolution:
    """How a tensor reads data and weights.

    Dimensions that no window moves along are read at axes; the last ones, of channels, also at a group's channel.
    """

    tensor: Tensor
    data: Read
    weights: Read
    windows: tuple[Window, ...]

    @property
    def channels(self) -> tuple[Axis, ...]:
        """What is summed over beside the taps."""
        assert isinstance(self.tensor.body, Reduce)
        taps = {window.tap for window in self.windows}
        return tuple(axis for axis in self.tensor.body.axes if axis not in taps)


def find_convolution(tensor: Tensor) -> Convolution | None:
    """The convolution that a tensor is, with channels last and a constant as its weights; None if it is none.

    Each axis is in one place of the data at most, and in one of the weights.
    """
    body = tensor.body
    if not isinstance(body, Reduce) or body.op != "sum" or not isinstance(body.values[0], Binary):
        return None
    product = body.values[0]
    if product.op != "mul" or not isinstance(product.a, Read) or not isinstance(product.b, Read):
        return None
    for data, weights in ((product.a, product.b), (product.b, product.a)):
        if weights.tensor.is_constant and data.tensor is not weights.tensor:
            found = Convolution(tensor, data, weights, _windows(data))
            return found if _is_plain(found) else None
    return None


def _windows(data: Read) -> tuple[Window, ...]:
    forms = LinearForms()
    found: list[Window] = []
    for dim, index in enumerate(data.indices):
        form = forms.of(index)
        if isinstance(index, Axis) or form is None or len(form.terms) != 2:
            continue
        axes = sorted((axis for axis in form.terms if isinstance(axis, Axis)), key=lambda axis: axis.is_reduce)
        if [axis.is_reduce for axis in axes] != [False, True]:
            continue
        stride, dilation = (form.terms[axis] for axis in axes)
        is_strided = dilation == 1 and 1 < stride < axes[1].extent  # else they do not overlap, as groups do not
        if is_strided or (stride == 1 and dilation >= 1):
            found.append(Window(dim, axes[0], axes[1], form.const, stride, dilation))
    return tuple(found)


def _is_plain(found: Convolution) -> bool:
    tensor = found.tensor
    moved = {window.dim for window in found.windows}
    unmoved = [index for dim, index in enumerate(found.data.indices) if dim not in moved]
    if not all(isinstance(index, Axis) for index in (*unmoved[:-1], *found.weights.indices[:-1])):
        return False
    plain = [axis for index in unmoved for axis in _axes(index)]
    of_windows = [axis for window in found.windows for axis in (window.output, window.tap)]
    of_weights = [axis for index in found.weights.indices for axis in _axes(index)]
    every = [*plain, *of_windows]
    if len(set(every)) != len(every) or len(set(of_weights)) != len(of_weights):
        return False
    taps = {window.tap for window in found.windows}
    if not taps or not taps.issubset(found.weights.indices) or not taps.isdisjoint(plain):
        return False
    if any(window.output in of_weights for window in found.windows) or not set(found.channels) <= {*plain}:
        return False
    return _has_channels_last(found) and {*tensor.axes} <= {*every, *of_weights}


def _axes(index: Expr) -> list[Axis]:
    found: list[Axis] = []
    visit(index, lambda e: found.append(e) if isinstance(e, Axis) else None)
    return found


def _has_channels_last(found: Convolution) -> bool:
    """Whether vectors run along the channels: of the data, of the weights, and of the results."""
    lane = found.tensor.axes[-1]
    of_data, of_weights = (_steps(read.indices[-1]) for read in (found.data, found.weights))
    channels = [axis for axis in found.channels if of_data.get(axis) == 1]
    is_summed = any(index is axis for axis in channels for index in found.weights.indices)
    return is_summed and of_weights.get(lane) == 1


def _steps(index: Expr) -> dict[Expr, int]:
    """How far an index moves with each of its axes; nothing where it is not linear."""
    form = LinearForms().of(index)
    is_linear = form is not None and form.has_only_variables
    return {axis: step for axis, step in form.terms.items() if isinstance(axis, Axis)} if form and is_linear else {}
