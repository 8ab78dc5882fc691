"""A .npz that may come from anywhere, as arrays of numbers: no pickle, and nothing larger than it says it is.

Text is in it as bytes, and names as a JSON list of them.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import UsageError

NOT_ARRAYS = (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, OverflowError)
"""What reading bytes that are something else may raise, be it the archive, an array or JSON inside.

A RuntimeError is an archive that is encrypted or packed in a way that is not known, or what is nested too deeply.
"""

_MEMBER = ".npy"
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # all that NumPy writes
_TYPES = frozenset(("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"))
_BEFORE_HEADER = 10
"""Bytes of a .npy of version 1.0: what it is, its version, and how long its header is."""
# As NumPy writes it. Its own reader asks Python's parser, which fails in a dozen ways where it is anything else.
_ARRAY_HEADER = re.compile(
    r"\{'descr': '([^'\\]{1,32})', 'fortran_order': (True|False), "
    r"'shape': \(((?:-?[0-9]{1,19}, ?)*(?:-?[0-9]{1,19})?)\), \} *\n"
)
_MAX_NAME = 256
"""Characters of a name: more than any column or device has."""
_MAX_TEXT_BYTES = 1 << 24
"""Of JSON: what it says may take fifty times the memory, before anybody has looked at it."""
_MAX_LEVELS = 100
"""Of JSON: models over models are as deep."""


def read_members(content: bytes, max_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz by their names; one of NOT_ARRAYS where it is none, or unpacks to more than `max_bytes`."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        num_bytes = sum(entry.file_size for entry in archive.infolist())
        if num_bytes > max_bytes:
            raise ValueError(f"it holds {num_bytes} bytes, and at most {max_bytes} are read")
        for entry in archive.infolist():
            if entry.compress_type not in _PACKED:
                raise ValueError(f"{shown(entry.filename)} is packed by the unknown method {entry.compress_type}")
        return {entry.filename.removesuffix(_MEMBER): _array(_read(archive, entry)) for entry in archive.infolist()}


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """What an entry holds: asked for all, the archive would unpack whatever is in it before it looks at the size."""
    with archive.open(entry) as file:
        return file.read(entry.file_size)


def _array(content: bytes) -> NDArray[Any]:
    """A .npy of numbers, whose size is what it says it is."""
    version = np.lib.format.read_magic(io.BytesIO(content))
    if version != (1, 0):
        raise ValueError(f"arrays are of version 1.0, got {version}")
    begin = _BEFORE_HEADER + int.from_bytes(content[_BEFORE_HEADER - 2 : _BEFORE_HEADER], "little")
    header = content[_BEFORE_HEADER:begin].decode("latin-1")
    found = _ARRAY_HEADER.fullmatch(header)
    if found is None:
        raise ValueError(f"an array says its type, order and shape, got {shown(header)}")
    if found[1][0] not in "<>|" or found[1][1:] not in _TYPES:
        raise ValueError(f"arrays hold numbers, got {found[1]}")
    dtype, shape = np.dtype(found[1]), tuple(int(size) for size in found[3].split(",") if size.strip())
    if math.prod(shape) * dtype.itemsize != len(content) - begin:
        raise ValueError(f"an array of shape {shape} and type {dtype} has {len(content) - begin} bytes")
    return np.frombuffer(content, dtype, offset=begin).reshape(shape, order="F" if found[2] == "True" else "C")


def text_array(text: str) -> NDArray[np.uint8]:
    """Text as bytes that fit into a .npz."""
    return np.frombuffer(text.encode(), np.uint8)


def json_of(array: NDArray[Any]) -> Any:
    """What the text in an array says; ValueError where it is no JSON, or JSON that no file of ours has."""
    if array.nbytes > _MAX_TEXT_BYTES:
        raise ValueError(f"JSON in a file has at most {_MAX_TEXT_BYTES} bytes, got {array.nbytes}")
    found = json.loads(array.tobytes())
    level = [found]
    for _ in range(_MAX_LEVELS):
        level = [child for value in level for child in _children(value)]
    if level:
        raise ValueError(f"JSON in a file has values within {_MAX_LEVELS} others at most, got more")
    return found


def _children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def plain(value: object) -> object:
    """For JSON, a number of NumPy that was given as an option, as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise UsageError(f"options of cost models are numbers, texts, and lists of these, got {shown(value)}")


def names_array(names: Sequence[str]) -> NDArray[np.uint8]:
    """Names as an array, from which `names_of` reads them."""
    return text_array(json.dumps(list(names)))


def names_of(array: NDArray[Any]) -> tuple[str, ...]:
    """The names in an array of a file; ValueError where they are none, one is overlong, or one is there twice."""
    names = json_of(array)
    if not isinstance(names, list) or not all(isinstance(name, str) and len(name) <= _MAX_NAME for name in names):
        raise ValueError(f"names are a list of texts of up to {_MAX_NAME} characters, got {shown(names)}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"names differ from one another, but {shown(twice)} is there twice")
    return tuple(names)
