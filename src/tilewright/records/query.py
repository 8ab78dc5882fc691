"""Questions to records: the best of a task, how many failed in which way, and files joined, thinned out or exported."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from tilewright.errors import UsageError
from tilewright.measure import STATUSES
from tilewright.records.log import RecordLog
from tilewright.records.reading import read_contents
from tilewright.records.record import FIELDS, WARM, Record
from tilewright.schedule import Trace
from tilewright.target import Target, stands_for

EXPORT_FORMATS = ("csv", "json")


class Key(NamedTuple):
    """What records must share to be comparable."""

    task: str
    target: str
    threads: int
    context: str = WARM


def key_of(record: Record) -> Key:
    return Key(record.task, record.target, record.threads, record.context)


def group_by_task(records: Iterable[Record]) -> dict[Key, list[Record]]:
    """The records of each task on each target, number of threads and context, in their order."""
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault(key_of(record), []).append(record)
    return groups


def for_target(records: Iterable[Record], target: Target) -> list[Record]:
    """The records that were measured on a machine like the target, each under the target's own string."""
    text = str(target)
    found = (record for record in records if record.target == text or stands_for(record.target, target))
    return [record if record.target == text else replace(record, target=text) for record in found]


def latest(records: Iterable[Record]) -> list[Record]:
    """One record for each program: the last, which is the most careful one where finalists were measured again."""
    found: dict[tuple[Key, Trace], Record] = {}
    for record in records:
        found[key_of(record), record.trace] = record
    return list(found.values())


def by_speed(records: Iterable[Record], context: str = WARM) -> list[Record]:
    """One record for each program that ran in each context: those of `context` first, the fastest of each first.

    Latencies of different contexts are not compared. Where nothing ran in `context`, the programs of another serve: of
    several others that of the most programs comes first.
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.context, []).append(record)
    ran = {own: _by_speed(group) for own, group in groups.items()}
    order = sorted(ran, key=lambda own: (own != context, -len(ran[own])))
    return [record for own in order for record in ran[own]]


def _by_speed(every: Sequence[Record]) -> list[Record]:
    """Of one context: one record for each program that ran, the fastest first.

    Programs that were measured again are finalists: they were compared with each other, and the last of their records
    is the most careful one. Where there are any, they and those that were found after them come first. A file that was
    thinned out has that last record alone.
    """
    counts = Counter((key_of(record), record.trace) for record in every if record.latency_s is not None)
    ran = [record for record in latest(every) if record.latency_s is not None]
    finalists = [r for r in ran if r.compared_s is not None or counts[key_of(r), r.trace] > 1]
    position = {id(record): n for n, record in enumerate(every)}
    last = max((position[id(record)] for record in finalists), default=-1)
    first = {id(record) for record in (*finalists, *(r for r in ran if position[id(r)] > last))}
    return sorted(ran, key=lambda record: (id(record) not in first, record.rank_s))


def fastest(records: Iterable[Record]) -> Record | None:
    """The first of `by_speed`; None where nothing ran."""
    return next(iter(by_speed(records)), None)


def best(records: Iterable[Record], task: str, target: str, threads: int, context: str = WARM) -> Record | None:
    """The fastest record of a task (by its structural hash) on a target and number of threads, in a context."""
    key = Key(task, target, threads, context)
    return fastest(record for record in records if key_of(record) == key)


def count_statuses(records: Iterable[Record]) -> dict[str, int]:
    """How many records have which status; all statuses are there."""
    counts = Counter(record.status for record in records)
    return {status: counts[status] for status in STATUSES}


def merge(paths: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> int:
    """Add the records of all files to those of `out`, in order of time and each once; return how many it has then.

    Their tasks come with them, each once.
    """
    added = read_contents(*paths)
    merged: list[Record] = []

    def join(present: list[Record]) -> list[Record]:
        by_line = {record.to_line(): record for record in present + added.records}
        merged.extend(sorted(by_line.values(), key=lambda record: record.time))
        return merged

    RecordLog(out).rewrite(join, create=True, tasks=added.tasks)
    return len(merged)


def prune(path: str | os.PathLike[str], keep_best: int) -> tuple[int, int]:
    """Keep only the `keep_best` fastest records of each task; return how many there were and are.

    What is the best stays it. Other programs come before what else is known of the same. A task of which no record is
    left goes too.
    """
    if keep_best < 1:
        raise UsageError(f"the number of records to keep of each task is {keep_best}; it must be at least 1")
    numbers: list[int] = []

    def thin_out(records: list[Record]) -> list[Record]:
        kept: set[int] = set()
        for group in group_by_task(records).values():
            kept.update(list(map(id, _every_by_speed(group)))[:keep_best])
        thinned = [record for record in records if id(record) in kept]
        numbers.extend((len(records), len(thinned)))
        return thinned

    RecordLog(path).rewrite(thin_out)
    before, after = numbers
    return before, after


def _every_by_speed(records: Sequence[Record]) -> list[Record]:
    """All that ran: `by_speed`, and then what was measured of these programs before."""
    last = by_speed(records)
    known = set(map(id, last))
    before = (record for record in records if record.latency_s is not None and id(record) not in known)
    return [*last, *sorted(before, key=attrgetter("rank_s"))]


def export(records: Iterable[Record], format: str) -> str:
    """The records as text for other programs: "csv" with a header, or a "json" list."""
    if format == "json":
        return json.dumps([record.to_json() for record in records], indent=1)
    if format == "csv":
        return _csv(records)
    raise UsageError(f"records are exported as {' or '.join(EXPORT_FORMATS)}, got {format!r}")


def _csv(records: Iterable[Record]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    for record in records:
        row = {name: json.dumps(v) if isinstance(v, list) else v for name, v in record.to_json().items()}
        writer.writerow(row[name] for name in FIELDS)
    return out.getvalue()
