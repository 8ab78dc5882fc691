"""What a dataset holds, in numbers: `tilewright dataset info`."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import RecordFormatError
from tilewright.measure import STATUSES
from tilewright.records.dataset.device import Device
from tilewright.records.dataset.folder import DatasetFolder, Part

QUANTILES = (0.1, 0.5, 0.9)
_ERROR = "error {}"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """How far second measurements are from the first, as a share of it."""

    num_programs: int
    median: float
    quantile_90: float


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """What a dataset has of one device.

    `labels` are quantiles of best / latency, which is 1 for the best program of a task, over the programs that ran, and
    the mean of those over tasks.
    """

    name: str
    target: str
    threads: int
    processor: str
    tool: str
    num_tasks: int
    num_programs: int
    statuses: dict[str, int]
    origins: dict[str, int]
    """How the programs were chosen."""
    contexts: dict[str, int]
    """How many tasks were measured in which."""
    best_latencies_s: tuple[float, float] | None
    """That of the quickest and of the slowest task."""
    labels: tuple[float, ...] | None
    noise: Noise | None

    @property
    def num_failed(self) -> int:
        return sum(count for status, count in self.statuses.items() if status != "OK")


@dataclass(frozen=True, slots=True)
class NetworkSummary:
    """What a dataset has of a network, or of a workload."""

    name: str
    sizes: str
    is_workload: bool
    context: str
    num_tasks: int
    num_kernels: int
    measured: dict[str, int]
    """How many of its tasks have programs of which device."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a dataset holds."""

    path: str
    num_tasks: int
    num_programs: int
    num_bytes: int
    devices: tuple[DeviceSummary, ...]
    networks: tuple[NetworkSummary, ...]
    broken: tuple[str, ...]
    """Parts that cannot be read, and why."""


def summarize(path: str | os.PathLike[str]) -> Summary:
    """Look through a dataset; what is broken is listed."""
    folder = DatasetFolder(path)
    broken: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        devices, networks = folder.devices(), folder.networks()
    broken += [str(warning.message) for warning in caught]
    tallies = [_tallied(folder, device, broken) for device in devices]
    found = [tally.summary() for tally in tallies]
    tasks_of = {device.name: tally.tasks for device, tally in zip(devices, tallies, strict=True)}
    return Summary(
        path=os.fspath(path),
        num_tasks=len(set().union(*tasks_of.values())),
        num_programs=sum(device.num_programs for device in found),
        num_bytes=_size(folder),
        devices=tuple(found),
        networks=tuple(
            NetworkSummary(
                network.name,
                network.sizes,
                network.is_workload,
                network.context,
                len(network.weights),
                sum(network.weights.values()),
                {name: len(tasks & network.weights.keys()) for name, tasks in tasks_of.items()},
            )
            for network in networks
        ),
        broken=tuple(broken),
    )


@dataclass(slots=True)
class _Tally:
    """What was counted of a device, task by task."""

    device: Device
    tasks: set[str] = field(default_factory=set)
    statuses: Counter[str] = field(default_factory=Counter)
    origins: Counter[str] = field(default_factory=Counter)
    contexts: Counter[str] = field(default_factory=Counter)
    best_s: list[float] = field(default_factory=list)
    labels: list[Floats] = field(default_factory=list)
    differences: list[Floats] = field(default_factory=list)

    def add(self, folder: DatasetFolder, part: Part) -> None:
        """Count the programs of a part."""
        times = self._logged(folder, part) if self.device.tool else self._measured(folder, part)
        self.tasks.add(part.task)
        self.contexts[part.context] += 1
        if len(times):
            self.best_s.append(float(times.min()))
            self.labels.append(np.quantile(times.min() / times, QUANTILES))

    def _measured(self, folder: DatasetFolder, part: Part) -> Floats:
        """The latencies of those that ran."""
        programs = folder.programs(self.device, part)
        self.statuses.update(STATUSES[status] for status in programs.status.tolist())
        self.origins.update(programs.origins[origin] for origin in programs.origin.tolist())
        is_twice = np.isfinite(programs.again_s) & programs.is_valid
        self.differences.append(np.abs(programs.again_s[is_twice] / programs.latencies_s[is_twice] - 1))
        return programs.latencies_s[programs.is_valid]

    def _logged(self, folder: DatasetFolder, part: Part) -> Floats:
        programs = folder.logged(self.device, part.task)
        for form in programs.forms:
            is_valid = np.isfinite(form.latencies_s)
            self.statuses["OK"] += int(is_valid.sum())
            self.statuses.update(_ERROR.format(error) for error in form.errors[~is_valid].tolist())
        times = programs.latencies_s
        return times[np.isfinite(times)]

    def summary(self) -> DeviceSummary:
        device = self.device
        labels = tuple(float(label) for label in np.mean(self.labels, axis=0)) if self.labels else None
        return DeviceSummary(
            name=device.name,
            target=device.target,
            threads=device.threads,
            processor=device.processor,
            tool=device.tool,
            num_tasks=len(self.tasks),
            num_programs=self.statuses.total(),
            statuses=dict(self.statuses),
            origins=dict(self.origins),
            contexts=dict(self.contexts),
            best_latencies_s=(min(self.best_s), max(self.best_s)) if self.best_s else None,
            labels=labels,
            noise=_noise(self.differences),
        )


def _tallied(folder: DatasetFolder, device: Device, broken: list[str]) -> _Tally:
    tally = _Tally(device)
    for part in folder.parts(device):
        try:
            tally.add(folder, part)
        except RecordFormatError as error:
            broken.append(str(error))
    return tally


def _noise(differences: Iterable[Floats]) -> Noise | None:
    found = np.concatenate([np.zeros(0), *differences])
    if not len(found):
        return None
    return Noise(len(found), float(np.median(found)), float(np.quantile(found, 0.9)))


def _size(folder: DatasetFolder) -> int:
    """Of all its files, but those that whoever collects has put in their places while this looked."""
    num_bytes = 0
    for file in folder.path.rglob("*"):
        with suppress(FileNotFoundError):
            num_bytes += file.stat().st_size if file.is_file() else 0
    return num_bytes
