"""`DatasetFolder`: the folder of a dataset, whose parts can be read, added and lost one by one.

FOLDER/dataset.json                                what it is
FOLDER/tasks/<hash>.json                           each task once
FOLDER/networks/<name>.json                        each network: its tasks and their weights
FOLDER/devices/<name>/device.json                  each device once
FOLDER/devices/<name>/<hash>.<context>.npz         programs of a task on it: sketches, rows of choices, latencies
FOLDER/devices/<name>/<hash>.log.npz               the same of logs of another tool: forms, rows of numbers, latencies
"""

from __future__ import annotations

import fcntl
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from tilewright.errors import ExpressionError, RecordFormatError, UsageError
from tilewright.measure import Context
from tilewright.records.dataset.device import FILE_NAME, Device, checked_name
from tilewright.records.dataset.files import broken, folder_error, read_json, write_json
from tilewright.records.dataset.logged import CONTEXT as LOG_CONTEXT
from tilewright.records.dataset.logged import LoggedPrograms
from tilewright.records.dataset.networks import NetworkTasks
from tilewright.records.dataset.programs import TaskPrograms
from tilewright.space import SpaceOptions
from tilewright.target import Target
from tilewright.te import Task

_FILE = "dataset.json"
_FOLDERS = frozenset(("tasks", "networks", "devices"))
_DATASET, _TASK, _WORKLOAD = "dataset", "task", "workload"
_PART = re.compile(r"([0-9a-f]{8,64})\.([A-Za-z0-9.-]{1,64})\.npz")

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class Part:
    """Where the programs of a task on a device are."""

    task: str
    context: str
    path: Path


class DatasetFolder:
    """A dataset that exists; `create` makes one of a folder that is empty or not there.

    What is broken or missing costs itself alone: it is left out with a warning, unless it is asked for by name.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = _named(path)
        if not os.path.isdir(self.path):
            raise UsageError(f"a dataset is a folder, and {self.path} is none; check the path, or collect one")
        if not os.path.isfile(self.path / _FILE):
            raise UsageError(
                f"{self.path} is no dataset, since it has no {_FILE}; give the folder that "
                "`tilewright dataset collect -o` or `import -o` has made"
            )
        read_json(self.path / _FILE, _DATASET)
        self._tasks: dict[str, Task] = {}

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> DatasetFolder:
        """The dataset at the path, which is made if there is none."""
        folder = _named(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / _FILE).exists():
                if not _is_ours(folder):
                    raise UsageError(f"{folder} is a folder with something else in it; name a dataset, or a new folder")
                write_json(folder / _FILE, _DATASET, {})
        except OSError as error:
            raise folder_error(folder, error) from error
        return cls(folder)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Inside, nobody else writes to the dataset. Readers need no such thing."""
        # The folder is locked, and not its file: two who make a dataset at once both write that.
        fd = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"another process is writing to the dataset {self.path}; wait for its end, or name another folder"
                ) from None
            yield
        finally:
            os.close(fd)

    # --- tasks and networks -------------------------------------------------------------------------------------------

    def task(self, digest: str) -> Task:
        """The task of a hash, under the names that it was first written with."""
        if digest not in self._tasks:
            path = self._task_path(digest)
            try:
                task = Task.from_json(read_json(path, _TASK).get("definition"))
            except ExpressionError as error:
                raise broken(path, f"the task cannot be read: {error}") from error
            if task.hash != digest:
                raise broken(path, f"the file is called after the task {digest}, and holds {task.hash}")
            self._tasks[digest] = task
        return self._tasks[digest]

    def add_task(self, task: Task) -> Task:
        """The task as it is written here: under its first names, whatever those of `task` are."""
        if not self._task_path(task.hash).exists():
            write_json(self._task_path(task.hash), _TASK, {"hash": task.hash, "definition": task.to_json()})
            self._tasks[task.hash] = task
        return self.task(task.hash)

    def add_workload(self, digest: str, tool: str, workload: Any) -> None:
        """Write what another tool calls a task."""
        if not self._task_path(digest).exists():
            write_json(self._task_path(digest), _WORKLOAD, {"hash": digest, "tool": tool, "workload": workload})

    def workload(self, digest: str) -> Any:
        """What another tool calls a task: a list of JSON, of which the first is mostly a name."""
        return read_json(self._task_path(digest), _WORKLOAD).get("workload")

    def networks(self) -> list[NetworkTasks]:
        """The networks, by their names."""
        return list(_readable(NetworkTasks.read, sorted((self.path / "networks").glob("*.json"))))

    def add_network(self, network: NetworkTasks) -> None:
        """Write what a network consists of, in the place of another of this name and these sizes."""
        path = network.path(self.path / "networks")
        known = _network(path)
        if known is not None and known.title != network.title:
            path = network.second_path(self.path / "networks")
            known = _network(path)
        if known is not None and known.weights != network.weights:
            warnings.warn(f"{path}: the network {known.title} had other tasks, and is replaced", stacklevel=2)
        network.write(path)

    def _task_path(self, digest: str) -> Path:
        return self.path / "tasks" / f"{digest}.json"

    # --- devices and their programs -----------------------------------------------------------------------------------

    def devices(self) -> list[Device]:
        """The devices, by their names."""
        return list(_readable(Device.read, sorted(p for p in (self.path / "devices").glob("*") if p.is_dir())))

    def add_device(self, device: Device, is_named: bool = False) -> Device:
        """The device as it is written here, under its name; a new one gets a name that is free.

        What was measured on the same device before is added to, whatever it was called. A new one that `is_named` has
        that name or none.
        """
        known = next((known for known in self.devices() if known.is_same(device)), None)
        if known is not None:
            return known
        base, number = checked_name(device.name), 1
        while (self._device_folder(device) / FILE_NAME).exists():
            Device.read(self._device_folder(device))  # a broken one may be this very device
            if is_named:
                raise UsageError(
                    f"the device is to be called {base}, and {self._device_folder(device)} is another one; give it "
                    "another name"
                )
            number += 1
            device = replace(device, name=f"{base}-{number}")
        device.write(self._device_folder(device))
        return device

    def add_log_device(self, device: Device) -> Device:
        """The device of a log, which is known by its name alone: logs of two may have the same target."""
        path = self._device_folder(replace(device, name=checked_name(device.name)))
        if not (path / FILE_NAME).exists():
            device.write(path)
        known = Device.read(path)
        if known.tool != device.tool:
            what = f"programs of logs of {known.tool}" if known.tool else "programs that were measured"
            raise UsageError(
                f"{path} has {what}, and a log of {device.tool} is to be imported; give the device another name"
            )
        return known

    def parts(self, device: Device) -> list[Part]:
        """The programs that the dataset has of a device."""
        paths = sorted(self._device_folder(device).glob("*.npz"))
        found = [Part(name[1], name[2], path) for path in paths if (name := _PART.fullmatch(path.name))]
        return [part for part in found if _is_context(part.context, device)]

    def programs(self, device: Device, part: Part) -> TaskPrograms:
        """The programs of a part."""
        options = SpaceOptions(Target.parse(device.target), device.threads)
        return TaskPrograms.read(part.path, self.task(part.task), options)

    def part(self, device: Device, task: Task, context: str) -> Part:
        """Where the programs of a task in a context are, or would be."""
        return self._part(device, task.hash, context)

    def logged(self, device: Device, workload: str) -> LoggedPrograms:
        """The programs that logs have of a workload, which is known by its hash; none if there is no file."""
        path = self.log_part(device, workload).path
        return LoggedPrograms.read(path, workload) if path.exists() else LoggedPrograms()

    def log_part(self, device: Device, workload: str) -> Part:
        """Where the programs of a workload on the device of a log are, or would be."""
        return self._part(device, workload, LOG_CONTEXT)

    def _part(self, device: Device, digest: str, context: str) -> Part:
        return Part(digest, context, self._device_folder(device) / f"{digest}.{context}.npz")

    def _device_folder(self, device: Device) -> Path:
        return self.path / "devices" / device.name


def _named(path: str | os.PathLike[str]) -> Path:
    """The path, which names something: an empty one would be the folder at hand."""
    if not os.fspath(path):
        raise UsageError("the path of a dataset is empty; name a folder")
    return Path(path)


def _is_ours(folder: Path) -> bool:
    """Whether a folder without the file is empty, or has the parts of a dataset that has lost it, and nothing else."""
    # A process that was killed here may have left the beginning of the file; another may have written it just now.
    names = {name for name in os.listdir(folder) if not name.startswith(f".{_FILE}.")}
    return not names or _FILE in names or (names <= _FOLDERS and any((folder / "devices").glob(f"*/{FILE_NAME}")))


def _is_context(text: str, device: Device) -> bool:
    """Whether a file is called after a context; a copy that somebody has called otherwise would count twice."""
    if device.tool:
        return text == LOG_CONTEXT
    try:
        Context.parse(text)
    except UsageError:
        return False
    return True


def _network(path: Path) -> NetworkTasks | None:
    """The network of a file; None where there is none, or none that can be read."""
    return next(_readable(NetworkTasks.read, [path] if path.exists() else []), None)


def _readable(read: Callable[[Path], _Part], paths: Iterable[Path]) -> Iterator[_Part]:
    """What can be read; there is a warning of the rest."""
    for path in paths:
        try:
            yield read(path)
        except RecordFormatError as error:
            set_aside(error)


def set_aside(error: RecordFormatError) -> None:
    """Warn of a part of a dataset that cannot be read."""
    warnings.warn(f"a part of the dataset is left out: {error}", stacklevel=3)
