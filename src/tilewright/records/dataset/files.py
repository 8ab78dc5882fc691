"""The files of a dataset: JSON, and arrays with a JSON header in a .npz. Never a pickle.

Each says its format, the version of that and what kind of file it is. A file is written beside its place and then put
there, so that whoever is killed while writing leaves the old one.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost_model.array_file import NOT_ARRAYS, read_members
from tilewright.errors import RecordFormatError, TilewrightError
from tilewright.version import __version__

FORMAT = "tilewright-dataset"
VERSION = 1
_HEADER = "header"
_MEMBER = ".npy"

# More than any dataset has; what claims to be larger is not read.
_MAX_JSON_BYTES = 1 << 24
_MAX_HEADER_BYTES = 1 << 25  # as JSON takes twenty times as much memory when it is read
_MAX_ARRAY_BYTES = 1 << 29


def write_json(path: Path, kind: str, content: Mapping[str, Any]) -> None:
    """Put a JSON file in its place."""
    _replace(path, (json.dumps(_stamped(kind) | dict(content), allow_nan=False, indent=None) + "\n").encode())


def read_json(path: Path, kind: str) -> dict[str, Any]:
    """What `write_json` wrote; RecordFormatError says what is wrong with another file."""
    try:
        data = json.loads(_read(path, _MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise broken(path, f"it is not JSON ({error})") from error
    return _checked_stamp(path, kind, data)


def write_arrays(path: Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Put a .npz with a header in its place. The same content gives the same bytes."""
    text = json.dumps(_stamped(kind) | dict(header), allow_nan=False, separators=(",", ":"))
    members = {_HEADER: np.frombuffer(text.encode(), np.uint8), **arrays}
    if len(text) > _MAX_HEADER_BYTES or sum(array.nbytes for array in members.values()) > _MAX_ARRAY_BYTES - 2**20:
        raise TilewrightError(f"{path}: it would be larger than what is read; put fewer programs into the dataset")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in members.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}{_MEMBER}")
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content.getvalue())
    _replace(path, buffer.getvalue())


def read_arrays(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays that `write_arrays` wrote; RecordFormatError says what is wrong with another file."""
    try:
        members = read_members(_read(path, _MAX_ARRAY_BYTES), _MAX_ARRAY_BYTES)
        text = members.pop(_HEADER)
        _check_size(path, text.nbytes, _MAX_HEADER_BYTES)
        header = json.loads(text.tobytes())
    except KeyError:
        raise broken(path, "it has no header") from None
    except NOT_ARRAYS as error:
        raise broken(path, f"it is no .npz of numbers ({error})") from error
    return _checked_stamp(path, kind, header), members


def broken(path: Path, what: str) -> RecordFormatError:
    """The error of a file that cannot be used."""
    return RecordFormatError(f"{path}: {what}; restore the file, or remove it and collect or import again")


def folder_error(path: Path, error: OSError) -> TilewrightError:
    """The error to raise when the system refuses."""
    return TilewrightError(f"the dataset's file {path} cannot be used: {error.strerror or error}")


def _stamped(kind: str) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "kind": kind, "tool_version": __version__}


def _checked_stamp(path: Path, kind: str, data: object) -> dict[str, Any]:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise broken(path, f"a file of a dataset says that its format is {FORMAT}, got {shown(data)}")
    if data.get("version") != VERSION:
        raise RecordFormatError(
            f"{path}: the format is version {shown(data.get('version'))}, and this tilewright ({__version__}) reads "
            f"version {VERSION}; use the tilewright that wrote it, or a newer one"
        )
    if data.get("kind") != kind:
        raise broken(path, f"it should be a file of the kind {kind}, and is one of the kind {shown(data.get('kind'))}")
    return data


def _read(path: Path, max_bytes: int) -> bytes:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # to open a pipe would be to wait for its writer
            raise broken(path, "it is no regular file")
        _check_size(path, status.st_size, max_bytes)
        with open(path, "rb") as file:
            return file.read(max_bytes)
    except FileNotFoundError:
        raise broken(path, "it is not there") from None
    except OSError as error:
        raise broken(path, f"it cannot be read: {error.strerror or error}") from error


def _check_size(path: Path, num_bytes: int, max_bytes: int) -> None:
    if num_bytes > max_bytes:
        raise broken(path, f"it holds {num_bytes} bytes, and at most {max_bytes} are read")


def _replace(path: Path, content: bytes) -> None:
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with open(fd, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise folder_error(path, error) from error
    finally:
        with suppress(OSError):  # it has its name by now, unless somebody interrupted
            os.unlink(temporary)


def _umask() -> int:
    """What Linux would take from the mode of a new file."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
