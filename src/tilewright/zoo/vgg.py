"""VGG (Simonyan and Zisserman, 2015): 3x3 convolutions with bias, and three large dense layers."""

from __future__ import annotations

from onnx import ModelProto

from tilewright.zoo.builder import Net
from tilewright.zoo.variant import Variant

# Channels and number of convolutions before each pooling.
_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def vgg16(variant: Variant, seed: int) -> ModelProto:
    """Configuration D, without batch norm."""
    net = Net("vgg16", seed)
    x = net.input("input", (variant.batch, 3, variant.size, variant.size))
    for channels, num_convolutions in _STAGES:
        for _ in range(num_convolutions):
            x = net.relu(net.conv(x, variant.channels(channels), 3, pad=1, bias=True))
        x = net.max_pool(x, 2, stride=2)
    x = net.flatten(x)
    x = net.relu(net.linear(x, variant.channels(4096)))
    x = net.relu(net.linear(x, variant.channels(4096)))
    return net.model(output=net.linear(x, 1000))
