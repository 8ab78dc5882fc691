"""Networks as they come: from a file, from bytes or from the zoo; and cut into tasks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from onnx import ModelProto

    from tilewright.graph.onnx.sizes import Shapes
    from tilewright.partition import Partition

Source: TypeAlias = "str | os.PathLike[str] | bytes | ModelProto"

ZOO = "zoo:"


def name_of(source: Source) -> str:
    """What the files that belong to a network are called.

    >>> name_of("zoo:resnet18"), name_of("nets/a.onnx"), name_of(b"...")
    ('resnet18', 'a', 'network')
    """
    if isinstance(source, str) and source.startswith(ZOO):
        return source.removeprefix(ZOO)
    return Path(source).stem if isinstance(source, str | os.PathLike) else "network"


def read_network(source: Source) -> ModelProto:
    """The ONNX model of a file, of bytes, or of a network of the zoo."""
    from tilewright.graph.onnx.reading import read_model
    from tilewright.zoo import build

    if isinstance(source, str) and source.startswith(ZOO):
        return build(source.removeprefix(ZOO))
    return read_model(source)


def partition_network(source: Source, shapes: Shapes | None = None) -> Partition:
    """Read a network, optimize its graph, and cut it into kernels, views and fallbacks.

    `shapes` gives what the model leaves open: shapes by the names of inputs, sizes by the names of dimensions. A
    network of the zoo is written for the shapes.
    """
    from tilewright.graph.onnx import load_model
    from tilewright.graph.passes import optimize
    from tilewright.partition import partition

    is_of_zoo = isinstance(source, str) and source.startswith(ZOO)
    return partition(optimize(load_model(_zoo_model(str(source), shapes) if is_of_zoo else source, shapes)))


def _zoo_model(source: str, shapes: Shapes | None) -> ModelProto:
    """The network of the zoo, of the batch that the shapes of its inputs begin with and the size that they end with."""
    from tilewright.zoo import build

    given = [shape for shape in (shapes or {}).values() if not isinstance(shape, int) and len(shape) > 1]
    if not shapes or not given:
        return read_network(source)
    return build(source.removeprefix(ZOO), batch=given[0][0], size=given[0][-1], open_inputs=shapes.keys())
