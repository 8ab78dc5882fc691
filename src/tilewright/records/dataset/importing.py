"""Logs of other tools into a dataset."""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from reprlib import repr as shown

import numpy as np

from tilewright.arguments import several
from tilewright.errors import RecordFormatError
from tilewright.records.ansor import parse_ansor_line
from tilewright.records.autotvm import is_autotvm, parse_autotvm_line
from tilewright.records.dataset.device import Device
from tilewright.records.dataset.folder import DatasetFolder
from tilewright.records.dataset.logged import LEAST_S, MAX_PRIMITIVES, MOST_S, Form, LoggedForm
from tilewright.records.foreign_log import BROKEN_LINE, LoggedProgram, line_error, log_lines, parsed

ANSOR, AUTOTVM = "ansor", "autotvm"
_MAX_BUFFERED = 1 << 25  # numbers, of 8 bytes; then they are written
_MOST_NAMED = 10


@dataclass(slots=True)
class Imported:
    """What came of logs, so far."""

    device: Device | None = None
    num_records: int = 0
    num_failed: int = 0
    num_broken: int = 0
    """Lines that are no record."""
    broken: list[str] = field(default_factory=list)
    """The first of them: where, and why."""
    num_added: int = 0
    """Programs that the dataset did not have."""
    workloads: set[str] = field(default_factory=set)

    def add_broken(self, error: RecordFormatError) -> None:
        self.num_broken += 1
        if len(self.broken) < _MOST_NAMED:
            self.broken.append(str(error))


def import_logs(
    paths: Sequence[str | os.PathLike[str]],
    folder: DatasetFolder,
    device: str,
    on_progress: Callable[[Imported, str], None] = lambda *_: None,
) -> Imported:
    """Add the programs of logs to a dataset; a log that was imported before adds nothing.

    Lines that are no records are counted, and the first few named. `on_progress` is told of each file at its end, and
    whenever something was written.
    """
    with folder.writing():
        importer = _Importer(folder, device)
        for path in several("paths", paths):
            report = partial(on_progress, importer.found, os.fspath(path))
            try:
                importer.read(path, report)
            finally:
                importer.flush()
            report()
        return importer.found


class _Importer:
    """Programs that were read and are not written yet, by workload and form."""

    def __init__(self, folder: DatasetFolder, device: str) -> None:
        self.found = Imported()
        self._folder = folder
        self._name = device
        self._waiting: dict[str, dict[Form, _Rows]] = {}
        self._num_waiting = 0
        self._hashes: dict[str, str] = {}

    def read(self, path: str | os.PathLike[str], on_progress: Callable[[], None]) -> None:
        for number, line in self._lines(path):
            try:
                tool, program = _parse(line)
                self._check_tool(tool)
                digest = self._hash(tool, program.workload)
            except BROKEN_LINE as error:
                self.found.add_broken(line_error(path, number, "Ansor or AutoTVM", error))
                continue
            except RecordFormatError as error:
                self.found.add_broken(RecordFormatError(f"{os.fspath(path)}:{number}: {error}"))
                continue
            self._add(tool, program, digest)
            if self._num_waiting > _MAX_BUFFERED:
                self.flush()
                on_progress()

    def _lines(self, path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
        """Those of the log, with their numbers. That it ends early counts as one that is broken."""
        try:
            yield from log_lines(path)
        except RecordFormatError as error:
            self.found.add_broken(error)

    def _check_tool(self, tool: str) -> None:
        device = self.found.device
        if device is not None and device.tool != tool:
            raise RecordFormatError(
                f"a record of {tool} among those of {device.tool}, and a device has programs of one tool; put the "
                "records of each into a file, and give another --device for one of them"
            )

    def _add(self, tool: str, program: LoggedProgram, digest: str) -> None:
        if self.found.device is None:
            self.found.device = self._folder.add_log_device(Device(self._name, program.target, 0, "", tool))
        rows = self._waiting.setdefault(digest, {}).setdefault(program.form, _Rows())
        rows.add(program)
        self._num_waiting += len(program.numbers) + 2
        self.found.num_records += 1
        self.found.num_failed += program.latency_s is None

    def _hash(self, tool: str, workload: str) -> str:
        """That of the workload, which is written where it is new."""
        digest = self._hashes.get(workload)
        if digest is None:
            digest = hashlib.sha256(f"{tool} {workload}".encode()).hexdigest()[:32]
            self._folder.add_workload(digest, tool, json.loads(workload))
            self._hashes[workload] = digest
            self.found.workloads.add(digest)
        return digest

    def flush(self) -> None:
        """Write what waits."""
        device = self.found.device
        for digest, forms in self._waiting.items():
            assert device is not None, "programs have one"
            before = self._folder.logged(device, digest)
            after = before.joined([found for form, rows in forms.items() if len(found := rows.as_form(form))])
            if len(after) > len(before):
                after.write(self._folder.log_part(device, digest).path, digest)
            self.found.num_added += len(after) - len(before)
        self._waiting.clear()
        self._num_waiting = 0


class _Rows:
    """Programs of one form, packed."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._times = array("d")
        self._errors = array("q")

    def add(self, program: LoggedProgram) -> None:
        self._numbers.extend(program.numbers)
        self._times.append(float("nan") if program.latency_s is None else program.latency_s)
        self._errors.append(program.error_number)

    def as_form(self, form: Form) -> LoggedForm:
        """All of them; without the last one where an interrupt came before all of it was here."""
        num, width = len(self._errors), sum(count for _, _, count in form)
        numbers = np.array(self._numbers[: num * width], np.int64).reshape(num, width)
        return LoggedForm(form, numbers, np.array(self._times[:num]), np.array(self._errors, np.int64))


def _parse(line: bytes) -> tuple[str, LoggedProgram]:
    """The tool that wrote a line, and its program; one of BROKEN_LINE where neither did."""
    data = parsed(line)
    if is_autotvm(data):
        tool, program = AUTOTVM, parse_autotvm_line(data)
    else:
        tool, program = ANSOR, parse_ansor_line(data).program
    if program.latency_s is not None and not LEAST_S <= program.latency_s <= MOST_S:
        raise ValueError(f"a program takes from {LEAST_S:g} to {MOST_S:g} s, got {program.latency_s}")
    if max(len(program.form), *(count for _, _, count in program.form), 0) > MAX_PRIMITIVES:
        raise OverflowError(f"a program has at most {MAX_PRIMITIVES} primitives, and each as many numbers")
    if not -(2**63) <= min(program.numbers, default=0) <= max(program.numbers, default=0) < 2**63:
        raise OverflowError(f"numbers have 64 bits, got {shown(max(program.numbers, key=abs))}")
    if not 0 <= program.error_number < 2**15:
        raise ValueError(f"an error has a small number, got {program.error_number}")
    return tool, program
