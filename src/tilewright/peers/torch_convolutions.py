"""Convolutions in torch.

A workload's images are channels last and its weights [taps..., c, f]; torch sees the same memory as [n, c, ...] in the
format channels_last, and its weights are [f, c, taps...]. Besides `torch.nn.functional`, oneDNN is called with weights
that were packed ahead of time and with what follows the convolution folded into them, as torch's own compiler does.
torch is imported in the functions, so that the module can be read without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.peers.peer import Array, Peer
from tilewright.peers.shape import Shape

# torch has no types here.
Tensor = Any
Call = Callable[[], Tensor]


@dataclass(frozen=True, slots=True)
class _Problem:
    """A convolution as torch sees it: x[n, c, ...], w[f, c / groups, ...]; `restore` brings a result back."""

    shape: Shape
    x: Tensor
    w: Tensor
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    given: Mapping[str, Tensor]
    restore: Callable[[Tensor], Tensor]

    def ways(self) -> dict[str, Peer]:
        import torch

        last = torch.channels_last if self.x.ndim == 4 else torch.channels_last_3d
        x, w = self.x.contiguous(), self.w.contiguous()
        x_last, w_last = x.to(memory_format=last), w.to(memory_format=last)
        calls = {
            "torch": lambda: self._convolve(x, w),
            "torch channels last": lambda: self._convolve(x_last, w_last),
        }
        if can_fold(self.shape):
            calls["torch packed weights"] = self._packed(x_last)
        return {name: Peer(call, _restored(call, self.restore)) for name, call in calls.items()}

    def _convolve(self, x: Tensor, w: Tensor) -> Tensor:
        from torch.nn import functional

        convolve = functional.conv2d if x.ndim == 4 else functional.conv3d
        y = convolve(x, w, None, self.stride, self.padding, self.dilation, self.groups)
        return apply_fused(y, self.shape, self.given, channel_axis=1)

    def _packed(self, x: Tensor) -> Call:
        import torch

        weight, bias, attribute = folded(self.w.contiguous(), self.shape, self.given)
        reorder = (
            torch._C._nn.mkldnn_reorder_conv2d_weight if x.ndim == 4 else torch._C._nn.mkldnn_reorder_conv3d_weight
        )
        options = ([*self.padding], [*self.stride], [*self.dilation], self.groups)
        packed = reorder(weight.to_mkldnn(), *options, list(x.shape))
        pointwise = torch.ops.mkldnn._convolution_pointwise
        return lambda: pointwise(x, packed, bias, *options, attribute, [], "")


def apply_fused(y: Tensor, shape: Shape, given: Mapping[str, Tensor], channel_axis: int = -1) -> Tensor:
    """What the workload fuses, in place."""
    for stage in shape.fused:
        if stage == "relu":
            y = y.relu_()
        elif stage == "bias":
            y = y.add_(_along(given["bias"], y.ndim, channel_axis))
        else:
            y = y.mul_(_along(given["scale"], y.ndim, channel_axis)).add_(_along(given["shift"], y.ndim, channel_axis))
    return y


def can_fold(shape: Shape) -> bool:
    """Whether all that is fused goes into weights, bias and a last function: a ReLU must be the end."""
    return "relu" not in shape.fused[:-1]


def folded(w: Tensor, shape: Shape, given: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None, str]:
    """Weights [f, ...], bias and the function that follows, together the same as the convolution and what is fused."""
    bias, attribute = None, "none"
    for stage in shape.fused:
        if stage == "relu":
            attribute = "relu"
        elif stage == "bias":
            bias = given["bias"].flatten() if bias is None else bias + given["bias"].flatten()
        else:
            scale, shift = given["scale"].flatten(), given["shift"].flatten()
            w = w * scale.reshape(-1, *[1] * (w.ndim - 1))
            bias = shift if bias is None else bias * scale + shift
    return w, bias, attribute


def _along(constant: Tensor, ndim: int, axis: int) -> Tensor:
    sizes = [1] * ndim
    sizes[axis] = -1
    return constant.flatten().reshape(sizes)


def _restored(call: Call, restore: Callable[[Tensor], Tensor]) -> Callable[[], Array]:
    return lambda: restore(call()).contiguous().numpy()


def _conv1d(shape: Shape, given: Mapping[str, Tensor]) -> dict[str, Peer]:
    """As an image of one row, which is the only way to have it channels last; and plainly."""
    from torch.nn import functional

    x, w = given["X"].permute(0, 2, 1), given["W"].permute(2, 1, 0)
    row = _Problem(
        shape, x[:, :, None], w[:, :, None], (1, shape.stride), (0, shape.padding), (1, shape.dilation), 1,
        given, lambda y: y[:, :, 0].permute(0, 2, 1),
    )  # fmt: skip
    x, w = x.contiguous(), w.contiguous()

    def plain() -> Tensor:
        y = functional.conv1d(x, w, None, shape.stride, shape.padding, shape.dilation)
        return apply_fused(y, shape, given, channel_axis=1)

    return row.ways() | {"torch conv1d": Peer(plain, _restored(plain, lambda y: y.permute(0, 2, 1)))}


def _conv2d(shape: Shape, given: Mapping[str, Tensor]) -> dict[str, Peer]:
    """Also in groups, whose channels are [g, c] in the workload: X[n, y, x, g, c], W[r, s, g, c, f]."""
    x, w = given["X"], given["W"]
    groups = shape.groups
    if groups > 1:
        x = x.flatten(3)
        w = w.permute(2, 4, 3, 0, 1).flatten(0, 1)
    else:
        w = w.permute(3, 2, 0, 1)
    strides, paddings, dilations = (shape.stride,) * 2, (shape.padding,) * 2, (shape.dilation,) * 2

    def restore(y: Tensor) -> Tensor:
        y = y.permute(0, 2, 3, 1)
        return y.unflatten(3, (groups, -1)) if groups > 1 else y

    return _Problem(shape, x.permute(0, 3, 1, 2), w, strides, paddings, dilations, groups, given, restore).ways()


def _conv3d(shape: Shape, given: Mapping[str, Tensor]) -> dict[str, Peer]:
    x, w = given["X"].permute(0, 4, 1, 2, 3), given["W"].permute(4, 3, 0, 1, 2)
    strides, paddings, dilations = (shape.stride,) * 3, (shape.padding,) * 3, (shape.dilation,) * 3
    return _Problem(shape, x, w, strides, paddings, dilations, 1, given, lambda y: y.permute(0, 2, 3, 4, 1)).ways()


def _depthwise(shape: Shape, given: Mapping[str, Tensor]) -> dict[str, Peer]:
    x, w = given["X"].permute(0, 3, 1, 2), given["W"].permute(2, 0, 1)[:, None]
    strides, paddings, dilations = (shape.stride,) * 2, (shape.padding,) * 2, (shape.dilation,) * 2
    groups = x.shape[1]
    return _Problem(shape, x, w, strides, paddings, dilations, groups, given, lambda y: y.permute(0, 2, 3, 1)).ways()


def _capsule(shape: Shape, given: Mapping[str, Tensor]) -> dict[str, Peer]:
    """A plain convolution from the channels (k, c) to (j, f), of each row i of the capsules by itself.

    With i as a third dimension the memory is channels last as it stands; with i in the batch it is two-dimensional,
    and torch is given the input in that order.
    """
    x, w = given["X"], given["W"]
    n, rows = x.shape[0], x.shape[3]
    w2 = w.permute(3, 5, 2, 4, 0, 1).flatten(2, 3).flatten(0, 1)
    j = w.shape[3]

    def restore_depth(y: Tensor) -> Tensor:
        return y.permute(0, 2, 3, 4, 1).unflatten(4, (j, -1))

    def restore_batch(y: Tensor) -> Tensor:
        return y.unflatten(0, (n, rows)).permute(0, 3, 4, 1, 2).unflatten(4, (j, -1))

    plain = Shape(shape.family, shape.fields, shape.stride, shape.padding)
    depth = _Problem(
        plain, x.flatten(4).permute(0, 4, 1, 2, 3), w2[..., None], (shape.stride, shape.stride, 1),
        (shape.padding, shape.padding, 0), (1, 1, 1), 1, given, restore_depth,
    )  # fmt: skip
    batch = _Problem(
        plain, x.permute(0, 3, 4, 5, 1, 2).flatten(2, 3).flatten(0, 1), w2, (shape.stride,) * 2,
        (shape.padding,) * 2, (1, 1), 1, given, restore_batch,
    )  # fmt: skip
    ways = {f"{name}, conv3d": peer for name, peer in depth.ways().items()}
    ways |= {f"{name}, conv2d of rows": peer for name, peer in batch.ways().items()}
    return {} if shape.fused else ways


def _transposed(shape: Shape, given: Mapping[str, Tensor]) -> dict[str, Peer]:
    import torch
    from torch.nn import functional

    x, w = given["X"].permute(0, 3, 1, 2).contiguous(), given["W"].permute(2, 3, 0, 1).contiguous()
    x_last, w_last = (t.to(memory_format=torch.channels_last) for t in (x, w))
    strides, paddings = [shape.stride] * 2, [shape.padding] * 2

    def convolve(x: Tensor, w: Tensor) -> Tensor:
        y = functional.conv_transpose2d(x, w, None, strides, paddings)
        return apply_fused(y, shape, given, channel_axis=1)

    calls: dict[str, Call] = {
        "torch": lambda: convolve(x, w),
        "torch channels last": lambda: convolve(x_last, w_last),
    }
    if can_fold(shape):
        calls["torch packed weights"] = _packed_transposed(x_last, w, shape, given)
    return {name: Peer(call, _restored(call, lambda y: y.permute(0, 2, 3, 1))) for name, call in calls.items()}


def _packed_transposed(x: Tensor, w: Tensor, shape: Shape, given: Mapping[str, Tensor]) -> Call:
    import torch

    weight, bias, attribute = folded(w.transpose(0, 1), shape, given)
    strides, paddings, zeros, ones = [shape.stride] * 2, [shape.padding] * 2, [0, 0], [1, 1]
    packed = torch.ops.mkldnn._reorder_convolution_transpose_weight(
        weight.transpose(0, 1).contiguous(), paddings, zeros, strides, ones, 1, list(x.shape)
    )
    pointwise = torch.ops.mkldnn._convolution_transpose_pointwise
    return lambda: pointwise(x, packed, bias, paddings, zeros, strides, ones, 1, attribute, [], "")


CONVOLUTIONS: dict[str, Callable[[Shape, Mapping[str, Tensor]], dict[str, Peer]]] = {
    "c1d": _conv1d,
    "c2d": _conv2d,
    "c3d": _conv3d,
    "grp": _conv2d,
    "dil": _conv2d,
    "convlayer": _conv2d,
    "dep": _depthwise,
    "cap": _capsule,
    "t2d": _transposed,
}
