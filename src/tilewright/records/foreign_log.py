"""Logs of other tools, line by line: plain, .gz or .xz; what a line holds says the file of the tool."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import lzma
import math
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from reprlib import repr as shown
from typing import Any, TypeAlias

from tilewright.errors import RecordFormatError
from tilewright.records.json_line import MAX_LINE_BYTES
from tilewright.records.reading import file_error

BROKEN_LINE = (ValueError, TypeError, LookupError, OverflowError, RecursionError, AttributeError)
"""What parsing a line raises that holds something else."""
_BROKEN_FILE = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)
_XZ, _GZIP = b"\xfd7zXZ\x00", b"\x1f\x8b"
_PACKERS = {
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"]\0\0": "lzma",
    b"7z\xbc\xaf": "7z",
}
_TAR, _AT_TAR = b"ustar", 257  # what an archive has behind the name of its first file
_MOST_CHARACTERS = 300
_MOST_READ = MAX_LINE_BYTES + 8  # of a line: enough to see that it is too long, even without a byte-order mark

_Content: TypeAlias = io.BufferedReader | gzip.GzipFile | lzma.LZMAFile


@dataclass(frozen=True, slots=True)
class LoggedProgram:
    """One line of a log, whichever tool wrote it.

    `form` has the kind of each primitive, its names and how many numbers it has; `numbers` has those of all, one after
    the other. Programs of the same form differ in numbers alone.
    """

    workload: str
    """What the tool calls the task, as the text of JSON."""
    target: str
    form: tuple[tuple[str, tuple[str, ...], int], ...]
    numbers: tuple[int, ...]
    latency_s: float | None
    error_number: int


def log_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """The lines of a log with their numbers; those that are empty or begin with # are left out.

    Of a line that is longer than any record there is no more than its beginning. A file that ends in the middle of its
    compressed data raises RecordFormatError after its last line.
    """
    number = 0
    try:
        with open(path, "rb") as raw, _unpacked(raw) as unpacked, _in_utf_8(unpacked) as file:
            _check_no_archive(raw.name, unpacked)
            for number, line in enumerate(_lines(file), 1):
                is_blank = len(line) <= MAX_LINE_BYTES and not line.strip()
                if not is_blank and not line.startswith(b"#"):
                    yield number, line
    except _BROKEN_FILE as error:
        raise RecordFormatError(
            f"{os.fspath(path)}:{number + 1}: the compressed file ends here ({error}); fetch it again"
        ) from error
    except OSError as error:
        raise file_error(path, error) from error


def parsed(line: bytes) -> Any:
    """The JSON of a line; one of BROKEN_LINE where it is none."""
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"a line has at most {MAX_LINE_BYTES} bytes")
    return json.loads(line)


def line_error(path: str | os.PathLike[str], number: int, what: str, error: Exception) -> RecordFormatError:
    """The error of a line that is no record."""
    reason = str(error)[:_MOST_CHARACTERS]
    return RecordFormatError(
        f"{os.fspath(path)}:{number}: not a record of {what} ({type(error).__name__}: {reason}); remove the line"
    )


def flattened(values: list[Any] | tuple[Any, ...]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The words and the whole numbers of a nested list, each in order; TypeError if anything else is in it."""
    words: list[str] = []
    numbers: list[int] = []
    for value in values:
        if isinstance(value, int):  # and true and false
            numbers.append(int(value))
        elif isinstance(value, str):
            words.append(value)
        elif isinstance(value, list):
            more_words, more_numbers = flattened(value)
            words += more_words
            numbers += more_numbers
        else:
            raise TypeError(f"a primitive has words and whole numbers, got {str(value)[:_MOST_CHARACTERS]}")
    return tuple(words), tuple(numbers)


def costs_s(values: object) -> tuple[float, ...]:
    """The costs of a program that ran; ValueError or TypeError where they are no list of seconds."""
    if not isinstance(values, list) or not all(map(_is_number, values)):
        raise TypeError(f"costs are a list of numbers, got {shown(values)}")
    times_s = tuple(map(float, values))
    if not all(0 <= time_s < math.inf for time_s in times_s):
        raise ValueError(f"a cost is a number of seconds, got {shown(list(times_s))}")
    return times_s


def error_number(value: Any) -> int:
    """What a tool calls the failure of a program, 0 for none; ValueError or TypeError where it is no whole number."""
    number = int(value)
    if number != value:
        raise ValueError(f"an error has a whole number, got {shown(value)}")
    return number


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unpacked(file: io.BufferedReader) -> _Content:
    """The content of a file, which is read once and in order: it may be a pipe."""
    beginning = file.peek(len(_XZ))
    for start, packer in _PACKERS.items():
        if beginning.startswith(start):
            raise _packed_otherwise(file.name, packer)
    if beginning.startswith(_XZ):
        return lzma.LZMAFile(file)
    return gzip.GzipFile(fileobj=file) if beginning.startswith(_GZIP) else file


def _check_no_archive(name: str, file: _Content) -> None:
    header = file.peek(_AT_TAR + len(_TAR))
    if header[_AT_TAR:].startswith(_TAR) and 0 in header[:_AT_TAR]:  # behind a name, which is filled up with zeros
        raise _packed_otherwise(name, "tar")


def _packed_otherwise(name: str, packer: str) -> RecordFormatError:
    return RecordFormatError(f"{name}:1: the file is packed by {packer}, and .gz and .xz are read; unpack it")


class _Recoded:
    """The lines of a file in UTF-16 as UTF-8."""

    def __init__(self, file: _Content) -> None:
        # A line of JSON may have what str.splitlines, and so the readers of codecs, take for the end of one.
        self._text = io.TextIOWrapper(file, "utf-16", errors="replace", newline="\n")

    def __enter__(self) -> _Recoded:
        return self

    def __exit__(self, *_: object) -> None:
        self._text.close()

    def readline(self, size: int) -> bytes:
        """The next line, or so many characters of it."""
        return self._text.readline(size).encode()


def _in_utf_8(file: _Content) -> _Content | _Recoded:
    """The same lines; what a shell of Windows writes into a file is UTF-16."""
    is_utf_16 = file.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return _Recoded(file) if is_utf_16 else file


def _lines(file: _Content | _Recoded) -> Iterator[bytes]:
    """The lines, without a byte-order mark, which may also stand where two files were joined."""
    while line := file.readline(_MOST_READ):
        if len(line) >= _MOST_READ and not line.endswith(b"\n"):
            _skip_rest(file)
        yield line.removeprefix(codecs.BOM_UTF8)


def _skip_rest(file: _Content | _Recoded) -> None:
    """Go on to the end of a line."""
    while (more := file.readline(_MOST_READ)) and not more.endswith(b"\n"):
        pass
