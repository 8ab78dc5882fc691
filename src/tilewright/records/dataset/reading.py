"""`read_folder`: a dataset on disk as what cost models learn from."""

from __future__ import annotations

import os
from collections.abc import Collection

import numpy as np

from tilewright.arguments import several
from tilewright.cost_model import Dataset, Group, Logged, Measured
from tilewright.errors import RecordFormatError, TilewrightError, UsageError
from tilewright.records.dataset.device import Device
from tilewright.records.dataset.files import broken
from tilewright.records.dataset.folder import DatasetFolder, Part, set_aside
from tilewright.space import Population


def read_folder(
    path: str | os.PathLike[str],
    devices: Collection[str] | None = None,
    networks: Collection[str] | None = None,
) -> Dataset:
    """The programs of a dataset, of these devices and networks, or of all.

    A network is named by its name, which its variants share, or with the sizes of one of them, as
    `tilewright dataset info` shows it.
    """
    folder = DatasetFolder(path)
    wanted = _tasks_of(folder, several("networks", networks))
    groups: list[Group] = []
    for device in _chosen_devices(folder, several("devices", devices)):
        for part in folder.parts(device):
            if wanted is None or part.task in wanted:
                groups += read_part(folder, device, part)
    return Dataset(tuple(groups))


def read_part(folder: DatasetFolder, device: Device, part: Part) -> list[Group]:
    """The programs of a part; none, and a warning, where it is broken."""
    try:
        return _logged(folder, device, part) if device.tool else _measured(folder, device, part)
    except RecordFormatError as error:
        set_aside(error)
        return []


def _logged(folder: DatasetFolder, device: Device, part: Part) -> list[Group]:
    return [
        Logged(form.primitives, np.where(np.isnan(form.latencies_s), np.inf, form.latencies_s), part.task, device.name)
        for form in folder.logged(device, part.task).forms
    ]


def _measured(folder: DatasetFolder, device: Device, part: Part) -> list[Group]:
    programs = folder.programs(device, part)
    latencies_s = np.where(programs.is_valid, programs.latencies_s, np.inf)
    found = programs.populations()
    for population, _ in found:
        _check_steps(part, population)
    return [Measured(population, latencies_s[mine], part.context, device.name) for population, mine in found]


def _check_steps(part: Part, population: Population) -> None:
    """Whether the steps can be applied: who wrote them may have had other rules for them, and no model reads them."""
    try:
        population.schedule  # noqa: B018 - it is computed when it is asked for, and kept for encoders
    except (TilewrightError, OverflowError) as error:
        raise broken(part.path, f"the steps of {population.sketch!r} cannot be applied: {error}") from error


def _chosen_devices(folder: DatasetFolder, names: Collection[str] | None) -> list[Device]:
    known = folder.devices()
    for name in names or ():
        if name not in {device.name for device in known}:
            raise UsageError(
                f"the dataset {folder.path} has no device {name!r}; it has "
                f"{', '.join(device.name for device in known) or 'none'}"
            )
    return [device for device in known if names is None or device.name in names]


def _tasks_of(folder: DatasetFolder, names: Collection[str] | None) -> set[str] | None:
    """The hashes of the tasks of the networks; None for all tasks."""
    if names is None:
        return None
    known = folder.networks()
    for name in names:
        if not any(name in (network.name, network.title) for network in known):
            raise UsageError(
                f"the dataset {folder.path} has no network {name!r}; it has "
                f"{', '.join(dict.fromkeys(network.name for network in known)) or 'none'}"
            )
    return {task for network in known if {network.name, network.title} & set(names) for task in network.weights}
