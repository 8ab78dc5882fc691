"""The file of a compiled model, `model.tw`: written by `save`, and ready to run after `load`, without compiling.

    magic (16 bytes) | format version, CRC-32 and length of the manifest (32, 32 and 64 bits) | manifest | code | data

The manifest is JSON text: the model without its bytes, where each piece of those lies in the sections code and data,
and the CRC-32 of both sections. A piece of code is a kernel: a line that says what memory it touches, and its object
file; a piece of data is an array. Offsets count from the beginning of their section; each piece and both sections begin
on a cache line, so that weights are used where the file is mapped, without a copy. Every byte of the file is covered.

A CRC-32 finds any changed byte in the file at a third of the cost of a cryptographic hash: 30 ms for 100 MB. More is
not to be had from a hash that stands in the same file: the file contains native code, and has to come from a source
that is trusted. All but the code is checked nevertheless, so that no manifest, however it came about, makes sound code
leave its memory.

Format 1 had no lines before the object files: of such a file it is not known what memory its kernels touch.
"""

from __future__ import annotations

import contextlib
import json
import math
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

from tilewright.arguments import replaceable_file
from tilewright.deploy.compiled import CompiledModel, KernelCode
from tilewright.deploy.json_field import Field, parse
from tilewright.deploy.manifest import (
    STRING,
    Json,
    kernel_from_bytes,
    kernel_of_format_1,
    kernel_to_bytes,
    model_from_json,
    model_to_json,
    tensor_type,
)
from tilewright.deploy.model_checks import check_model
from tilewright.errors import ArtifactError
from tilewright.version import __version__

SUFFIX = ".tw"
FORMAT_VERSION = 2
READABLE_VERSIONS = (1, 2)
NOTICE = "This file contains native code, which runs with all rights of whoever loads it: load it only if you trust it."

MAGIC = b"\x89tilewright\r\n\x1a\n\0"
HEADER = struct.Struct("<16sIIQ")
ALIGNMENT = 64

Buffer: TypeAlias = "bytes | memoryview"


def is_artifact(path: str | os.PathLike[str]) -> bool:
    """Whether the file begins as one of ours does."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


# --- writing ----------------------------------------------------------------------------------------------------------


def save(model: CompiledModel, path: str | os.PathLike[str]) -> None:
    """Write the model to `path`: all of it, or nothing if that fails."""
    code = _Section()
    data = _Section()
    manifest = {
        "format": "tilewright model",
        "notice": NOTICE,
        "tool_version": __version__,
        "model": model_to_json(model),
        "object_codes": [code.add(kernel_to_bytes(kernel)) for kernel in model.kernels],
        "weights": [_add_array(data, array) for array in model.weights],
        "constants": [_add_array(data, array) for array in model.constants],
        "sections": {"code": code.describe(), "data": data.describe()},
    }
    text = json.dumps(manifest, separators=(",", ":")).encode()
    text += b" " * (-(HEADER.size + len(text)) % ALIGNMENT)
    header = HEADER.pack(MAGIC, FORMAT_VERSION, zlib.crc32(text), len(text))
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
        for part in (piece, bytes(-len(piece) % ALIGNMENT)):
            self.pieces.append(part)
            self._crc = zlib.crc32(part, self._crc)
            self._nbytes += len(part)
        return place

    def describe(self) -> Json:
        return {"nbytes": self._nbytes, "crc32": self._crc}


def _add_array(section: _Section, array: npt.NDArray[Any]) -> Json:
    if array.dtype.kind in "OUS":
        return {"dtype": STRING, "shape": array.shape, **section.add(_strings_to_bytes(array))}
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return {"dtype": array.dtype.name, "shape": array.shape, **section.add(raw.data)}


def _strings_to_bytes(array: npt.NDArray[Any]) -> bytes:
    items = [item.decode() if isinstance(item, bytes) else str(item) for item in array.reshape(-1).tolist()]
    return json.dumps(items).encode()


def _write_atomically(path: Path, pieces: Iterable[Buffer]) -> None:
    """Through a file beside it that takes its name once it is whole and on the disk."""
    replaced = replaceable_file("the file of the model", path)
    try:
        with _file_beside(replaced) as (file_number, beside):
            with os.fdopen(file_number, "wb") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, replaced)
    except OSError as error:
        raise ArtifactError(
            f"the model could not be written to {path}: {error.strerror or error}; nothing was left there, and what "
            "was there before is unchanged"
        ) from error


@contextlib.contextmanager
def _file_beside(path: Path) -> Iterator[tuple[int, str]]:
    """A new file in the same folder, which is removed unless it is given another name."""
    name = os.path.join(path.parent, f".{secrets.token_hex(8)}.partial")  # short, whatever its name is
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
    version, manifest, begin = _read_manifest(name, content)
    code, data = _sections(name, manifest["sections"], content[begin:])
    model = model_from_json(
        manifest["model"],
        _kernels(version, manifest, code),
        [_array(data.piece(place), place) for place in manifest["weights"].items()],
        [_array(data.piece(place), place) for place in manifest["constants"].items()],
    )
    for section in (code, data):
        section.check_end()
    check_model(name, model)
    _check_objects(name, model)
    if check_target:
        _check_target(name, model)
    return model


def read_manifest(path: str | os.PathLike[str]) -> Json:
    """What the file says of itself, without a look at code and weights."""
    name = os.fspath(path)
    found: Json = _read_manifest(name, _map(name))[1].value
    return found


def tool_version(path: str | os.PathLike[str]) -> str:
    """The version of tilewright that has written the file."""
    name = os.fspath(path)
    return _read_manifest(name, _map(name))[1]["tool_version"].text()


def _map(name: str) -> memoryview:
    try:
        with open(name, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ArtifactError(f"{name} is empty; a model is made by `tilewright compile model.onnx -o {name}`")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise ArtifactError(f"{name} cannot be read: {error.strerror or error}; check the path") from error


def _read_manifest(name: str, content: memoryview) -> tuple[int, Field, int]:
    """The version, the manifest, and where the sections begin."""
    if content[: len(MAGIC)] != MAGIC:
        raise ArtifactError(
            f"{name} is not a compiled model; it begins with {bytes(content[:8])!r}; "
            f"make one with `tilewright compile model.onnx -o model{SUFFIX}`"
        )
    if len(content) < HEADER.size:
        raise _damaged(name, f"it ends after {len(content)} bytes, within its header")
    _, version, crc, nbytes = HEADER.unpack_from(content)
    if version not in READABLE_VERSIONS:
        raise ArtifactError(
            f"{name} has format {version}, and this version of tilewright ({__version__}) reads formats "
            f"{' and '.join(map(str, READABLE_VERSIONS))}; compile the model again with this version"
        )
    begin = HEADER.size + nbytes
    if begin > len(content):
        raise _damaged(name, f"it ends after {len(content)} bytes, and its manifest alone needs {begin}")
    text = content[HEADER.size : begin]
    if zlib.crc32(text) != crc:
        raise _damaged(name, "its manifest does not match its checksum")
    if begin % ALIGNMENT:
        raise _damaged(name, f"its manifest ends at byte {begin}, which is not the end of a cache line")
    return version, parse(bytes(text), name), begin


class _Pieces:
    """The pieces of a section, taken one after the other: each begins on the cache line after the one before it."""

    def __init__(self, described: Field, content: memoryview) -> None:
        self._described = described
        self._content = content
        self._next = 0

    def piece(self, place: Field) -> memoryview:
        """The piece that is said to lie there, where it has to."""
        begin = place["offset"].integer(at_least=self._next, at_most=self._next)
        nbytes = place["nbytes"].integer(at_most=len(self._content) - begin)
        self._next = begin + nbytes + -nbytes % ALIGNMENT
        return self._content[begin : begin + nbytes]

    def check_end(self) -> None:
        """After the last piece nothing is left."""
        if self._next != len(self._content):
            raise self._described["nbytes"].refused(f"{self._next}, where its last piece ends")


def _sections(name: str, described: Field, rest: memoryview) -> tuple[_Pieces, _Pieces]:
    code, data = described["code"], described["data"]
    num_code, num_data = code["nbytes"].integer(), data["nbytes"].integer()
    if len(rest) != num_code + num_data:
        raise _damaged(
            name, f"its kernels and weights have {len(rest)} bytes, and its manifest says {num_code + num_data}"
        )
    parts = rest[:num_code], rest[num_code:]
    for what, part, known in zip(("kernels", "weights"), parts, (code, data), strict=True):
        if zlib.crc32(part) != known["crc32"].integer():
            raise _damaged(name, f"its {what} do not match their checksum")
    return _Pieces(code, parts[0]), _Pieces(data, parts[1])


def _kernels(version: int, manifest: Field, code: _Pieces) -> list[KernelCode]:
    known, places = manifest["model"]["kernels"].items(), manifest["object_codes"].items()
    if len(known) != len(places):
        raise manifest["object_codes"].refused(f"a list of {len(known)}, as there are kernels")
    read = kernel_of_format_1 if version == 1 else kernel_from_bytes
    return [read(kernel, bytes(code.piece(place))) for kernel, place in zip(known, places, strict=True)]


def _damaged(name: str, how: str) -> ArtifactError:
    return ArtifactError(f"{name} is damaged: {how}; copy it again, or compile the model again")


def _check_objects(name: str, model: CompiledModel) -> None:
    """LLVM is given object files that are whole, and asked for functions that are there."""
    from tilewright.codegen.elf import ElfError, functions_of

    for kernel in model.kernels:
        try:
            functions = functions_of(kernel.object_code)
        except ElfError as error:
            raise ArtifactError(
                f"{name}: the code of kernel {kernel.name} is not a whole object file: {error}; compile the model again"
            ) from error
        if kernel.symbol not in functions:
            raise ArtifactError(
                f"{name}: the code of kernel {kernel.name} has no function {kernel.symbol!r}; compile the model again"
            )


def _check_target(name: str, model: CompiledModel) -> None:
    from tilewright.target import Target

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


def _array(piece: memoryview, described: Field) -> npt.NDArray[Any]:
    known = tensor_type(described)
    num_elements = math.prod(known.shape)
    if known.dtype == STRING:
        items = parse(bytes(piece), f"{described}, its content").items()
        if len(items) != num_elements:
            raise described["shape"].refused(f"one for the {len(items)} strings that are there")
        found = np.empty(num_elements, object)
        found[:] = [item.text() for item in items]
        return found.reshape(known.shape)
    dtype = numpy_dtype(known.dtype)
    if len(piece) != num_elements * dtype.itemsize:
        raise described["nbytes"].refused(f"{num_elements * dtype.itemsize}, for {known.dtype}{list(known.shape)}")
    return np.frombuffer(piece, dtype).reshape(known.shape)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The element type of arrays of that name."""
    if name not in np.sctypeDict:
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
    return np.dtype(name)
