"""What a family's function returns, and the stages that may follow it: bias, batch norm and ReLU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright import te
from tilewright.te import Tensor


@dataclass(frozen=True, slots=True)
class Computation:
    """The inputs of a workload in the order of its task, and its output.

    Constants of the stages that follow lie along the last `num_channel_axes` axes of the output.
    """

    inputs: tuple[Tensor, ...]
    output: Tensor
    num_channel_axes: int = 1


def add_bias(computation: Computation) -> Computation:
    Y = computation.output
    num_outer = Y.ndim - computation.num_channel_axes
    bias = te.placeholder(Y.shape[num_outer:], Y.dtype, "bias", constant=True)
    biased = te.compute(Y.shape, lambda *i: Y[i] + bias[i[num_outer:]], "biased")
    return Computation((*computation.inputs, bias), biased, computation.num_channel_axes)


def batch_norm(computation: Computation) -> Computation:
    """Batch norm as inference runs it: mean and variance are folded into a scale and a shift."""
    Y = computation.output
    num_outer = Y.ndim - computation.num_channel_axes
    scale = te.placeholder(Y.shape[num_outer:], Y.dtype, "scale", constant=True)
    shift = te.placeholder(Y.shape[num_outer:], Y.dtype, "shift", constant=True)
    normal = te.compute(Y.shape, lambda *i: Y[i] * scale[i[num_outer:]] + shift[i[num_outer:]], "normal")
    return Computation((*computation.inputs, scale, shift), normal, computation.num_channel_axes)


def relu(computation: Computation) -> Computation:
    Y = computation.output
    rectified = te.compute(Y.shape, lambda *i: te.maximum(Y[i], 0.0), "relu")
    return Computation(computation.inputs, rectified, computation.num_channel_axes)


FUSED: dict[str, Callable[[Computation], Computation]] = {"bias": add_bias, "bn": batch_norm, "relu": relu}
"""What may follow a `+` in a workload; each at most once, since each names its tensors."""
