"""Sizes to try for the dimensions that a model leaves open, as they are written on the command line and in Python."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TypeAlias

from tilewright.graph.onnx.sizes import Shapes, checked_shapes, derived_size
from tilewright.graph.protos import Dimension

InputShapes: TypeAlias = Mapping[str, tuple[Dimension, ...] | None]

# Of an input of which nothing is known.
_IMAGE = (1, 3, 224, 224)
_IMAGE_SIZE = 224
_NUM_CHANNELS = (1, 3, 4)
_LENGTH = 128


def hint(declared: InputShapes, known: InputShapes, given: Shapes) -> str:
    """What to write so that no dimension is open, both ways."""
    sizes = suggested_shapes(declared, known, given)
    return f"{as_options(sizes)}; in Python, {as_argument(sizes)}"


def as_options(shapes: Mapping[str, int | tuple[int, ...]]) -> str:
    """Options of the program.

    >>> as_options({"batch": 4, "the image": (1, 3, 8, 8)})
    "--shape batch=4 --shape 'the image=1x3x8x8'"
    """
    texts = {name: str(size) if isinstance(size, int) else "x".join(map(str, size)) for name, size in shapes.items()}
    return " ".join(f"--shape {shlex.quote(f'{name}={text}')}" for name, text in texts.items())


def as_argument(shapes: Mapping[str, int | tuple[int, ...]]) -> str:
    """An argument of `InferenceSession`.

    >>> as_argument({"batch": 4})
    "shapes={'batch': 4}"
    """
    return f"shapes={dict(shapes)!r}"


def suggested_shapes(declared: InputShapes, known: InputShapes, given: Shapes) -> dict[str, int | tuple[int, ...]]:
    """What the user gave, and what is missing: dimensions by name where all open ones of an input have one.

    `declared` are the inputs as the model has them, `known` the same with the sizes that the user gave.
    """
    sizes = _example_sizes(declared, known)
    found = checked_shapes(given)
    for name, dims in open_inputs(known).items():
        if dims is None:
            found[name] = _IMAGE
        elif None in dims or any(dim in declared for dim in dims):
            found[name] = tuple(_sized(dims, axis, sizes) for axis in range(len(dims)))
        else:
            found |= {dim: sizes[dim] for dim in dims if isinstance(dim, str) and not _is_derived(dim, sizes)}
    return found


def open_inputs(shapes: InputShapes) -> InputShapes:
    """Those that have dimensions without a size."""
    return {name: dims for name, dims in shapes.items() if dims is None or not all(isinstance(d, int) for d in dims)}


def _example_sizes(declared: InputShapes, known: InputShapes) -> dict[str, int]:
    """A size for each named dimension, such that they fit together."""
    sizes: dict[str, int] = {}
    for name, dims in declared.items():
        for axis, (dim, size) in enumerate(zip(dims or (), known[name] or (), strict=True)):
            if isinstance(dim, str):
                sizes.setdefault(dim, size if isinstance(size, int) else _example(dims or (), axis))
    derived = {dim: size for dim in sizes if _is_derived(dim, sizes) and (size := derived_size(dim, sizes)) is not None}
    return sizes | derived


def _is_derived(dim: str, sizes: Mapping[str, int]) -> bool:
    return not dim.isidentifier() and derived_size(dim, sizes) is not None


def _sized(dims: tuple[Dimension, ...], axis: int, sizes: Mapping[str, int]) -> int:
    dim = dims[axis]
    if isinstance(dim, int):
        return dim
    return _example(dims, axis) if dim is None else sizes[dim]


def _example(dims: tuple[Dimension, ...], axis: int) -> int:
    """A usual size: one image or text, the former of three channels."""
    if axis == 0:
        return 1
    if len(dims) < len(_IMAGE):
        return _LENGTH
    is_channels_last = dims[-1] in _NUM_CHANNELS and not isinstance(dims[1], int)
    return 3 if axis == 1 and not is_channels_last else _IMAGE_SIZE
