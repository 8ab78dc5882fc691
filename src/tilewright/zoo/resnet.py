"""Residual networks of images (He et al., 2016) and of video (r3d_18: Tran et al., 2018)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import ModelProto

from tilewright.zoo.builder import Net, Value
from tilewright.zoo.variant import Variant

# The branch of a block beside its shortcut: from the channels of the stage and the stride of the block.
Branch = Callable[[Net, Value, int, int], Value]


def resnet18(variant: Variant, seed: int) -> ModelProto:
    """Blocks of two 3x3 convolutions."""
    return _image_network("resnet18", _basic, (2, 2, 2, 2), variant, seed)


def resnet50(variant: Variant, seed: int) -> ModelProto:
    """Blocks of 1x1, 3x3 and 1x1 convolutions; the 3x3 has the stride."""
    return _image_network("resnet50", _bottleneck, (3, 4, 6, 3), variant, seed)


def resnet3d_18(variant: Variant, seed: int) -> ModelProto:
    """16 frames of video, and every convolution of three dimensions."""
    net = Net("resnet3d_18", seed)
    x = net.input("input", (variant.batch, 3, 16, variant.size, variant.size))
    x = net.relu(net.conv_bn(x, variant.channels(64), (3, 7, 7), stride=(1, 2, 2), pad=(1, 3, 3)))
    x = _stages(net, x, _basic, (2, 2, 2, 2), variant)
    return net.model(output=net.linear(net.global_average(x), 400))


def _image_network(name: str, branch: Branch, num_blocks: Sequence[int], variant: Variant, seed: int) -> ModelProto:
    net = Net(name, seed)
    x = net.input("input", (variant.batch, 3, variant.size, variant.size))
    x = net.relu(net.conv_bn(x, variant.channels(64), 7, stride=2, pad=3))
    x = net.max_pool(x, 3, stride=2, pad=1)
    x = _stages(net, x, branch, num_blocks, variant)
    return net.model(output=net.linear(net.global_average(x), 1000))


def _stages(net: Net, x: Value, branch: Branch, num_blocks: Sequence[int], variant: Variant) -> Value:
    """Each stage but the first halves the image in its first block, and each doubles the channels."""
    for stage, num in enumerate(num_blocks):
        for block in range(num):
            stride = 2 if stage > 0 and block == 0 else 1
            x = _block(net, x, branch, variant.channels(64 * 2**stage), stride)
    return x


def _block(net: Net, x: Value, branch: Branch, channels: int, stride: int) -> Value:
    y = branch(net, x, channels, stride)
    shortcut = x if x.shape == y.shape else net.conv_bn(x, y.channels, 1, stride)
    return net.relu(net.add(y, shortcut))


def _basic(net: Net, x: Value, channels: int, stride: int) -> Value:
    y = net.relu(net.conv_bn(x, channels, 3, stride, pad=1))
    return net.conv_bn(y, channels, 3, pad=1)


def _bottleneck(net: Net, x: Value, channels: int, stride: int) -> Value:
    y = net.relu(net.conv_bn(x, channels, 1))
    y = net.relu(net.conv_bn(y, channels, 3, stride, pad=1))
    return net.conv_bn(y, 4 * channels, 1)
