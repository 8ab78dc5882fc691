"""A network on the command line: a model file or `zoo:NAME`, and the shapes of inputs that it leaves open."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.graph.groups import Partition

_ZOO = "zoo:"
_MODEL = ".onnx"


def is_network(text: str) -> bool:
    """Whether a WORKLOAD|MODEL argument names a network.

    >>> is_network("zoo:resnet18"), is_network("nets/a.onnx"), is_network("gmm:8x8x8")
    (True, True, False)
    """
    return text.startswith(_ZOO) or text.endswith(_MODEL)


def add_shape_argument(parser: argparse.ArgumentParser) -> None:
    """`--shape`, which may be given several times."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="INPUT=SIZES",
        help="the shape of an input of a model that leaves it open, such as input=1x3x224x224; may be repeated",
    )


def parse_shapes(given: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The shapes by the names of the inputs.

    >>> parse_shapes(["input=1x3x224x224", "length=1"])
    {'input': (1, 3, 224, 224), 'length': (1,)}
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in given:
        found = re.fullmatch(r"(.+)=(\d+(?:x\d+)*)", text)
        if found is None:
            raise UsageError(f"--shape is {text!r}; give a name and sizes, such as input=1x3x224x224")
        shapes[found[1]] = tuple(int(size) for size in found[2].split("x"))
    return shapes


def partition_of(arguments: argparse.Namespace) -> Partition:
    """The network that the arguments name, cut into tasks."""
    from tilewright.graph.pipeline import partition_network

    return partition_network(arguments.workload, parse_shapes(arguments.shape))
