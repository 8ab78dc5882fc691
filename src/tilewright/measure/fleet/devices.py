"""The machines of a fleet as a tuner knows them, and which of them it measures on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tilewright.errors import UsageError
from tilewright.measure.fleet.cluster import Address
from tilewright.measure.fleet.station import boot_id
from tilewright.target import Target, stands_for

Form = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A machine of a fleet, as it describes itself. One without a target only builds."""

    name: str
    target: str | None
    cores: tuple[int, ...] = ()
    num_builders: int = 0
    host: str = ""
    boot: str = ""
    emulator: str = ""
    simulated: int = 0
    processor: str = ""
    """Its name, or the emulator's."""

    @classmethod
    def read(cls, form: Form) -> DeviceInfo:
        cores = tuple(form["cores"])
        names = ("num_builders", "host", "boot", "emulator", "simulated", "processor")
        return cls(form["name"], form["target"], cores, *(form[name] for name in names))


def are_alike(a: DeviceInfo, b: DeviceInfo) -> bool:
    return len(a.cores) == len(b.cores) and stands_for(str(a.target), Target.parse(str(b.target)))


def is_timed_here(device: DeviceInfo) -> bool:
    """Whether its times depend on what else this machine does."""
    return device.boot == boot_id() and device.target is not None and not device.simulated and not device.emulator


def cores_here(devices: Sequence[DeviceInfo]) -> list[int]:
    return sorted({core for device in devices if is_timed_here(device) for core in device.cores})


class Known(Protocol):
    """The machines that answered."""

    devices: list[DeviceInfo]
    strangers: dict[str, str]


def chosen(
    known: Known, names: Sequence[str] | None, target: Target | str | None, address: Address
) -> list[DeviceInfo]:
    """The devices to begin with."""
    devices = [device for device in known.devices if device.target is not None]
    listing = ", ".join(f"{device.name} ({device.target})" for device in devices) or "none"
    listing += "".join(f"; {name} is not used: {reason}" for name, reason in known.strangers.items())
    for name in names or ():
        if not any(device.name == name for device in devices):
            raise UsageError(f"the fleet at {address} has no device {name!r}; it has: {listing}")
    if names is not None:
        devices = [device for device in devices if device.name in names]
    if target is not None:
        wanted = Target.of(target)
        devices = [device for device in devices if device.target and stands_for(device.target, wanted)]
    if not devices:
        asked = "" if target is None else f" for {target}"
        raise UsageError(f"the fleet at {address} has no device{asked} among those asked for; it has: {listing}")
    return devices


def target_of(devices: Sequence[DeviceInfo], target: Target | str | None) -> Target:
    if target is not None:
        return Target.of(target)
    first = Target.parse(str(devices[0].target))
    if not all(stands_for(str(device.target), first) for device in devices):
        listing = ", ".join(f"{device.name} ({device.target})" for device in devices)
        raise UsageError(f"the devices are of several kinds: {listing}; name those of one kind, or a target")
    return first


def check_threads(devices: Sequence[DeviceInfo], threads: int) -> None:
    few = [device for device in devices if len(device.cores) < threads]
    if few:
        raise UsageError(
            f"threads is {threads}, and {few[0].name} measures on {len(few[0].cores)} cores; use fewer threads, or "
            "other devices"
        )
