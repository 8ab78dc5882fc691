"""The record file: a header line, then one line of JSON for each trial. It only ever grows.

Several tuners may append to one file: a writer holds a lock for the time of one write. Readers take none, and so see
at worst the beginning of a last line, which they leave out. What a writer that died, or a full disk, left of a line is
removed by the next writer.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from tilewright.errors import RecordFormatError, TilewrightError
from tilewright.records.lines import FORMAT_KEY, FORMAT_VERSION, LineReader, NotJsonError
from tilewright.records.record import Record
from tilewright.version import __version__

_BEGINNING = f'{{"{FORMAT_KEY}": '.encode()
# A line is a few thousand bytes long.
_MAX_LINE_BYTES = 1 << 22


class RecordLog:
    """A record file, which need not exist before something is appended."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def append(self, record: Record) -> None:
        """Add one record; once this returns, the end of this process cannot lose it."""
        self.extend([record])

    def extend(self, records: Iterable[Record]) -> None:
        """Add records in one write: all of them or, if it fails, none."""
        text = _text_of(records)
        if not text:
            return
        with self._locked(os.O_CREAT) as fd:
            _repair_end(fd)
            if os.fstat(fd).st_size == 0:
                text = _header_line() + text
            _append_all(self.path, fd, text.encode())

    def read(self) -> list[Record]:
        """All records in the order in which they were written; none if the file does not exist yet."""
        return list(read_records(self.path)) if self.path.exists() else []

    def rewrite(self, change: Callable[[list[Record]], Sequence[Record]], create: bool = False) -> None:
        """Put `change(records)` in the place of the records, at once and without losing those of other writers."""
        with self._locked(os.O_CREAT if create else 0) as fd:
            _replace(self.path, change(self.read()), mode=os.fstat(fd).st_mode & 0o777)

    @contextmanager
    def _locked(self, flags: int) -> Iterator[int]:
        """The open file, locked against other writers."""
        while True:
            fd = self._open(flags)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if self._is_at_path(fd):
                    _check_beginning(self.path, os.pread(fd, min(len(_BEGINNING), os.fstat(fd).st_size), 0))
                    yield fd
                    return
            finally:
                os.close(fd)  # which unlocks it

    def _open(self, flags: int) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o666)
        except OSError as error:
            raise file_error(self.path, error) from error

    def _is_at_path(self, fd: int) -> bool:
        """Whether the file was not replaced by `rewrite` while we waited for the lock."""
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self.path))
        except FileNotFoundError:
            return False


def read_records(path: str | os.PathLike[str]) -> Iterator[Record]:
    """The records of a file, one after the other.

    The last line is left out if it is not whole: its writer was killed, or is writing. Any other line that is not a
    record raises RecordFormatError, which names the line.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise TilewrightError(f"the record file {os.fspath(path)} is no regular file; give the path of a file")
        with open(path, "rb") as file:
            _check_beginning(path, file.peek(len(_BEGINNING))[: len(_BEGINNING)])
            yield from _read_lines(os.fspath(path), file)
    except OSError as error:
        raise file_error(path, error) from error


def _read_lines(path: str, file: BufferedReader) -> Iterator[Record]:
    reader = LineReader()
    number = 0
    while line := file.readline(_MAX_LINE_BYTES):
        number += 1
        source = f"{path}:{number}"
        try:
            record = reader.read(line, source)
        except NotJsonError as error:
            if not line.endswith(b"\n") and len(line) < _MAX_LINE_BYTES:
                return
            raise RecordFormatError(f"{source}: {error}") from error
        except RecordFormatError as error:
            raise RecordFormatError(f"{source}: {error}") from error
        if record is not None:
            yield record


def _replace(path: Path, records: Iterable[Record], mode: int) -> None:
    """Put a file with these records in the place of the one that is there, once it is whole."""
    fd, temporary = -1, ""
    try:
        fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.fchmod(fd, mode)
        with open(fd, "w") as file:
            file.write(_header_line() + _text_of(records))
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            os.unlink(temporary)
        raise file_error(path, error) from error


def _header_line() -> str:
    header = {FORMAT_KEY: FORMAT_VERSION, "tool_version": __version__, "created": time.time()}
    return json.dumps(header) + "\n"


def _text_of(records: Iterable[Record]) -> str:
    return "".join(record.to_line() + "\n" for record in records)


def _check_beginning(path: str | os.PathLike[str], beginning: bytes) -> None:
    """A file that is something else is neither read nor written; a part of the header is what a full disk leaves."""
    if not _BEGINNING.startswith(beginning):
        raise RecordFormatError(
            f"{os.fspath(path)}:1: a record file begins with {_BEGINNING.decode()}{FORMAT_VERSION}, ...; "
            "this is something else: give another file"
        )


def _repair_end(fd: int) -> None:
    """Make the file end at the end of a line. Called with the lock, so that no other writer is in the middle of one."""
    size = os.fstat(fd).st_size
    if size == 0 or os.pread(fd, 1, size - 1) == b"\n":
        return
    start = _last_line_start(fd, size)
    tail = os.pread(fd, size - start, start)
    try:
        json.loads(tail)
    except (ValueError, RecursionError):
        os.ftruncate(fd, start)
    else:
        os.write(fd, b"\n")  # whole but for its end, as some editors leave it


def _last_line_start(fd: int, size: int) -> int:
    step = 1 << 16
    end = size
    while end > 0:
        begin = max(0, end - step)
        found = os.pread(fd, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _append_all(path: Path, fd: int, data: bytes) -> None:
    """One write; if the disk takes only a part of it, that part is taken back."""
    size = os.fstat(fd).st_size
    try:
        written = os.write(fd, data)
        # A disk that fills up takes what fits without an error; the next write gets it.
        while written < len(data):
            written += os.write(fd, data[written:])
    except OSError as error:
        _take_back(fd, size)
        raise file_error(path, error) from error


def _take_back(fd: int, size: int) -> None:
    if os.fstat(fd).st_size > size:
        os.ftruncate(fd, size)


def file_error(path: str | os.PathLike[str], error: OSError) -> TilewrightError:
    """The error to raise when the system refuses to read or write a file."""
    return TilewrightError(f"the record file {os.fspath(path)} cannot be used: {error.strerror}")
