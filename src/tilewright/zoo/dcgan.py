"""The generator of DCGAN (Radford et al., 2016): a latent vector becomes an image by transposed convolutions."""

from __future__ import annotations

from onnx import ModelProto

from tilewright.zoo.builder import Net


def dcgan(batch: int, seed: int) -> ModelProto:
    """From 100 numbers to 64x64 in three colours."""
    net = Net("dcgan", seed)
    x = net.input("input", (batch, 100, 1, 1))
    x = net.relu(net.batch_norm(net.conv_transpose(x, 512, 4)))
    for channels in (256, 128, 64):
        x = net.relu(net.batch_norm(net.conv_transpose(x, channels, 4, stride=2, pad=1)))
    x = net.conv_transpose(x, 3, 4, stride=2, pad=1)
    return net.model(output=net.op("Tanh", x))
