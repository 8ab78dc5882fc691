"""The generator of DCGAN (Radford et al., 2016): a latent vector becomes an image by transposed convolutions."""

from __future__ import annotations

from onnx import ModelProto

from tilewright.zoo.builder import Net
from tilewright.zoo.variant import Variant


def dcgan(variant: Variant, seed: int) -> ModelProto:
    """From 100 numbers for each of `size` x `size` places to three colours at 64 times as many on each side, about."""
    net = Net("dcgan", seed)
    x = net.input("input", (variant.batch, 100, variant.size, variant.size))
    x = net.relu(net.batch_norm(net.conv_transpose(x, variant.channels(512), 4)))
    for channels in (256, 128, 64):
        x = net.relu(net.batch_norm(net.conv_transpose(x, variant.channels(channels), 4, stride=2, pad=1)))
    x = net.conv_transpose(x, 3, 4, stride=2, pad=1)
    return net.model(output=net.op("Tanh", x))
