"""`Corpus`: one or several datasets as what models are trained and tested on; their programs are read when needed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.arguments import several
from tilewright.cost_model import Dataset, Group
from tilewright.errors import RecordFormatError, UsageError
from tilewright.records.dataset.device import Device
from tilewright.records.dataset.folder import DatasetFolder, Part
from tilewright.records.dataset.networks import NetworkTasks
from tilewright.records.dataset.reading import read_part

_ANY = "*"
EXACTLY = "="
"""Before a title: that size of a network alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Where a corpus has the programs of a task on a device."""

    folder: DatasetFolder
    device: Device
    part: Part


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """The parts of datasets, with their devices and networks.

    A part that is broken is left out with a warning when it is read. Each is read once.
    """

    sources: tuple[Source, ...]
    networks: tuple[NetworkTasks, ...]
    devices: tuple[Device, ...]
    networks_of: Mapping[str, Sequence[NetworkTasks]]
    """By device, the networks of the datasets that have it: others may cut a network of the same title otherwise."""
    _read: dict[Source, tuple[Group, ...]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def open(cls, paths: Sequence[str | os.PathLike[str]]) -> Corpus:
        """The datasets in these folders; one that is named twice counts once."""
        if not several("paths", paths):
            raise UsageError("models are trained and tested on at least one dataset, got none; name a folder")
        sources: list[Source] = []
        networks: list[NetworkTasks] = []
        devices: dict[str, Device] = {}
        networks_of: dict[str, list[NetworkTasks]] = {}
        for folder in map(_folder, {os.path.realpath(path): path for path in paths}.values()):
            own = folder.networks()
            networks += [network for network in own if network not in networks]
            for device in folder.devices():
                _check_same(devices.setdefault(device.name, device), device)
                networks_of.setdefault(device.name, []).extend(own)
                sources += [Source(folder, device, part) for part in folder.parts(device)]
        return cls(tuple(sources), tuple(networks), tuple(devices.values()), networks_of)

    @property
    def tasks(self) -> frozenset[str]:
        """The hashes of all tasks that have programs."""
        return frozenset(source.part.task for source in self.sources)

    def groups(self, source: Source) -> tuple[Group, ...]:
        """The programs of a part."""
        if source not in self._read:
            self._read[source] = tuple(read_part(source.folder, source.device, source.part))
        return self._read[source]

    def dataset(self, is_wanted: Callable[[Source], bool]) -> Dataset:
        """The programs of some parts."""
        return Dataset(tuple(group for source in self.sources if is_wanted(source) for group in self.groups(source)))

    def as_cut_for(self, device: str, networks: Sequence[NetworkTasks]) -> list[NetworkTasks]:
        """The networks on a device: one that datasets cut into different tasks is as those of the device have it."""
        own = self.networks_of[device]
        titles = {network.title for network in own}
        return [network for network in networks if network in own or network.title not in titles]

    def forget(self) -> None:
        """Let go of what encoders gave for the programs, which may take more memory than all else."""
        for groups in self._read.values():
            for group in groups:
                group.forget()

    def check_devices(self, names: Collection[str]) -> None:
        """Whether there are devices of these names."""
        known = [device.name for device in self.devices]
        for name in names:
            if name not in known:
                raise UsageError(f"the device {name!r} is in none of the datasets; they have {_listed(known)}")

    def named(self, name: str) -> list[NetworkTasks]:
        """The networks and workloads of a name, which all sizes share, or of a title; a * stands for any letters.

        After "=" it is a title, of one size.
        """
        if name.startswith(EXACTLY):
            found = [network for network in self.networks if network.title == name.removeprefix(EXACTLY)]
        else:
            found = [network for network in self.networks if _is_called(network, name)]
        if not found:
            known = list(dict.fromkeys(network.name for network in self.networks))
            no_names = "none, as logs of other tools; hold out a share of the tasks, such as 20%"
            raise UsageError(
                f"the network {name!r} is in none of the datasets; they have {_listed(known) if known else no_names}"
            )
        return found


def _folder(path: str | os.PathLike[str]) -> DatasetFolder:
    try:
        return DatasetFolder(path)
    except RecordFormatError as error:  # the one file without which nothing else is read
        raise UsageError(str(error)) from error


def _check_same(known: Device, device: Device) -> None:
    if not known.is_same(device):
        raise UsageError(
            f"two datasets call different devices {device.name!r}: {known.target} and {device.target}; rename the "
            "folder of one of them in its dataset, devices/<name>"
        )


def _is_called(network: NetworkTasks, name: str) -> bool:
    if name in (network.name, network.title):  # a title has brackets, which a pattern would take for its own
        return True
    pattern = re.compile(".*".join(map(re.escape, name.split(_ANY))))
    return any(pattern.fullmatch(own) for own in (network.name, network.title))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
