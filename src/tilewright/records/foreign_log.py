"""Logs of other tools, line by line: plain, .gz or .xz; what a line holds says the file of the tool."""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
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
_MOST_CHARACTERS = 300

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

    A file that ends in the middle of its compressed data raises RecordFormatError after its last line.
    """
    number = 0
    try:
        with open(path, "rb") as raw, _unpacked(raw) as unpacked:
            file = _in_utf_8(unpacked)
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                if line.strip() and not line.startswith(b"#"):
                    yield number, line
    except _BROKEN_FILE as error:
        raise RecordFormatError(
            f"{os.fspath(path)}:{number + 1}: the compressed file ends here ({error}); fetch it again"
        ) from error
    except OSError as error:
        raise file_error(path, error) from error


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


def _unpacked(file: io.BufferedReader) -> _Content:
    """The content of a file, which is read once and in order: it may be a pipe."""
    beginning = file.peek(len(_XZ))
    if beginning.startswith(_XZ):
        return lzma.LZMAFile(file)
    for start, packer in _PACKERS.items():
        if beginning.startswith(start):
            raise RecordFormatError(
                f"{file.name}:1: the file is packed by {packer}, and .gz and .xz are read; unpack it"
            )
    return gzip.GzipFile(fileobj=file) if beginning.startswith(_GZIP) else file


def _in_utf_8(file: _Content) -> _Content | codecs.StreamRecoder:
    """The same lines; what a shell of Windows writes into a file is UTF-16."""
    is_utf_16 = file.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return codecs.EncodedFile(file, "utf-8", "utf-16", errors="replace") if is_utf_16 else file
