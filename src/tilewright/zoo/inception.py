"""Inception v3 (Szegedy et al., 2016), without the auxiliary head, which only training needs."""

from __future__ import annotations

from onnx import ModelProto

from tilewright.zoo.builder import Net, Sizes, Value
from tilewright.zoo.variant import Variant

_ROW, _COLUMN = (1, 7), (7, 1)
_SHORT_ROW, _SHORT_COLUMN = (1, 3), (3, 1)


class _Inception(Net):
    """The network in a variant of its sizes."""

    def __init__(self, variant: Variant, seed: int) -> None:
        super().__init__("inception_v3", seed)
        self.variant = variant


def inception_v3(variant: Variant, seed: int) -> ModelProto:
    """Published for images of 299x299."""
    net = _Inception(variant, seed)
    x = net.input("input", (variant.batch, 3, variant.size, variant.size))
    x = _stem(net, x)
    for pool_channels in (32, 64, 64):
        x = _mixed_5x5(net, x, pool_channels)
    x = _reduce_to_17x17(net, x)
    for channels in (128, 160, 160, 192):
        x = _mixed_7x7(net, x, channels)
    x = _reduce_to_8x8(net, x)
    for _ in range(2):
        x = _mixed_3x3(net, x)
    return net.model(output=net.linear(net.global_average(x), 1000))


def _stem(net: _Inception, x: Value) -> Value:
    x = _unit(net, x, 32, 3, stride=2)
    x = _unit(net, x, 32, 3)
    x = _unit(net, x, 64, 3, pad=1)
    x = net.max_pool(x, 3, stride=2)
    x = _unit(net, x, 80, 1)
    x = _unit(net, x, 192, 3)
    return net.max_pool(x, 3, stride=2)


def _mixed_5x5(net: _Inception, x: Value, pool_channels: int) -> Value:
    point = _unit(net, x, 64, 1)
    five = _same(net, _unit(net, x, 48, 1), 64, (5, 5))
    double = _same(net, _unit(net, x, 64, 1), 96, (3, 3))
    double = _same(net, double, 96, (3, 3))
    return net.concat([point, five, double, _pooled(net, x, pool_channels)])


def _reduce_to_17x17(net: _Inception, x: Value) -> Value:
    three = _unit(net, x, 384, 3, stride=2)
    double = _same(net, _unit(net, x, 64, 1), 96, (3, 3))
    double = _unit(net, double, 96, 3, stride=2)
    return net.concat([three, double, net.max_pool(x, 3, stride=2)])


def _mixed_7x7(net: _Inception, x: Value, channels: int) -> Value:
    """7x7 windows as a row and a column."""
    point = _unit(net, x, 192, 1)
    seven = _same(net, _unit(net, x, channels, 1), channels, _ROW)
    seven = _same(net, seven, 192, _COLUMN)
    double = _unit(net, x, channels, 1)
    for window in (_COLUMN, _ROW, _COLUMN):
        double = _same(net, double, channels, window)
    double = _same(net, double, 192, _ROW)
    return net.concat([point, seven, double, _pooled(net, x, 192)])


def _reduce_to_8x8(net: _Inception, x: Value) -> Value:
    three = _unit(net, _unit(net, x, 192, 1), 320, 3, stride=2)
    seven = _same(net, _unit(net, x, 192, 1), 192, _ROW)
    seven = _same(net, seven, 192, _COLUMN)
    seven = _unit(net, seven, 192, 3, stride=2)
    return net.concat([three, seven, net.max_pool(x, 3, stride=2)])


def _mixed_3x3(net: _Inception, x: Value) -> Value:
    """3x3 windows as a row beside a column."""
    point = _unit(net, x, 320, 1)
    three = _row_beside_column(net, _unit(net, x, 384, 1))
    double = _same(net, _unit(net, x, 448, 1), 384, (3, 3))
    double = _row_beside_column(net, double)
    return net.concat([point, three, double, _pooled(net, x, 192)])


def _row_beside_column(net: _Inception, x: Value) -> Value:
    return net.concat([_same(net, x, 384, _SHORT_ROW), _same(net, x, 384, _SHORT_COLUMN)])


def _pooled(net: _Inception, x: Value, channels: int) -> Value:
    return _unit(net, net.average_pool(x, 3, stride=1, pad=1), channels, 1)


def _same(net: _Inception, x: Value, channels: int, window: tuple[int, int]) -> Value:
    """A unit that keeps the size of the image."""
    return _unit(net, x, channels, window, pad=(window[0] // 2, window[1] // 2))


def _unit(net: _Inception, x: Value, channels: int, window: Sizes, stride: int = 1, pad: Sizes = 0) -> Value:
    return net.relu(net.conv_bn(x, net.variant.channels(channels), window, stride, pad, epsilon=1e-3))
