"""Reading a record file: its records, its tasks, or both. `log` says what is in one."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from tilewright.errors import RecordFormatError, TilewrightError
from tilewright.records.json_line import MAX_LINE_BYTES, NotJsonError, json_object
from tilewright.records.lines import FORMAT_KEY, FORMAT_VERSION, LineReader
from tilewright.records.record import Record
from tilewright.records.task_line import TASK_KEY, TaskLine
from tilewright.te import Task

BEGINNING = f'{{"{FORMAT_KEY}": '.encode()
MAX_HEADER_BYTES = 4096
TASK_BEGINNING = f'{{"{TASK_KEY}"'.encode()
# What else a file may begin with, and what to do then.
_OTHERS = {
    b"\x1f\x8b": "a compressed file: unpack it first, with gunzip",
    b"\xfd7zXZ": "a compressed file: unpack it first, with unxz",
    b"\xff\xfe": "a file in UTF-16: save it as UTF-8",
    b"\xfe\xff": "a file in UTF-16: save it as UTF-8",
    b"\xef\xbb\xbf": "a file with a byte-order mark, which some editors write: save it as UTF-8 without one",
}
_SOMETHING_ELSE = "something else: give another file"
_MARKS = (FORMAT_KEY.encode(), TASK_KEY.encode())


@dataclass(frozen=True, slots=True)
class Contents:
    """All that is in one file or several. A task that is there several times counts once, as it was written first."""

    records: list[Record]
    tasks: dict[str, TaskLine]
    """By their hashes, in the order in which they were written."""


def read_records(path: str | os.PathLike[str]) -> Iterator[Record]:
    """The records of a file, one after the other.

    The last line is left out if it is not whole: its writer was killed, or is writing. Any other line that is not a
    record raises RecordFormatError, which names the line. Tasks are not looked into; where the line of one is visibly
    broken, that costs no record, and there is a warning of the first.
    """
    reader = LineReader()
    is_warned = False
    for source, line in lines_of(path):
        try:
            entry = _read(reader, source, line)
        except RecordFormatError as error:
            if not line.startswith(TASK_BEGINNING):
                raise
            if not is_warned:
                warnings.warn(f"a task is set aside: {error}", stacklevel=2)
            is_warned = True
            continue
        if isinstance(entry, Record):
            yield entry


def read_tasks(path: str | os.PathLike[str]) -> dict[str, Task]:
    """The tasks of a file by their hashes, in the order in which they were written.

    A line that should hold one and does not raises RecordFormatError, which names the line. Records are not looked at.
    """
    reader = LineReader()
    found: dict[str, TaskLine] = {}
    for source, line in lines_of(path):
        entry = _read(reader, source, line) if any(mark in line for mark in _MARKS) else None
        if isinstance(entry, TaskLine):
            found.setdefault(entry.hash, entry)
    return {key: line.task() for key, line in found.items()}


def read_contents(*paths: str | os.PathLike[str]) -> Contents:
    """The records and the tasks of files; any line that is neither raises RecordFormatError."""
    reader = LineReader()
    found = Contents([], {})
    for source, line in chain.from_iterable(map(lines_of, paths)):
        entry = _read(reader, source, line)
        if isinstance(entry, Record):
            found.records.append(entry)
        elif isinstance(entry, TaskLine):
            found.tasks.setdefault(entry.hash, entry)
    return found


def lines_of(path: str | os.PathLike[str]) -> Iterator[tuple[str, bytes]]:
    """The lines of a file with their places, none of them longer than is read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise TilewrightError(f"the record file {os.fspath(path)} is no regular file; give the path of a file")
        with open(path, "rb") as file:
            check_beginning(path, file.peek(MAX_HEADER_BYTES)[:MAX_HEADER_BYTES])
            number = 0
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                yield f"{os.fspath(path)}:{number}", line
    except OSError as error:
        raise file_error(path, error) from error


def _read(reader: LineReader, source: str, line: bytes) -> Record | TaskLine | None:
    """What a line holds; None for a header, and for a last line that is not whole."""
    try:
        return reader.read(line, source)
    except NotJsonError as error:
        if len(line) >= MAX_LINE_BYTES:
            raise RecordFormatError(
                f"{source}: the line has more than {MAX_LINE_BYTES} bytes; remove the line, or restore the file"
            ) from error
        if not line.endswith(b"\n"):
            return None
        raise RecordFormatError(f"{source}: {error}") from error
    except RecordFormatError as error:
        raise RecordFormatError(f"{source}: {error}") from error


def check_beginning(path: str | os.PathLike[str], beginning: bytes) -> None:
    """A file that is something else is neither read nor written; a part of the header is what a full disk leaves."""
    if BEGINNING.startswith(beginning[: len(BEGINNING)]) or _is_header(beginning.partition(b"\n")[0]):
        return
    raise RecordFormatError(
        f"{os.fspath(path)}:1: a record file begins with {BEGINNING.decode()}{FORMAT_VERSION}, ...; "
        f"this is {next((what for start, what in _OTHERS.items() if beginning.startswith(start)), _SOMETHING_ELSE)}"
    )


def _is_header(line: bytes) -> bool:
    """Whether a line is a header as other programs write JSON: with other spaces, or its fields in another order."""
    try:
        return FORMAT_KEY in json_object(line.decode())
    except (RecordFormatError, UnicodeDecodeError):
        return False


def file_error(path: str | os.PathLike[str], error: OSError) -> TilewrightError:
    """The error to raise when the system refuses to read or write a file."""
    return TilewrightError(f"the record file {os.fspath(path)} cannot be used: {error.strerror}")
