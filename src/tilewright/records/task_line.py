"""The line of a record file that holds a task. It is carried as text, and parsed only where the task is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from reprlib import repr as shown
from typing import Any

from tilewright.errors import ExpressionError, RecordFormatError
from tilewright.records.json_line import MAX_LINE_BYTES, json_object
from tilewright.te import Task

TASK_KEY = "tilewright_task"
_DEFINITION = "definition"

# As `TaskLine.of` writes it: up to the definition, which is the rest.
_WRITTEN = re.compile(rf'{{"{TASK_KEY}":"([0-9a-f]+)","{_DEFINITION}":{{')
_END = "}}"


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task under its structural hash, which is how the records name it."""

    hash: str
    text: str
    """The line, without its end."""
    source: str = field(default="", compare=False)
    """The file and the line that it was read from."""

    @staticmethod
    def of(task: Task) -> TaskLine:
        data = {TASK_KEY: task.hash, _DEFINITION: task.to_json()}
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        if len(text) >= MAX_LINE_BYTES:
            raise RecordFormatError(
                f"task {shown(task.name)} is a line of {len(text)} bytes, and {MAX_LINE_BYTES} are read; cut it in two "
                "tasks, or give its tensors shorter names"
            )
        return TaskLine(task.hash, text)

    @staticmethod
    def as_written(line: str, source: str) -> TaskLine | None:
        """The task in a whole line, by a look at its beginning and its end; None if it looks otherwise."""
        found = _WRITTEN.match(line)
        if found is None or not line.endswith("\n"):
            return None
        text = line.rstrip("\r\n")
        return TaskLine(found[1], text, source) if text.endswith(_END) else None

    @staticmethod
    def from_json(data: Mapping[str, Any], text: str, source: str) -> TaskLine:
        """The task in a line that was parsed; the task itself is not looked at yet."""
        digest = data[TASK_KEY]
        if set(data) != {TASK_KEY, _DEFINITION} or not isinstance(digest, str):
            raise RecordFormatError(
                f"a task has a hash as {TASK_KEY} and a {_DEFINITION}, got {shown(data)}; correct or remove the line"
            )
        return TaskLine(digest, text.strip(), source)

    def task(self) -> Task:
        """The task; RecordFormatError names the line of what is none."""
        try:
            task = Task.from_json(json_object(self.text).get(_DEFINITION))
        except (RecordFormatError, ExpressionError) as error:
            raise RecordFormatError(f"{self.source}: the task cannot be read: {error}") from error
        if task.hash != self.hash:
            raise RecordFormatError(
                f"{self.source}: the task is called {shown(self.hash)}, and its hash is {task.hash}; remove the line"
            )
        return task
