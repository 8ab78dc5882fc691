"""Normalisations of images along their channels: batch, instance and group norm, and local response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tilewright import te
from tilewright.operators.layout import Layout, groups_of, spatial_operator
from tilewright.operators.moments import Moments, moments, reciprocal_deviation
from tilewright.operators.precision import widen
from tilewright.operators.reductions import Reduction
from tilewright.operators.registry import Call, Facts, MisfitError, NotCompilableError
from tilewright.te import Expr, ExprLike, Tensor

OfElement: TypeAlias = Callable[[Sequence[Expr]], Expr]


@spatial_operator("BatchNormalization", Facts(follows_channels_last=True))
def batch_normalization(call: Call, layout: Layout) -> Tensor | tuple[Tensor, ...]:
    """With the given mean and variance; in training mode with those of the batch, and with the running ones updated."""
    if call.attribute("training_mode", 0):
        return _training(call, layout)
    if any(call.node.outputs[1:]):
        raise NotCompilableError("BatchNormalization in the training mode of opsets before 14 is not compiled")
    mean, variance = call.tensor(3), call.tensor(4)
    epsilon = call.attribute("epsilon", 1e-5)
    deviation = te.compute(variance.shape, lambda c: te.rsqrt(widen(variance[c]) + epsilon), call.name("deviation"))
    return _affine(
        call, layout, lambda i: widen(mean[layout.channel(i)]), lambda i: deviation[layout.channel(i)], call.tensor(1)
    )


def _training(call: Call, layout: Layout) -> tuple[Tensor, ...]:
    X, mean, variance = call.tensor(0), call.tensor(3), call.tensor(4)
    momentum = call.attribute("momentum", 0.9)
    axes = layout.join(0, range(1, X.ndim - 1)) if layout.is_channels_last else (0, *range(2, X.ndim))
    plan = Reduction(X.shape, axes, keeps_dims=True)
    found = moments(call, lambda i: X[i], plan)
    normal = _normal(call, layout, found, plan.result)

    def running(T: Tensor, current: Callable[[Sequence[ExprLike]], Expr], hint: str) -> Tensor:
        def updated(c: Expr) -> Expr:
            place: tuple[ExprLike, ...] = layout.join(0, [0] * (X.ndim - 2), c)
            return widen(T[c]) * momentum + te.cast(current(place) * (1.0 - momentum), widen(T[c]).dtype)

        return te.compute(T.shape, updated, call.name(hint), T.dtype)

    return normal, running(mean, found.mean, "running_mean"), running(variance, found.variance, "running_variance")


@spatial_operator("InstanceNormalization", Facts(follows_channels_last=True))
def instance_normalization(call: Call, layout: Layout) -> Tensor:
    """Each channel of each image by itself."""
    X = call.tensor(0)
    axes = range(1, X.ndim - 1) if layout.is_channels_last else range(2, X.ndim)
    plan = Reduction(X.shape, tuple(axes), keeps_dims=True)
    return _normal(call, layout, moments(call, lambda i: X[i], plan), plan.result)


@spatial_operator("GroupNormalization", Facts(follows_channels_last=True, checks_shapes=True))
def group_normalization(call: Call, layout: Layout) -> Tensor:
    """Groups of channels of each image; before opset 21 with one scale and one bias for each group."""
    X = call.tensor(0)
    batch, sizes, (num_channels,) = layout.split(X.shape)
    num_groups = groups_of(call, "num_groups", num_channels)
    in_group = num_channels // num_groups
    shape = (batch, num_groups, in_group, *sizes)
    plan = Reduction(shape, tuple(range(2, len(shape))), keeps_dims=False)

    def read(i: tuple[Expr, ...]) -> Expr:
        n, g, c, *positions = i
        return X[layout.join(n, positions, g * in_group + c)]

    def group(i: Sequence[Expr]) -> tuple[Expr, Expr]:
        return i[0], layout.channel(i) // in_group

    return _normal(call, layout, moments(call, read, plan), group)


def _normal(
    call: Call, layout: Layout, found: Moments, place: Callable[[Sequence[Expr]], Sequence[ExprLike]]
) -> Tensor:
    """X centred and scaled by the moments that stand at `place` of an element."""
    deviation = reciprocal_deviation(call, found, call.attribute("epsilon", 1e-5))
    return _affine(call, layout, lambda i: found.mean(place(i)), lambda i: deviation[tuple(place(i))], call.tensor(1))


def _affine(call: Call, layout: Layout, mean: OfElement, deviation: OfElement, scale: Tensor) -> Tensor:
    """(x - mean) * deviation * scale + bias, where scale and bias belong to channels, or to groups of them."""
    X, bias = call.tensor(0), call.tensor(2)
    num_channels = layout.channel(X.shape)
    if scale.shape != bias.shape or num_channels % scale.shape[0]:
        raise MisfitError(f"scale {scale.shape} and bias {bias.shape} do not fit {num_channels} channels")
    per_scale = num_channels // scale.shape[0]

    def element(*i: Expr) -> Expr:
        c = layout.channel(i) if per_scale == 1 else layout.channel(i) // per_scale
        return (widen(X[i]) - mean(i)) * (deviation(i) * widen(scale[c])) + widen(bias[c])

    return te.compute(X.shape, element, call.name("normal"), X.dtype)


@spatial_operator("LRN", Facts(follows_channels_last=True))
def local_response_normalization(call: Call, layout: Layout) -> Tensor:
    """Each element divided by a power of the squares of its neighbours in other channels."""
    X = call.tensor(0)
    size = call.attribute("size", 1)
    alpha, beta, bias = call.attribute("alpha", 1e-4), call.attribute("beta", 0.75), call.attribute("bias", 1.0)
    before = (size - 1) // 2
    n, sizes, (num_channels,) = layout.split(X.shape)

    def neighbour(*i: Expr) -> Expr:
        m, positions, (c,) = layout.split(i)
        inside = (c >= before) & (c < num_channels + before)
        return te.select(inside, X[layout.join(m, positions, c - before)], 0)

    padded = te.compute(layout.join(n, sizes, num_channels + size - 1), neighbour, call.name("padded"))
    r = te.reduce_axis(size, "r")

    def square(*i: Expr) -> Expr:
        m, positions, (c,) = layout.split(i)
        x = widen(padded[layout.join(m, positions, c + r)])
        return te.sum(x * x, axis=r)

    squares = te.compute(X.shape, square, call.name("squares"))
    return te.compute(
        X.shape,
        lambda *i: widen(X[i]) / te.pow(squares[i] * (alpha / size) + bias, beta),
        call.name("normal"),
        X.dtype,
    )
