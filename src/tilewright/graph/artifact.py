"""The file of a compiled model, `model.tw`: written by `save`, and ready to run after `load`, without compiling.

    magic (16 bytes) | format version, CRC-32 and length of the manifest (32, 32 and 64 bits) | manifest | code | data

The manifest is JSON text: the model without its bytes, where each piece of those lies in the sections code and data,
and the CRC-32 of both sections. Offsets count from the beginning of their section; each piece and both sections begin
on a cache line, so that weights are used where the file is mapped, without a copy. Every byte of the file is covered.

A CRC-32 finds any changed byte in the file at a third of the cost of a cryptographic hash: 30 ms for 100 MB. More is
not to be had from a hash that stands in the same file: the file contains native code, and has to come from a source
that is trusted.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import secrets
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import tilewright
from tilewright.errors import ArtifactError
from tilewright.graph.compiled import CompiledModel
from tilewright.graph.manifest import Json, model_from_json, model_to_json

SUFFIX = ".tw"
FORMAT_VERSION = 1
NOTICE = "This file contains native code, which runs with all rights of whoever loads it: load it only if you trust it."

_MAGIC = b"\x89tilewright\r\n\x1a\n\0"
_HEADER = struct.Struct("<16sIIQ")
_ALIGNMENT = 64
_STRING = "string"

Buffer: TypeAlias = "bytes | memoryview"


def is_artifact(path: str | os.PathLike[str]) -> bool:
    """Whether the file begins as one of ours does."""
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


# --- writing ----------------------------------------------------------------------------------------------------------


def save(model: CompiledModel, path: str | os.PathLike[str]) -> None:
    """Write the model to `path`: all of it, or nothing if that fails."""
    code = _Section()
    data = _Section()
    manifest = {
        "format": "tilewright model",
        "notice": NOTICE,
        "tool_version": tilewright.__version__,
        "model": model_to_json(model),
        "object_codes": [code.add(kernel.object_code) for kernel in model.kernels],
        "weights": [_add_array(data, array) for array in model.weights],
        "constants": [_add_array(data, array) for array in model.constants],
        "sections": {"code": code.describe(), "data": data.describe()},
    }
    text = json.dumps(manifest, separators=(",", ":")).encode()
    text += b" " * (-(_HEADER.size + len(text)) % _ALIGNMENT)
    header = _HEADER.pack(_MAGIC, FORMAT_VERSION, zlib.crc32(text), len(text))
    _write_atomically(Path(path), [header, text, *code.pieces, *data.pieces])


class _Section:
    """Pieces of bytes, each on a cache line, and what a reader must know of them."""

    def __init__(self) -> None:
        self.pieces: list[Buffer] = []
        self._nbytes = 0
        self._crc = 0

    def add(self, piece: Buffer) -> Json:
        """Where the piece lies."""
        place = {"offset": self._nbytes, "nbytes": len(piece)}
        for part in (piece, bytes(-len(piece) % _ALIGNMENT)):
            self.pieces.append(part)
            self._crc = zlib.crc32(part, self._crc)
            self._nbytes += len(part)
        return place

    def describe(self) -> Json:
        return {"nbytes": self._nbytes, "crc32": self._crc}


def _add_array(section: _Section, array: npt.NDArray[Any]) -> Json:
    if array.dtype.kind in "OUS":
        return {"dtype": _STRING, "shape": array.shape, **section.add(_strings_to_bytes(array))}
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return {"dtype": array.dtype.name, "shape": array.shape, **section.add(raw.data)}


def _strings_to_bytes(array: npt.NDArray[Any]) -> bytes:
    items = [item.decode() if isinstance(item, bytes) else str(item) for item in array.reshape(-1).tolist()]
    return json.dumps(items).encode()


def _write_atomically(path: Path, pieces: Iterable[Buffer]) -> None:
    """Through a file beside it that takes its name once it is whole and on the disk."""
    try:
        with _file_beside(path) as (file_number, beside):
            with os.fdopen(file_number, "wb") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
    except OSError as error:
        raise ArtifactError(
            f"the model could not be written to {path}: {error.strerror or error}; nothing was left there, and what "
            "was there before is unchanged"
        ) from error


@contextlib.contextmanager
def _file_beside(path: Path) -> Iterator[tuple[int, str]]:
    """A new file in the same folder, which is removed unless it is given another name."""
    name = os.path.join(path.parent, f".{path.name}.{secrets.token_hex(8)}")
    number = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        yield number, name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


# --- reading ----------------------------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], *, check_target: bool = True) -> CompiledModel:
    """Read a model, and check that it is whole and that this machine can run it.

    Its weights stay in the file, which is mapped: do not write into it while the model lives. `save` never does.
    """
    name = os.fspath(path)
    content = _map(name)
    manifest, begin = _read_manifest(name, content)
    try:
        code, data = _sections(name, manifest, content[begin:])
        model = model_from_json(
            manifest["model"],
            [bytes(_piece(code, place)) for place in manifest["object_codes"]],
            [_array(data, place) for place in manifest["weights"]],
            [_array(data, place) for place in manifest["constants"]],
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ArtifactError(
            f"{name}: the manifest is not one of format {FORMAT_VERSION}: {error!r}; compile the model again"
        ) from error
    if check_target:
        _check_target(name, model)
    return model


def read_manifest(path: str | os.PathLike[str]) -> Json:
    """What the file says of itself, without a look at code and weights."""
    name = os.fspath(path)
    return _read_manifest(name, _map(name))[0]


def _map(name: str) -> memoryview:
    try:
        with open(name, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ArtifactError(f"{name} is empty; a model is made by `tilewright compile model.onnx -o {name}`")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise ArtifactError(f"{name} cannot be read: {error.strerror or error}; check the path") from error


def _read_manifest(name: str, content: memoryview) -> tuple[Json, int]:
    """The manifest, and where the sections begin."""
    if content[: len(_MAGIC)] != _MAGIC:
        raise ArtifactError(
            f"{name} is not a compiled model; it begins with {bytes(content[:8])!r}; "
            f"make one with `tilewright compile model.onnx -o model{SUFFIX}`"
        )
    if len(content) < _HEADER.size:
        raise _damaged(name, f"it ends after {len(content)} bytes, within its header")
    _, version, crc, nbytes = _HEADER.unpack_from(content)
    if version != FORMAT_VERSION:
        raise ArtifactError(
            f"{name} has format {version}, and this version of tilewright ({tilewright.__version__}) reads format "
            f"{FORMAT_VERSION}; compile the model again with this version"
        )
    begin = _HEADER.size + nbytes
    if begin > len(content):
        raise _damaged(name, f"it ends after {len(content)} bytes, and its manifest alone needs {begin}")
    text = content[_HEADER.size : begin]
    if zlib.crc32(text) != crc:
        raise _damaged(name, "its manifest does not match its checksum")
    manifest: Json = json.loads(bytes(text))
    return manifest, begin


def _sections(name: str, manifest: Json, rest: memoryview) -> tuple[memoryview, memoryview]:
    code, data = manifest["sections"]["code"], manifest["sections"]["data"]
    needed = code["nbytes"] + data["nbytes"]
    if len(rest) != needed:
        raise _damaged(name, f"its kernels and weights have {len(rest)} bytes, and its manifest says {needed}")
    parts = rest[: code["nbytes"]], rest[code["nbytes"] :]
    for what, part, known in zip(("kernels", "weights"), parts, (code, data), strict=True):
        if zlib.crc32(part) != known["crc32"]:
            raise _damaged(name, f"its {what} do not match their checksum")
    return parts


def _damaged(name: str, how: str) -> ArtifactError:
    return ArtifactError(f"{name} is damaged: {how}; copy it again, or compile the model again")


def _check_target(name: str, model: CompiledModel) -> None:
    from tilewright.codegen import Target

    here = Target.native()
    if model.arch != here.arch:
        raise ArtifactError(
            f"{name} was compiled for {model.arch} ({model.target}), and this machine is {here.arch}; "
            "compile the model again for this machine"
        )
    missing = sorted(set(model.features) - here.enabled_features)
    if missing:
        raise ArtifactError(
            f"{name} was compiled for {model.target}, and this processor lacks {', '.join(missing)}; "
            "compile the model again for this machine"
        )


def _piece(section: memoryview, place: Json) -> memoryview:
    begin, nbytes = place["offset"], place["nbytes"]
    if not 0 <= begin <= begin + nbytes <= len(section):
        raise ValueError(f"a piece of {nbytes} bytes at {begin} is not in a section of {len(section)}")
    return section[begin : begin + nbytes]


def _array(section: memoryview, place: Json) -> npt.NDArray[Any]:
    piece = _piece(section, place)
    if place["dtype"] == _STRING:
        return np.array(json.loads(bytes(piece)), object).reshape(place["shape"])
    return np.frombuffer(piece, _numpy_dtype(place["dtype"])).reshape(place["shape"])


def _numpy_dtype(name: str) -> np.dtype[Any]:
    if name not in np.sctypeDict:
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
    return np.dtype(name)
