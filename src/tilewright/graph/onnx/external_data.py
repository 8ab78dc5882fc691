"""Weights that a model keeps in files beside it.

onnx's own reader takes no links, neither symbolic nor hard ones. But the folders that tools download into are made of
them: in the cache of Hugging Face, the names of a model and of its weights are links to files beside each other. So a
link is followed here as onnxruntime does: to where the model is, or to where its own link leads.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from onnx import ModelProto, TensorProto
from onnx.external_data_helper import uses_external_data

from tilewright.errors import ModelError
from tilewright.graph.protos import tensors, tensors_of_nodes

_NEXT_TO_IT = "put it next to the model"
_AGAIN = "export the model again"
_MOST_DIGITS = 20


def load_external_data(model: ModelProto, path: Path) -> None:
    """Put what the model at `path` keeps in files beside it into the model."""
    for tensor in _tensors(model):
        if uses_external_data(tensor):
            tensor.raw_data = _read(tensor, path)
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    return chain(tensors(model.graph), *(tensors_of_nodes(function.node) for function in model.functions))


def _read(tensor: TensorProto, path: Path) -> bytes:
    entries = {str(entry.key): str(entry.value) for entry in tensor.external_data}  # damaged ones are bytes
    location = entries.get("location", "")
    what = f"{path} keeps the weights {tensor.name} in the file {location!r}"
    if not location:
        raise ModelError(f"{path} keeps the weights {tensor.name} in a file, but does not say in which; {_AGAIN}")
    offset, length = (_number(entries, key, what) for key in ("offset", "length"))
    try:
        found = os.path.realpath(path.parent / _inside(location, what), strict=True)
        _check_home(found, path, what)
        status = os.stat(found)
        if not stat.S_ISREG(status.st_mode):  # a pipe would keep us waiting
            raise ModelError(f"{what}, which is no file; {_NEXT_TO_IT}")
        start = offset or 0
        size = status.st_size - start if length is None else length
        if not 0 <= size <= status.st_size - start:
            raise ModelError(
                f"{what}, {'the rest' if length is None else f'{length} bytes'} from byte {start} on, but that has "
                f"{status.st_size}: it is cut short, or of another model; {_NEXT_TO_IT}, or {_AGAIN}"
            )
        with open(found, "rb") as file:
            file.seek(start)
            return file.read(size)
    except OSError as error:
        raise ModelError(f"{what}, which cannot be read: {error.strerror}; {_NEXT_TO_IT}") from error


def _inside(location: str, what: str) -> str:
    """A name that leads to a file in or below the folder of the model, but for links."""
    name = os.path.normpath(location)
    if os.path.isabs(name) or name.split(os.sep)[0] == os.pardir or "\0" in name:
        raise ModelError(f"{what}, which is not in the folder of the model; {_NEXT_TO_IT}, or {_AGAIN}")
    return name


def _check_home(found: str, path: Path, what: str) -> None:
    """No link leads out of the folder of the model, or out of the one that its own link leads to."""
    homes = {os.path.realpath(path.parent), os.path.dirname(os.path.realpath(path))}
    if not any(Path(found).is_relative_to(home) for home in homes):
        raise ModelError(f"{what}, a link to {found}, which is not in the folder of the model; {_NEXT_TO_IT}")


def _number(entries: dict[str, str], key: str, what: str) -> int | None:
    if key not in entries:
        return None
    if not entries[key].isdecimal() or len(entries[key]) > _MOST_DIGITS:
        raise ModelError(f"{what} with the {key} {entries[key]!r}, which is no number of bytes; {_AGAIN}")
    return int(entries[key])
