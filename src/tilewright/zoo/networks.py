"""The list of networks, and `build`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import ModelProto

from tilewright.errors import UsageError
from tilewright.zoo.bert import bert_base, bert_tiny
from tilewright.zoo.dcgan import dcgan
from tilewright.zoo.inception import inception_v3
from tilewright.zoo.mobilenet import mobilenet_v2
from tilewright.zoo.resnet import resnet3d_18, resnet18, resnet50
from tilewright.zoo.vgg import vgg16


@dataclass(frozen=True, slots=True)
class ZooNetwork:
    """A network that the package can write. `make` takes the batch and the seed of the weights."""

    name: str
    summary: str
    make: Callable[[int, int], ModelProto]


NETWORKS: dict[str, ZooNetwork] = {
    network.name: network
    for network in (
        ZooNetwork("resnet18", "classifies images of 224x224: 18 layers of 3x3 convolutions with shortcuts", resnet18),
        ZooNetwork("resnet50", "classifies images of 224x224: 50 layers, most of them 1x1 convolutions", resnet50),
        ZooNetwork("mobilenet_v2", "classifies images of 224x224: depthwise and 1x1 convolutions", mobilenet_v2),
        ZooNetwork("vgg16", "classifies images of 224x224: 3x3 convolutions and large dense layers", vgg16),
        ZooNetwork(
            "inception_v3", "classifies images of 299x299: convolutions of many shapes side by side", inception_v3
        ),
        ZooNetwork("resnet3d_18", "classifies video of 16 frames of 112x112: 3x3x3 convolutions", resnet3d_18),
        ZooNetwork("dcgan", "makes images of 64x64 from 100 numbers: transposed convolutions", dcgan),
        ZooNetwork("bert_tiny", "encodes 128 tokens: 2 layers, 128 wide, 2 heads", bert_tiny),
        ZooNetwork("bert_base", "encodes 128 tokens: 12 layers, 768 wide, 12 heads", bert_base),
    )
}


def names() -> list[str]:
    """The networks, as they follow `zoo:`."""
    return list(NETWORKS)


def build(name: str, *, batch: int = 1, seed: int = 0) -> ModelProto:
    """The network as an ONNX model with random weights, the same for the same seed.

    >>> build("dcgan").graph.output[0].name
    'output'
    """
    if name not in NETWORKS:
        raise UsageError(f"a network of the zoo is one of {', '.join(names())}, got {name!r}")
    if batch < 1:
        raise UsageError(f"a batch has at least 1 element, got {batch}")
    return NETWORKS[name].make(batch, seed)
