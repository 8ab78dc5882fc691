"""What was measured, kept: the append-only record file, questions to it, and logs of other tools."""

from tilewright.records.ansor import AnsorRecord, read_ansor_log
from tilewright.records.log import RecordLog, read_records
from tilewright.records.query import (
    EXPORT_FORMATS,
    Key,
    best,
    count_statuses,
    export,
    fastest,
    group_by_task,
    latest,
    merge,
    prune,
)
from tilewright.records.record import Record

__all__ = [
    "EXPORT_FORMATS",
    "AnsorRecord",
    "Key",
    "Record",
    "RecordLog",
    "best",
    "count_statuses",
    "export",
    "fastest",
    "group_by_task",
    "latest",
    "merge",
    "prune",
    "read_ansor_log",
    "read_records",
]
