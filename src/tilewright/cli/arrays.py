"""The arrays that go into a network and come out of it, in .npz files."""

from __future__ import annotations

import io
import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.errors import TilewrightError, UsageError

# What reading a file raises that is broken, packed in a way that is not known, encrypted, or claims more than memory.
_BROKEN_ARCHIVE = (EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, RuntimeError, MemoryError)
# NumPy has Python's parser read what an array says of itself.
_BROKEN_HEADER = (ValueError, TypeError, LookupError, ArithmeticError, SyntaxError, tokenize.TokenError)
_NO_ARRAYS = (*_BROKEN_ARCHIVE, *_BROKEN_HEADER)


def read_npz(path: str) -> dict[str, Any]:
    """The arrays of a file, by name. Python objects in it are refused, since they can run code when they are read."""
    import numpy as np

    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}; give an .npz file") from error
    except _NO_ARRAYS as error:
        raise UsageError(
            f"{path} is not a file of plain arrays by name: {error}; write one with numpy.savez('x.npz', input=array)"
        ) from error


def write_npz(path: str, arrays: Mapping[str, Any]) -> None:
    """Write the arrays to the file. `numpy.savez` takes names as keywords, which not all names can be."""
    import numpy as np

    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _plain(name, value), allow_pickle=False)
    try:
        Path(path).write_bytes(content.getbuffer())
    except OSError as error:
        raise TilewrightError(
            f"the outputs could not be written to {path}: {error.strerror or error}; name another place"
        ) from error


def _plain(name: str, value: Any) -> Any:
    """The array as a file without Python objects can hold it: strings have a fixed length."""
    import numpy as np

    if not isinstance(value, np.ndarray | np.generic):
        raise TilewrightError(
            f"an .npz file holds arrays, but output {name} is {type(value).__name__}; run it from Python, with "
            "tilewright.InferenceSession"
        )
    array = np.asarray(value)
    return array.astype(np.str_) if array.dtype.kind == "O" else array
