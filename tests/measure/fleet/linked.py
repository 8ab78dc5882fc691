"""A fleet without Ray: its link is a thread of this process, and its machines are objects that the test gives."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.tuning.fake_measurer import measurement_of
from tilewright.measure.fleet import Address, DeviceSpec, link
from tilewright.measure.fleet.jobs import Best, Form
from tilewright.measure.fleet.wire import write_measurement
from tilewright.schedule import Trace
from tilewright.target import Target


class InstantStation:
    """A machine that builds and runs nothing, one call at a time: a program's latency comes from its text."""

    def __init__(self, name: str, target: str, num_cores: int = 1) -> None:
        self.name = name
        self._spec = DeviceSpec(name, target, tuple(range(num_cores)), 1)
        self._turn = asyncio.Lock()

    async def describe(self) -> Form:
        return self._spec.describe()

    async def status(self) -> Form:
        return {}

    async def build(self, setup: str, traces: Sequence[str]) -> list[Form]:
        return [{"built": {"trace": trace}} for trace in traces]

    async def run(self, setup: str, built: Sequence[Form], best: Best) -> list[Form]:
        async with self._turn:
            return [_answer(form) for form in built]

    async def compare(self, setup: str, built: Sequence[Form], turns: int) -> list[Form]:
        return [_answer(form) for form in built]


def _answer(form: Form) -> Form:
    return {"measurement": write_measurement(measurement_of(Trace.from_json(form["trace"])))}


class _Thread:
    """In the place of the link's process."""

    def __init__(self, command: Sequence[str], **_: Any) -> None:
        fd = os.dup(int(command[-1]))
        self._thread = threading.Thread(target=lambda: asyncio.run(link._serve(fd)))
        self._thread.start()

    def wait(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)


def connect(stations: Mapping[str, InstantStation], patch: pytest.MonkeyPatch) -> None:
    """From now on a `Fleet` of any address has these machines."""

    async def handles() -> dict[str, Any]:
        return dict(stations)

    patch.setenv("RAY_AUTH_TOKEN", "secret")
    patch.setattr(Address, "answers", True)
    patch.setattr("tilewright.measure.fleet.connection.subprocess.Popen", _Thread)
    patch.setattr(link, "_device_handles", handles)
    patch.setattr(link, "_RayStation", lambda name, handle, device=None: handle)
    patch.setattr(link, "_id", lambda handle: "" if handle is None else handle.name)


def native_station(name: str = "alpha") -> InstantStation:
    return InstantStation(name, str(Target.native()))
