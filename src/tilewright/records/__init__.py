"""What was measured, kept: the append-only record file, questions to it, and logs of other tools."""

from tilewright.records.ansor import AnsorRecord, read_ansor_log
from tilewright.records.log import RecordLog
from tilewright.records.programs import (
    RecordedPrograms,
    applicable,
    fastest_of,
    find_programs,
    in_names_of,
    warn_of_unusable,
)
from tilewright.records.query import (
    EXPORT_FORMATS,
    Key,
    best,
    by_speed,
    count_statuses,
    export,
    fastest,
    for_target,
    group_by_task,
    latest,
    merge,
    prune,
)
from tilewright.records.reading import Contents, read_contents, read_records, read_tasks
from tilewright.records.record import WARM, Names, Record
from tilewright.records.renaming import names_of
from tilewright.records.task_line import TaskLine

__all__ = [
    "EXPORT_FORMATS",
    "WARM",
    "AnsorRecord",
    "Contents",
    "Key",
    "Names",
    "Record",
    "RecordLog",
    "RecordedPrograms",
    "TaskLine",
    "applicable",
    "best",
    "by_speed",
    "count_statuses",
    "export",
    "fastest",
    "fastest_of",
    "find_programs",
    "for_target",
    "group_by_task",
    "in_names_of",
    "latest",
    "merge",
    "names_of",
    "prune",
    "read_ansor_log",
    "read_contents",
    "read_records",
    "read_tasks",
    "warn_of_unusable",
]
