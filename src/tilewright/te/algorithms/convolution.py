"""Convolutions, found in expressions: sums of products of windows of data with constant weights."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.te.expr import Axis, Binary, Expr, Read, Reduce
from tilewright.te.index import LinearForms
from tilewright.te.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Window:
    """A dimension of the data that is read at `output + tap + offset`."""

    dim: int
    output: Axis
    tap: Axis
    offset: int


@dataclass(frozen=True, slots=True)
class Convolution:
    """How a tensor reads data and weights; all dimensions that no window moves along are read at axes."""

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
    """The convolution that a tensor is, with stride 1, channels last and a constant as its weights; None if it is none.

    Every axis but those of windows is read as it is, and each axis is in one place of the data at most.
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
        if isinstance(index, Axis) or form is None or len(form.terms) != 2 or set(form.terms.values()) != {1}:
            continue
        axes = sorted((axis for axis in form.terms if isinstance(axis, Axis)), key=lambda axis: axis.is_reduce)
        if [axis.is_reduce for axis in axes] == [False, True]:
            found.append(Window(dim, axes[0], axes[1], form.const))
    return tuple(found)


def _is_plain(found: Convolution) -> bool:
    tensor = found.tensor
    moved = {window.dim for window in found.windows}
    plain = [index for dim, index in enumerate(found.data.indices) if dim not in moved]
    of_windows = [axis for window in found.windows for axis in (window.output, window.tap)]
    every: list[Expr] = [*plain, *of_windows]
    if not all(isinstance(e, Axis) for e in (*plain, *found.weights.indices)) or len(set(every)) != len(every):
        return False
    if len(set(found.weights.indices)) != len(found.weights.indices):
        return False
    taps = {window.tap for window in found.windows}
    if not taps or not taps.issubset(found.weights.indices) or not taps.isdisjoint(plain):
        return False
    if any(window.output in found.weights.indices for window in found.windows):
        return False
    if not set(found.channels) <= {*plain}:
        return False
    return _has_channels_last(found) and {*tensor.axes} <= {*every, *found.weights.indices}


def _has_channels_last(found: Convolution) -> bool:
    """Whether vectors run along the channels: of the data, of the weights, and of the results."""
    last, of_weights = found.data.indices[-1], found.weights.indices
    return last in found.channels and last in of_weights and of_weights[-1] is found.tensor.axes[-1]
