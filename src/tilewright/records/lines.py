"""One line of a record file as a record or a task.

Most of a line is its trace, and the steps of traces are the same few thousand: each is parsed once, and found by its
text from then on. A file is read four times as fast, and equal steps are one object.
"""

from __future__ import annotations

import json
from reprlib import repr as shown

from tilewright.errors import RecordFormatError, ScheduleError
from tilewright.records.json_line import NotJsonError, json_object
from tilewright.records.record import Record
from tilewright.records.task_line import TASK_KEY, TaskLine
from tilewright.schedule import Step, Trace
from tilewright.schedule.steps import step_from_json
from tilewright.schedule.trace import MAX_STEPS
from tilewright.version import __version__

FORMAT_VERSION = 2
_READ_VERSIONS = (1, FORMAT_VERSION)  # the first had neither tasks nor contexts
FORMAT_KEY = "tilewright_records"

# As `Record.to_line` writes them: what begins a trace, what comes between its steps, and what ends it.
_BEGIN, _BETWEEN, _END = '"trace":[{', "},{", '}],"status":"'


class LineReader:
    """Reads the lines of a file."""

    def __init__(self) -> None:
        self._steps: dict[str, Step] = {}

    def read(self, line: bytes, source: str) -> Record | TaskLine | None:
        """The record or the task in a line, or None for a header; files joined with `cat` have several."""
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise NotJsonError(f"the line is not JSON ({error}); remove the line, or restore the file") from error
        task = TaskLine.as_written(text, source)
        if task is not None:
            return task
        rest, trace = self._cut_out_trace(text)
        data = json_object(rest)
        if trace is not None and data.get("trace") != []:  # it was not the record's
            data, trace = json_object(text), None
        if FORMAT_KEY in data:
            _check_version(data[FORMAT_KEY])
            return None
        if TASK_KEY in data:
            return TaskLine.from_json(data, text, source)
        try:
            return Record.from_json(data, source, trace)
        except RecordFormatError as error:
            raise RecordFormatError(f"{error}; correct or remove the line") from error

    def _cut_out_trace(self, text: str) -> tuple[str, Trace | None]:
        """The text with an empty list in place of the trace, and the trace; as it is where that is not so simple.

        The texts between the braces of a list are looked up alone: where each is a step, the list is one of steps. No
        string can hold what begins or ends a trace, since its quotation marks would be written otherwise.
        """
        begin = text.find(_BEGIN)
        end = text.find(_END, begin)
        if begin < 0 or end < 0:
            return text, None
        pieces = text[begin + len(_BEGIN) : end].split(_BETWEEN)
        steps = tuple(map(self._step, pieces))
        if len(steps) > MAX_STEPS or None in steps:
            return text, None
        return f"{text[: begin + len(_BEGIN) - 1]}{text[end + 1 :]}", Trace(steps)  # type: ignore[arg-type]

    def _step(self, text: str) -> Step | None:
        step = self._steps.get(text)
        if step is None:
            try:
                step = self._steps[text] = step_from_json(json.loads(f"{{{text}}}"))
            except (ValueError, RecursionError, ScheduleError):
                return None
        return step


def _check_version(version: object) -> None:
    if version not in _READ_VERSIONS:
        raise RecordFormatError(
            f"the format is version {shown(version)}, and this tilewright ({__version__}) reads versions up to "
            f"{FORMAT_VERSION}; use the tilewright that wrote the file, or a newer one"
        )
