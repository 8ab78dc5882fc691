"""`Fleet`: a measurer whose devices are machines of a Ray cluster."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from tilewright.errors import TilewrightError, UsageError
from tilewright.measure.fleet import cluster, turns
from tilewright.measure.fleet.cluster import Address, Node
from tilewright.measure.fleet.connection import Link, LinkLostError
from tilewright.measure.fleet.devices import (
    DeviceInfo,
    Form,
    are_alike,
    check_threads,
    chosen,
    cores_here,
    is_timed_here,
    target_of,
)
from tilewright.measure.fleet.station import DeviceSpec
from tilewright.measure.fleet.wire import read_measurement, write_setup
from tilewright.measure.local.messages import Setup
from tilewright.measure.options import MeasureOptions
from tilewright.measure.protocols import Batch, Result, Ticket
from tilewright.target import Target, default_threads

LOCAL = "local"
"""The address of a cluster of this machine alone, which ends with the fleet."""

_PATIENCE_S = 90.0  # for a head that is gone, to come back
_RETRY_S = 1.0
_AHEAD = 2  # programs for each device that are under way at least, if there are so many


class Fleet:
    """Measures programs on the devices of a cluster: a `Measurer`, for `tw.tune(..., measurer=Fleet(...))`.

    `address` is HOST:PORT of the head, "local" for a cluster of this machine that ends with the fleet, or None for the
    one that was started here. `devices` names some of them; by default it is all that are of the target. Without a
    target it is that of the devices, which must be of one kind then; without `threads` it is the number of their cores.
    Devices may join and leave at any time; `on_event` is told of what happens.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        devices: Sequence[str] | None = None,
        target: Target | str | None = None,
        threads: int | None = None,
        options: MeasureOptions | None = None,
        on_event: Callable[[str], None] = lambda _: None,
    ) -> None:
        cluster.require_ray()
        self._options = options or MeasureOptions()
        self._on_event = on_event
        self._own_node = _start_here() if address == LOCAL else None
        self._address = Address.parse(self._own_node[1]) if self._own_node else cluster.find_address(address)
        self._link: Link | None = None
        self._thinking = turns.Thinking(())
        self._open: dict[Ticket, _Submitted] = {}
        self._num_tickets = 0
        self.num_measured: Counter[str] = Counter()
        """How many programs each device has measured."""
        try:
            self._link = Link(self._address)
            self._thinking = turns.Thinking(cores_here(self._link.devices))
            self.devices = chosen(self._link, devices, target, self._address)
            self.target = target_of(self.devices, target)
            self.threads = threads or min(len(device.cores) for device in self.devices)
            self._names = None if devices is None else list(devices)
            check_threads(self.devices, self.threads)
            self._use()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def has_room(self) -> bool:
        """Where all devices are on this machine, thinking of more programs would disturb those that are timed."""
        if not self._open:
            return True
        are_here = all(map(is_timed_here, self.devices))
        return not are_here and len(self._open) < _AHEAD * self._num_devices

    @property
    def processor(self) -> str:
        """The names of its devices' processors."""
        return ", ".join(sorted({device.processor for device in self.devices if device.processor}))

    @property
    def _num_devices(self) -> int:
        return max(1, self._link.num_devices if self._link else 0)

    def submit(self, batch: Batch) -> list[Ticket]:
        tickets = list(range(self._num_tickets, self._num_tickets + len(batch.traces)))
        self._num_tickets += len(tickets)
        if not tickets:
            return []
        submitted = _Submitted(batch, tickets, set(tickets), batch.best_latency_s)
        self._open |= dict.fromkeys(tickets, submitted)
        self._tell(self._message(submitted))
        return tickets

    def next_result(self) -> Result:
        if not self._open:
            raise UsageError("there is no result to wait for; submit a batch first")
        self._thinking.end()
        try:
            result = self._wait()
            if self.has_room:  # what the tuner does next takes long, and would disturb what is timed here
                self._thinking.begin()
        except BaseException:
            self.cancel()
            raise
        return result

    def cancel(self) -> None:
        self._thinking.end()
        if self._open:
            self._open.clear()
            with contextlib.suppress(LinkLostError):
                self._require_link().send({"do": "cancel"})

    def close(self) -> None:
        """Leave the cluster; one that was started for this fleet ends."""
        self._thinking.end()
        self._open.clear()
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._own_node is not None:
            cluster.stop_node(self._own_node[0])
            self._own_node = None

    def _wait(self) -> Result:
        while True:
            try:
                message = self._require_link().receive()
            except LinkLostError:
                self._reconnect()
                continue
            if "event" in message:
                self._on_event(message["event"])
            elif "failed" in message:
                raise TilewrightError(f"the fleet at {self._address} has failed: {message['failed']}")
            elif message.get("result") in self._open:
                return self._taken(message)

    def _taken(self, message: Form) -> Result:
        ticket: Ticket = message["result"]
        if message["device"]:
            self.num_measured[message["device"]] += 1
        submitted = self._open.pop(ticket)
        measurement = read_measurement(message["measurement"])
        submitted.waiting.discard(ticket)
        latency_s = measurement.latency_s
        if latency_s is not None and (submitted.best_latency_s is None or latency_s < submitted.best_latency_s):
            submitted.best_latency_s = latency_s
        return Result(ticket, measurement)

    def _tell(self, message: Form) -> None:
        """A link that is gone is noticed, and all told again, by whoever waits for results."""
        with contextlib.suppress(LinkLostError):
            self._require_link().send(message)

    def _message(self, submitted: _Submitted) -> Form:
        batch = submitted.batch
        setup = Setup(batch.task, self.target, self.threads, self._options, batch.context)
        # A comparison is of all its programs or none.
        still = submitted.waiting if batch.turns is None else set(submitted.tickets)
        left = [
            (ticket, trace) for ticket, trace in zip(submitted.tickets, batch.traces, strict=True) if ticket in still
        ]
        return {
            "do": "submit",
            "tickets": [ticket for ticket, _ in left],
            "traces": [trace.to_json() for _, trace in left],
            "setup": write_setup(setup),
            "best_latency_s": submitted.best_latency_s if batch.turns is None else None,
            "turns": batch.turns,
        }

    def _use(self) -> None:
        wanted = {"target": str(self.target), "threads": self.threads, "devices": self._names}
        self._require_link().send({"do": "use", **wanted})

    def _reconnect(self) -> None:
        """Another link, to a head that may be coming back; what was under way is submitted again."""
        self._on_event(f"the fleet's head at {self._address} is gone; waiting for it")
        until_s = time.monotonic() + _PATIENCE_S
        while True:
            self._require_link().close()
            try:
                self._link = Link(self._address)
                if self._link.devices:
                    break
                self._link.close()
            except TilewrightError:
                pass
            if time.monotonic() > until_s:
                raise TilewrightError(
                    f"the fleet's head at {self._address} has not come back for {_PATIENCE_S:.0f} s; what was measured "
                    "is kept: start the fleet again, and then the same command"
                )
            time.sleep(_RETRY_S)
        self._on_event(f"the fleet at {self._address} is back; what was under way is measured again")
        self._use()
        for submitted in {id(s): s for s in self._open.values()}.values():
            self._tell(self._message(submitted))

    def _require_link(self) -> Link:
        if self._link is None:
            raise UsageError("the fleet is closed; make another one")
        return self._link


@dataclass(slots=True, eq=False)
class _Submitted:
    """A batch that is under way; `waiting` are those of its tickets that were not told."""

    batch: Batch
    tickets: list[Ticket]
    waiting: set[Ticket]
    best_latency_s: float | None


def kinds_of(address: str | None = None, devices: Sequence[str] | None = None) -> list[list[DeviceInfo]]:
    """The devices of a fleet, or those of the names, by the kind of their targets and as many cores."""
    cluster.require_ray()
    found = cluster.find_address(address)
    link = Link(found)
    link.close()
    kinds: list[list[DeviceInfo]] = []
    for device in chosen(link, devices, None, found):
        alike = (kind for kind in kinds if are_alike(kind[0], device))
        kind = next(alike, None)
        if kind is None:
            kinds.append([device])
        else:
            kind.append(device)
    return kinds


def fleet_status(address: str | None = None) -> list[tuple[DeviceInfo, Form]]:
    """The machines of a fleet, and what each is doing."""
    cluster.require_ray()
    link = Link(cluster.find_address(address))
    try:
        statuses = link.statuses()
        known = [(device, statuses.get(device.name, {"lost": "it has left"})) for device in link.devices]
        return known + [(DeviceInfo(name, None), {"lost": reason}) for name, reason in link.strangers.items()]
    finally:
        link.close()


def _start_here() -> tuple[str, str]:
    """A cluster of this machine alone; the name of its device, and its address."""
    name = f"local-{os.getpid()}-{cluster.free_port()}"
    address = Address(cluster.LOOPBACK, cluster.free_port())
    cores = tuple(sorted(os.sched_getaffinity(0)))
    spec = DeviceSpec(name, str(Target.native()), cores, default_threads())
    cluster.start_node(Node(address, True, spec, cluster.new_folder(), dies_with=os.getpid()))
    return name, str(address)
