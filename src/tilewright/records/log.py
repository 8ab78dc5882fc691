"""The record file: a header line, then one line of JSON for each trial, and one for each task before its first trial.

It only ever grows. Several tuners may append to one file: a writer holds a lock for the time of one write. Readers take
none, and so see at worst the beginning of a last line, which they leave out. What a writer that died, or a full disk,
left of a line is removed by the next writer.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tilewright.arguments import replaceable_file
from tilewright.records.lines import FORMAT_KEY, FORMAT_VERSION
from tilewright.records.reading import (
    BEGINNING,
    MAX_HEADER_BYTES,
    TASK_BEGINNING,
    check_beginning,
    file_error,
    lines_of,
    read_contents,
    read_records,
)
from tilewright.records.record import Record
from tilewright.records.task_line import TaskLine
from tilewright.te import Task
from tilewright.version import __version__

_HEADER = BEGINNING + f"{FORMAT_VERSION},".encode()


class RecordLog:
    """A record file, which need not exist before something is appended."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._seen: _Seen | None = None

    def append(self, record: Record, task: Task | None = None) -> None:
        """Add one record; once this returns, the end of this process cannot lose it."""
        self.extend([record], task)

    def extend(self, records: Iterable[Record], task: Task | None = None) -> None:
        """Add records in one write: all of them or, if it fails, none.

        The `task` that they are of is written before them, unless the file has it already.
        """
        added = list(records)
        if not added:
            return
        with self._locked(os.O_CREAT) as fd:
            _repair_end(fd)
            seen = self._look_through(fd, task)
            new = {} if task is None or task.hash in seen.tasks else {task.hash: TaskLine.of(task)}
            header = "" if seen.has_header else _header_line()
            _append_all(self.path, fd, (header + _text_of(added, new)).encode())
            self._seen = _Seen(seen.file, True, seen.tasks.union(new))

    def read(self) -> list[Record]:
        """All records in the order in which they were written; none if the file does not exist yet, but could."""
        try:
            os.stat(self.path)
        except FileNotFoundError:
            if os.path.isdir(self.path.parent):
                return []
        except OSError as error:
            raise file_error(self.path, error) from error
        return list(read_records(self.path))

    def rewrite(
        self,
        change: Callable[[list[Record]], Sequence[Record]],
        create: bool = False,
        tasks: Mapping[str, TaskLine] = MappingProxyType({}),
    ) -> None:
        """Put `change(records)` in the place of the records, at once and without losing those of other writers.

        The tasks of the file, and of `tasks`, are kept as far as records of them are.
        """
        with self._locked(os.O_CREAT if create else 0) as fd:
            present = read_contents(self.path)
            text = _text_of(change(present.records), {**tasks, **present.tasks})
            _replace(self.path, _header_line() + text, mode=os.fstat(fd).st_mode & 0o777)

    def _look_through(self, fd: int, task: Task | None) -> _Seen:
        """What the file has; looked at anew where the file is another one, or others may have written the task."""
        status = os.fstat(fd)
        file, seen = (status.st_dev, status.st_ino), self._seen
        if not status.st_size:
            return _Seen(file, False, frozenset())
        if seen is None or seen.file != file or (task is not None and task.hash not in seen.tasks):
            return _Seen.of(file, self.path)
        return seen

    @contextmanager
    def _locked(self, flags: int) -> Iterator[int]:
        """The open file, locked against other writers."""
        while True:
            fd = self._open(flags)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if self._is_at_path(fd):
                    check_beginning(self.path, os.pread(fd, min(MAX_HEADER_BYTES, os.fstat(fd).st_size), 0))
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


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a writer knows of a file."""

    file: tuple[int, int]  # its device and its number there
    has_header: bool  # of today's version
    tasks: frozenset[str]

    @staticmethod
    def of(file: tuple[int, int], path: Path) -> _Seen:
        """Looked through with the lock, so that nobody is in the middle of a line."""
        own = [line for _, line in lines_of(path) if line.startswith((_HEADER, TASK_BEGINNING))]
        has_header = any(line.startswith(_HEADER) for line in own)
        tasks = (TaskLine.as_written(line.decode(errors="replace"), "") for line in own)
        return _Seen(file, has_header, frozenset(task.hash for task in tasks if task is not None))


def _replace(path: Path, text: str, mode: int) -> None:
    """Put a file with this text in the place of the one that is there, once it is whole."""
    replaced = replaceable_file("the record file", path)
    fd, temporary = -1, ""
    try:
        fd, temporary = tempfile.mkstemp(dir=replaced.parent, prefix=".")
        os.fchmod(fd, mode)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, replaced)
    except OSError as error:
        raise file_error(path, error) from error
    finally:
        with suppress(OSError):  # it has its name by now, unless somebody interrupted
            os.unlink(temporary)


def _header_line() -> str:
    header = {FORMAT_KEY: FORMAT_VERSION, "tool_version": __version__, "created": time.time()}
    return json.dumps(header) + "\n"


def _text_of(records: Iterable[Record], tasks: Mapping[str, TaskLine]) -> str:
    """The lines of the records, and of each task before the first of its records."""
    waiting = dict(tasks)
    lines: list[str] = []
    for record in records:
        task = waiting.pop(record.task, None)
        if task is not None:
            lines.append(task.text)
        lines.append(record.to_line())
    return "".join(f"{line}\n" for line in lines)


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
