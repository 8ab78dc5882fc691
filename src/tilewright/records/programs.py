"""The programs that records hold of a task: which is the fastest that can be used.

A record may be well written and of no use: its steps do not apply to the task, or its program does not compile. It is
then set aside with a warning that names the line, and the next takes its place.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence

from tilewright.errors import TilewrightError
from tilewright.records.query import Key, by_speed
from tilewright.records.record import WARM, Record
from tilewright.records.renaming import in_names, is_translatable, names_of
from tilewright.target import Target
from tilewright.te import Task

# Of more records than this each costs time, and says no more than the others.
_MOST_TRIED = 20
_MOST_WARNINGS = 5
_MOST_CHARACTERS = 300


class RecordedPrograms:
    """The programs of one task. `best` is the fastest record that can be used, as far as is known; None if none can.

    Programs that ran in `context` come before those of others. The trace is in the names of the task. `num_known` tells
    how many programs ran, whether they can be used or not.
    """

    def __init__(self, task: Task, records: Iterable[Record], context: str = WARM) -> None:
        names = names_of(task)
        known = by_speed((record for record in records if is_translatable(names, record)), context)
        self.num_known = len(known)
        self._task = task
        self._known = known
        self._waiting = iter(known[:_MOST_TRIED])
        self.best: Record | None = None
        self._take_next()

    def set_aside(self, error: TilewrightError) -> None:
        """Warn of the best record, whose program has this error, and go on to the next."""
        if self.best is not None:
            warn_of_unusable([(self.best, error)])
            self._take_next()

    def close(self, num: int, within: float) -> list[Record]:
        """Up to `num` programs that can be used, `best` first, none slower than `within` times it in its context."""
        if self.best is None:
            return []
        found = [self.best]
        limit_s = within * self.best.rank_s
        for record in self._known[:_MOST_TRIED]:
            if len(found) >= num:
                break
            is_near = record.context == self.best.context and self.best.rank_s <= record.rank_s <= limit_s
            if is_near and (other := self._usable(record)) is not None and other.trace != self.best.trace:
                found.append(other)
        return found

    def _usable(self, record: Record) -> Record | None:
        try:
            return applicable(self._task, record)
        except TilewrightError:
            return None

    def _take_next(self) -> None:
        self.best = None
        unusable: list[tuple[Record, TilewrightError]] = []
        for record in self._waiting:
            try:
                self.best = applicable(self._task, record)
                break
            except TilewrightError as error:
                unusable.append((record, error))
        warn_of_unusable(unusable)


def find_programs(
    task: Task, groups: Mapping[Key, Sequence[Record]], target: Target, threads: int, context: str = WARM
) -> RecordedPrograms:
    """The programs that records, grouped by task, hold of a task for a target and number of threads."""
    wanted = (task.hash, str(target), threads)
    of_any_context = [record for key, group in groups.items() if key[:3] == wanted for record in group]
    return RecordedPrograms(task, of_any_context, context)


def fastest_of(task: Task, records: Iterable[Record]) -> Record | None:
    """The fastest of the records of tasks with this task's hash, with its trace in this task's names."""
    return RecordedPrograms(task, records).best


def in_names_of(task: Task, records: Iterable[Record]) -> list[Record]:
    """Records of tasks with this task's hash, with their traces in its names; what cannot be translated is left out."""
    names = names_of(task)
    found: list[Record] = []
    unusable: list[tuple[Record, TilewrightError]] = []
    for record in records:
        if is_translatable(names, record):
            try:
                found.append(in_names(names, task, record))
            except TilewrightError as error:
                unusable.append((record, error))
    warn_of_unusable(unusable)
    return found


def applicable(task: Task, record: Record) -> Record:
    """The record in the task's names; ScheduleError or RecordFormatError if its steps do not apply to the task."""
    translated = in_names(names_of(task), task, record)
    translated.trace.apply(task)
    return translated


def warn_of_unusable(records: Sequence[tuple[Record, TilewrightError]]) -> None:
    """Say which records are set aside, and why; of many only the first."""
    for record, error in records[:_MOST_WARNINGS]:
        place = record.source or f"a record of task {record.task}"
        reason = (str(error).splitlines() or [""])[0][:_MOST_CHARACTERS]
        _warn(f"{place}: the record is set aside, since its program cannot be used: {reason}")
    if len(records) > _MOST_WARNINGS:
        _warn(f"{len(records) - _MOST_WARNINGS} more records are set aside, since their programs cannot be used")


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=4)
