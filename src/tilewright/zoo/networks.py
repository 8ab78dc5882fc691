"""The list of networks, and `build`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from onnx import GraphProto, ModelProto

from tilewright.errors import UsageError
from tilewright.zoo.bert import LONGEST_SEQUENCE, bert_base, bert_tiny
from tilewright.zoo.dcgan import dcgan
from tilewright.zoo.inception import inception_v3
from tilewright.zoo.mobilenet import mobilenet_v2
from tilewright.zoo.resnet import resnet3d_18, resnet18, resnet50
from tilewright.zoo.variant import Variant
from tilewright.zoo.vgg import vgg16


@dataclass(frozen=True, slots=True)
class ZooNetwork:
    """A network that the package can write. `make` takes the sizes and the seed of the weights."""

    name: str
    summary: str
    make: Callable[[Variant, int], ModelProto]
    size: int
    """The side of its images, or the number of its tokens, unless a variant says otherwise."""
    sizes: range
    """Those that it can be built for."""


_IMAGE, _VIDEO, _LARGE_IMAGE, _SEED, _TOKENS = (
    range(32, 2049),
    range(16, 513),
    range(75, 2049),
    range(1, 33),
    range(1, LONGEST_SEQUENCE + 1),
)

NETWORKS: dict[str, ZooNetwork] = {
    network.name: network
    for network in (
        ZooNetwork(
            "resnet18",
            "classifies images of 224x224: 18 layers of 3x3 convolutions with shortcuts",
            resnet18,
            224,
            _IMAGE,
        ),
        ZooNetwork(
            "resnet50", "classifies images of 224x224: 50 layers, most of them 1x1 convolutions", resnet50, 224, _IMAGE
        ),
        ZooNetwork(
            "mobilenet_v2", "classifies images of 224x224: depthwise and 1x1 convolutions", mobilenet_v2, 224, _IMAGE
        ),
        ZooNetwork(
            "vgg16", "classifies images of 224x224: 3x3 convolutions and large dense layers", vgg16, 224, _IMAGE
        ),
        ZooNetwork(
            "inception_v3",
            "classifies images of 299x299: convolutions of many shapes side by side",
            inception_v3,
            299,
            _LARGE_IMAGE,
        ),
        ZooNetwork(
            "resnet3d_18", "classifies video of 16 frames of 112x112: 3x3x3 convolutions", resnet3d_18, 112, _VIDEO
        ),
        ZooNetwork("dcgan", "makes images of 64x64 from 100 numbers: transposed convolutions", dcgan, 1, _SEED),
        ZooNetwork("bert_tiny", "encodes 128 tokens: 2 layers, 128 wide, 2 heads", bert_tiny, 128, _TOKENS),
        ZooNetwork("bert_base", "encodes 128 tokens: 12 layers, 768 wide, 12 heads", bert_base, 128, _TOKENS),
    )
}
_WIDEST = 8.0
_MOST_IN_A_BATCH = 1024


def names() -> list[str]:
    """The networks, as they follow `zoo:`."""
    return list(NETWORKS)


def build(
    name: str,
    *,
    batch: int | None = None,
    size: int | None = None,
    width: float | None = None,
    seed: int = 0,
    open_inputs: Collection[str] = (),
) -> ModelProto:
    """The network as an ONNX model with random weights, the same for the same seed.

    `size` is the side of its images or the number of its tokens, `width` multiplies its channels. A name may say them.
    The inputs that `open_inputs` names have no sizes, so that any can be given that its layers take.

    >>> build("dcgan").graph.output[0].name, build("resnet18@batch=2,size=64,width=0.25").graph.input[0].name
    ('output', 'input')
    """
    base, at, text = name.partition("@")
    if base not in NETWORKS:
        raise UsageError(f"a network of the zoo is one of {', '.join(names())}, got {base!r}")
    network = NETWORKS[base]
    said: dict[str, float] = _parse(name, text) if at else {}
    given = {"batch": batch, "size": size, "width": width}
    said |= {key: value for key, value in given.items() if value is not None}
    model = network.make(_variant(network, said), seed)
    if open_inputs:
        _open(model.graph, open_inputs)
    return model


def _parse(name: str, text: str) -> dict[str, float]:
    """What follows the name: `batch=4,size=160,width=0.5`, each at most once."""
    said: dict[str, float] = {}
    for item in text.split(","):
        key, _, value = item.partition("=")
        if key not in ("batch", "size", "width") or key in said:
            raise UsageError(
                f"the sizes of a network follow its name as {name.partition('@')[0]}@batch=4,size=160,width=0.5, each "
                f"once at most; got {item!r} in {name!r}"
            )
        try:
            said[key] = float(value) if key == "width" else int(value)
        except ValueError:
            kind = "a number" if key == "width" else "a whole number"
            raise UsageError(f"{key} is {kind}, got {value!r} in {name!r}") from None
    return said


def _variant(network: ZooNetwork, said: Mapping[str, float]) -> Variant:
    batch, size, width = int(said.get("batch", 1)), int(said.get("size", network.size)), said.get("width", 1.0)
    if not 1 <= batch <= _MOST_IN_A_BATCH:
        raise UsageError(f"a batch has 1 to {_MOST_IN_A_BATCH} elements, got {batch}")
    if size not in network.sizes:
        sizes = network.sizes
        raise UsageError(f"the size of {network.name} is {sizes[0]} to {sizes[-1]}, got {size}")
    if not 0 < width <= _WIDEST:
        raise UsageError(f"the width of a network is above 0 and at most {_WIDEST:g}, got {width}")
    return Variant(batch, size, width)


def _open(graph: GraphProto, names: Collection[str]) -> None:
    for value in graph.input:
        if value.name in names:
            for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
                dimension.dim_param = f"{value.name}.{axis}"
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
