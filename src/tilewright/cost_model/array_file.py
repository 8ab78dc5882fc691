"""A .npz that may come from anywhere, as arrays of numbers: no pickle, and nothing larger than it says it is.

Text is in it as bytes, and names as a JSON list of them.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Sequence
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

NOT_ARRAYS = (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, OverflowError)
"""What reading bytes that are something else may raise, be it the archive, an array or JSON inside.

A RuntimeError is an archive that is encrypted or packed in a way that is not known, or what is nested too deeply.
"""

_MEMBER = ".npy"
_KINDS = "iufb"
_MAX_NAME = 256
"""Characters of a name: more than any column or device has."""


def read_members(content: bytes, max_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz by their names; one of NOT_ARRAYS where it is none, or unpacks to more than `max_bytes`."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        num_bytes = sum(entry.file_size for entry in archive.infolist())
        if num_bytes > max_bytes:
            raise ValueError(f"it holds {num_bytes} bytes, and at most {max_bytes} are read")
        return {entry.filename.removesuffix(_MEMBER): _array(archive.read(entry)) for entry in archive.infolist()}


def _array(content: bytes) -> NDArray[Any]:
    """A .npy of numbers, whose size is what it says it is."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"arrays are of version 1.0, got {version}")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.kind not in _KINDS or dtype.hasobject:
        raise ValueError(f"arrays hold numbers, got {dtype}")
    if math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"an array of shape {shape} and type {dtype} has {len(content) - file.tell()} bytes")
    return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape, order="F" if is_fortran else "C")


def text_array(text: str) -> NDArray[np.uint8]:
    """Text as bytes that fit into a .npz."""
    return np.frombuffer(text.encode(), np.uint8)


def names_array(names: Sequence[str]) -> NDArray[np.uint8]:
    """Names as an array, from which `names_of` reads them."""
    return text_array(json.dumps(list(names)))


def names_of(array: NDArray[Any]) -> tuple[str, ...]:
    """The names in an array of a file; ValueError where they are none, one is overlong, or one is there twice."""
    names = json.loads(array.tobytes())
    if not isinstance(names, list) or not all(isinstance(name, str) and len(name) <= _MAX_NAME for name in names):
        raise ValueError(f"names are a list of texts of up to {_MAX_NAME} characters, got {shown(names)}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"names differ from one another, but {shown(twice)} is there twice")
    return tuple(names)
