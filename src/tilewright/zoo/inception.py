"""Inception v3 (Szegedy et al., 2016), without the auxiliary head, which only training needs."""

from __future__ import annotations

from onnx import ModelProto

from tilewright.zoo.builder import Net, Sizes, Value

_ROW, _COLUMN = (1, 7), (7, 1)
_SHORT_ROW, _SHORT_COLUMN = (1, 3), (3, 1)


def inception_v3(batch: int, seed: int) -> ModelProto:
    """For images of 299x299."""
    net = Net("inception_v3", seed)
    x = net.input("input", (batch, 3, 299, 299))
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


def _stem(net: Net, x: Value) -> Value:
    x = _unit(net, x, 32, 3, stride=2)
    x = _unit(net, x, 32, 3)
    x = _unit(net, x, 64, 3, pad=1)
    x = net.max_pool(x, 3, stride=2)
    x = _unit(net, x, 80, 1)
    x = _unit(net, x, 192, 3)
    return net.max_pool(x, 3, stride=2)


def _mixed_5x5(net: Net, x: Value, pool_channels: int) -> Value:
    point = _unit(net, x, 64, 1)
    five = _same(net, _unit(net, x, 48, 1), 64, (5, 5))
    double = _same(net, _unit(net, x, 64, 1), 96, (3, 3))
    double = _same(net, double, 96, (3, 3))
    return net.concat([point, five, double, _pooled(net, x, pool_channels)])


def _reduce_to_17x17(net: Net, x: Value) -> Value:
    three = _unit(net, x, 384, 3, stride=2)
    double = _same(net, _unit(net, x, 64, 1), 96, (3, 3))
    double = _unit(net, double, 96, 3, stride=2)
    return net.concat([three, double, net.max_pool(x, 3, stride=2)])


def _mixed_7x7(net: Net, x: Value, channels: int) -> Value:
    """7x7 windows as a row and a column."""
    point = _unit(net, x, 192, 1)
    seven = _same(net, _unit(net, x, channels, 1), channels, _ROW)
    seven = _same(net, seven, 192, _COLUMN)
    double = _unit(net, x, channels, 1)
    for window in (_COLUMN, _ROW, _COLUMN):
        double = _same(net, double, channels, window)
    double = _same(net, double, 192, _ROW)
    return net.concat([point, seven, double, _pooled(net, x, 192)])


def _reduce_to_8x8(net: Net, x: Value) -> Value:
    three = _unit(net, _unit(net, x, 192, 1), 320, 3, stride=2)
    seven = _same(net, _unit(net, x, 192, 1), 192, _ROW)
    seven = _same(net, seven, 192, _COLUMN)
    seven = _unit(net, seven, 192, 3, stride=2)
    return net.concat([three, seven, net.max_pool(x, 3, stride=2)])


def _mixed_3x3(net: Net, x: Value) -> Value:
    """3x3 windows as a row beside a column."""
    point = _unit(net, x, 320, 1)
    three = _row_beside_column(net, _unit(net, x, 384, 1))
    double = _same(net, _unit(net, x, 448, 1), 384, (3, 3))
    double = _row_beside_column(net, double)
    return net.concat([point, three, double, _pooled(net, x, 192)])


def _row_beside_column(net: Net, x: Value) -> Value:
    return net.concat([_same(net, x, 384, _SHORT_ROW), _same(net, x, 384, _SHORT_COLUMN)])


def _pooled(net: Net, x: Value, channels: int) -> Value:
    return _unit(net, net.average_pool(x, 3, stride=1, pad=1), channels, 1)


def _same(net: Net, x: Value, channels: int, window: tuple[int, int]) -> Value:
    """A unit that keeps the size of the image."""
    return _unit(net, x, channels, window, pad=(window[0] // 2, window[1] // 2))


def _unit(net: Net, x: Value, channels: int, window: Sizes, stride: int = 1, pad: Sizes = 0) -> Value:
    return net.relu(net.conv_bn(x, channels, window, stride, pad, epsilon=1e-3))
