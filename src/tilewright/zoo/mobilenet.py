"""MobileNet v2 (Sandler et al., 2018): depthwise convolutions between thin 1x1 convolutions."""

from __future__ import annotations

from onnx import ModelProto

from tilewright.zoo.builder import Net, Value
from tilewright.zoo.variant import Variant

# Expansion, channels, number of blocks, stride of the first of them.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_v2(variant: Variant, seed: int) -> ModelProto:
    """The channels behind the last block do not shrink with the width."""
    net = Net("mobilenet_v2", seed)
    x = net.input("input", (variant.batch, 3, variant.size, variant.size))
    x = net.relu6(net.conv_bn(x, variant.channels(32), 3, stride=2, pad=1))
    for expansion, channels, num_blocks, stride in _STAGES:
        for block in range(num_blocks):
            x = _inverted_residual(net, x, expansion, variant.channels(channels), stride if block == 0 else 1)
    x = net.relu6(net.conv_bn(x, max(1280, variant.channels(1280)), 1))
    return net.model(output=net.linear(net.global_average(x), 1000))


def _inverted_residual(net: Net, x: Value, expansion: int, channels: int, stride: int) -> Value:
    hidden = expansion * x.channels
    y = x if expansion == 1 else net.relu6(net.conv_bn(x, hidden, 1))
    y = net.relu6(net.conv_bn(y, hidden, 3, stride, pad=1, groups=hidden))
    y = net.conv_bn(y, channels, 1)
    return net.add(x, y) if x.shape == y.shape else y
