"""A network that compiles in a moment: a convolution, a pooling and a dense layer of 8x8 points."""

from __future__ import annotations

from pathlib import Path

from tilewright.zoo.builder import Net

NUM_TASKS = 3
INPUT_SHAPE = (1, 3, 8, 8)


def write_tiny_model(folder: Path) -> str:
    """The path of tiny.onnx in the folder."""
    net = Net("tiny", seed=0)
    x = net.relu(net.conv(net.input("input", INPUT_SHAPE), 8, 3, pad=1, bias=True))
    path = folder / "tiny.onnx"
    path.write_bytes(net.model(output=net.linear(net.global_average(x), 4)).SerializeToString())
    return str(path)
