"""The process between a tuner and the cluster: Ray lives here, and what it does when a head is lost ends this process
alone. The tuner then starts another one.

`python -m tilewright.measure.fleet.link ADDRESS FD`: lines of JSON over the socket FD; `Link` is the other end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Sequence
from typing import Any

from tilewright.measure.fleet.cluster import NAMESPACE
from tilewright.measure.fleet.dispatch import DEPTH, Dispatcher, StationLostError
from tilewright.measure.fleet.jobs import Best, Form, jobs_of
from tilewright.measure.fleet.wire import PROTOCOL
from tilewright.target import Target, stands_for
from tilewright.version import __version__

_LOOK_FOR_DEVICES_S = 2.0
_DESCRIBE_S = 3.0
_HEAD_S = 8.0
EXIT_HEAD_LOST = 3
_LONGEST_LINE = 1 << 30


def main(address: str, fd: int) -> None:
    """Serve until the tuner closes its end."""
    import ray

    ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    asyncio.run(_serve(fd))
    ray.shutdown()


class _RayStation:
    """The actor of a machine. A simulated one has many devices, of which this is one."""

    def __init__(self, name: str, handle: Any, device: int | None = None) -> None:
        self.name = _name_of(name, device)
        self._handle = handle
        self._device = device

    async def describe(self) -> Form:
        return _form(await self._call("describe", "status"))

    async def status(self) -> Form:
        return _form(await self._call("status", "status"))

    async def build(self, setup: str, traces: Sequence[str]) -> list[Form]:
        found: list[Form] = await self._call("build", "build", setup, list(traces))
        return found

    async def run(self, setup: str, built: Sequence[Form], best: Best) -> list[Form]:
        arguments = (setup, list(built), best.latency_s, best.batch)
        found: list[Form]
        if self._device is None:
            found = await self._call("run", "run", *arguments)
        else:
            found = await self._call("run_on", "run", self._device, *arguments)
        return found

    async def compare(self, setup: str, built: Sequence[Form], turns: int) -> list[Form]:
        found: list[Form] = await self._call("compare", "run", setup, list(built), turns)
        return found

    async def _call(self, method: str, group: str, *arguments: object) -> Any:
        from ray.exceptions import RayError

        bound = getattr(self._handle, method)
        try:
            return await bound.options(concurrency_group=group).remote(*arguments)
        except RayError as error:
            raise StationLostError(_cause(error)) from error


class _Link:
    """One tuner's way to the cluster."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._known: dict[str, Form] = {}  # descriptions by name
        self._strangers: dict[str, str] = {}  # why others are not used, by name
        self._handles: dict[str, Any] = {}
        self._wanted: Form | None = None
        self._dispatcher = Dispatcher(
            post=lambda ticket, form, device: self._send(result=ticket, measurement=form, device=device),
            say=lambda text: self._send(event=text),
            fail=lambda text: self._send(failed=text),
        )

    async def serve(self, reader: asyncio.StreamReader) -> None:
        await self._look()
        self._send(hello=list(self._known.values()), strangers=self._strangers)
        watching = [asyncio.ensure_future(self._dispatcher.watch()), asyncio.ensure_future(self._keep_looking())]
        while line := await reader.readline():
            message = json.loads(line)
            if message["do"] == "use":
                self._wanted = message
                await self._look()
            elif message["do"] == "submit":
                self._dispatcher.submit(jobs_of(message))
            elif message["do"] == "status":
                self._send(statuses=await self._statuses())
            else:
                self._dispatcher.cancel()
        for task in watching:
            task.cancel()

    async def _keep_looking(self) -> None:
        """Ends this process when the head does not answer: Ray itself may wait for it for ever."""
        while True:
            await asyncio.sleep(_LOOK_FOR_DEVICES_S)
            try:
                await self._look()
            except _HeadLostError:
                os._exit(EXIT_HEAD_LOST)

    async def _look(self) -> None:
        """Who is there; new ones join the work, and those whose name is gone leave it."""
        handles = await _device_handles()
        for name in [name for name in self._known if _id(self._handles[name]) != _id(handles.get(name))]:
            for device in _devices_of(self._known.pop(name)):
                self._dispatcher.leave(_name_of(name, device))
            self._dispatcher.leave(name)
            self._send(event=f"{name} has left the fleet")
        new = sorted(handles.keys() - self._known.keys())
        for name, described in zip(new, await asyncio.gather(*(_described(n, handles[n]) for n in new)), strict=True):
            if is_description(described, name):
                self._known[name], self._handles[name] = described, handles[name]
                self._strangers.pop(name, None)
            elif described and name not in self._strangers:
                self._strangers[name] = why_not(described)
                self._send(event=f"{name} is not used: {self._strangers[name]}")
        self._assign()
        self._send(devices=self._num_devices())

    def _assign(self) -> None:
        """Have those build and measure that are wanted, and do not yet."""
        if self._wanted is None:
            return
        builders, devices = self._dispatcher.names_of("build"), self._dispatcher.names_of("run")
        for name, described in self._known.items():
            handle = self._handles[name]
            if described["num_builders"] and name not in builders:
                self._dispatcher.join(_RayStation(name, handle), "build", 1)
            wanted = _devices_of(described) if is_wanted(described, self._wanted) else ()
            for device in wanted:
                if _name_of(name, device) not in devices:
                    self._dispatcher.join(_RayStation(name, handle, device), "run", DEPTH)

    def _num_devices(self) -> int:
        return len(self._dispatcher.names_of("run"))

    async def _statuses(self) -> Form:
        async def status(name: str) -> Form:
            try:
                return await asyncio.wait_for(_RayStation(name, self._handles[name]).status(), _DESCRIBE_S)
            except (StationLostError, asyncio.TimeoutError) as error:
                return {"lost": str(error) or "it does not answer"}

        return dict(zip(self._known, await asyncio.gather(*map(status, self._known)), strict=True))

    def _send(self, **message: object) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")


class _HeadLostError(Exception):
    """The head of the cluster does not answer."""


async def _device_handles() -> dict[str, Any]:
    """The actors of all devices, by their names."""
    from ray.exceptions import RayError

    loop = asyncio.get_running_loop()
    try:
        # It waits for the head, and so in a thread.
        return await asyncio.wait_for(loop.run_in_executor(None, _find_handles), _HEAD_S)
    except (RayError, RuntimeError, OSError, asyncio.TimeoutError) as error:
        raise _HeadLostError from error


def _find_handles() -> dict[str, Any]:
    import ray
    from ray.util import list_named_actors

    found: dict[str, Any] = {}
    for actor in list_named_actors(all_namespaces=True):
        if actor["namespace"] == NAMESPACE:
            with contextlib.suppress(ValueError):  # it has gone since
                found[actor["name"]] = ray.get_actor(actor["name"], namespace=NAMESPACE)
    return found


def _id(handle: Any) -> str:
    """Another one after a device has left and joined again."""
    return "" if handle is None else handle._actor_id.hex()


async def _described(name: str, handle: Any) -> Form:
    """What a device says of itself; nothing if it is not there yet, or not any more."""
    try:
        return await asyncio.wait_for(_RayStation(name, handle).describe(), _DESCRIBE_S)
    except (StationLostError, asyncio.TimeoutError):
        return {}


def is_description(form: Form, name: str) -> bool:
    """Whether a machine of this version describes itself so.

    >>> is_description({"protocol": 1, "name": "a"}, "a")
    False
    """
    kinds = {
        "host": str,
        "boot": str,
        "emulator": str,
        "num_builders": int,
        "simulated": int,
        "cores": list,
        "processor": str,
    }
    if form.get("protocol") != PROTOCOL or form.get("name") != name:
        return False
    are_right = all(isinstance(form.get(key), kind) for key, kind in kinds.items())
    if not are_right or not all(isinstance(core, int) for core in form["cores"]):
        return False
    return form.get("target") is None or isinstance(form["target"], str)


def why_not(form: Form) -> str:
    """What to say of a machine that describes itself otherwise.

    >>> why_not({"protocol": 1, "version": "0.1"}).partition(",")[0]
    'it runs tilewright 0.1 with version 1 of the protocol'
    """
    version, protocol = str(form.get("version"))[:40], str(form.get("protocol"))[:40]
    return (
        f"it runs tilewright {version} with version {protocol} of the protocol, and this is {__version__} with "
        f"{PROTOCOL}; install the same on all machines"
    )


def is_wanted(described: Form, wanted: Form) -> bool:
    """Whether a machine is one of those to measure on."""
    names = wanted["devices"]
    if described["target"] is None or (names is not None and described["name"] not in names):
        return False
    is_same = stands_for(described["target"], Target.parse(wanted["target"]))
    return is_same and len(described["cores"]) >= wanted["threads"]


def _devices_of(described: Form) -> Sequence[int | None]:
    """A real machine is one device; a simulated one has many, by their numbers."""
    return range(described["simulated"]) if described["simulated"] else (None,)


def _name_of(name: str, device: int | None) -> str:
    return name if device is None else f"{name}/{device}"


def _form(text: str) -> Form:
    found = json.loads(text)
    return found if isinstance(found, dict) else {}


def _cause(error: Exception) -> str:
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return (lines or [type(error).__name__])[-1 if "Traceback" in str(error) else 0]


async def _serve(fd: int) -> None:
    connection = socket.socket(fileno=fd)
    reader, writer = await asyncio.open_unix_connection(sock=connection, limit=_LONGEST_LINE)
    await _Link(writer).serve(reader)
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
