"""`SimulatedStation`: many devices that build and run nothing, and answer after the time that trials take.

What lies between is real: programs are sent and checked, and answers come back as from any device. It is how a large
fleet is tried on a small machine.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Sequence

from tilewright.measure.fleet.station import DeviceSpec, Form, Tally
from tilewright.measure.fleet.wire import write_measurement
from tilewright.measure.measurement import OK, Measurement

TRIAL_S = (0.06, 0.14)
"""How long a trial takes, at least and at most: from a run of resnet18 on one machine, ten trials a second."""


class SimulatedStation:
    """`simulated` devices of one target in one actor; each runs one program at a time."""

    def __init__(self, spec: str) -> None:
        self._spec = DeviceSpec.read(spec)
        self._turns = [asyncio.Lock() for _ in range(self._spec.simulated)]
        self._tally = Tally()

    async def describe(self) -> str:
        return json.dumps(self._spec.describe())

    async def status(self) -> str:
        return json.dumps(self._tally.form())

    async def build(self, setup_text: str, traces: Sequence[str]) -> list[Form]:
        """As a machine with builders of its own would, without the work: for the fleet's own part of a trial."""
        entry = ["tw_run", 0, 0]
        return [
            {"built": {"object_code": bytes(20_000), "entry": entry, "packs": [], "parts": [], "build_s": 0.015}}
            for _ in traces
        ]

    async def run_on(
        self, device: int, setup_text: str, built: Sequence[Form], best_latency_s: float | None, batch: str
    ) -> list[Form]:
        """Latencies that follow from the code, after times that do so, too."""
        async with self._turns[device]:
            return [await self._run(form) for form in built]

    async def _run(self, built: Form) -> Form:
        share = zlib.crc32(built["object_code"][:4096] + str(self._tally.num_trials).encode()) / 2**32
        low, high = TRIAL_S
        # What the way here took is the fleet's, and is not made up for.
        await asyncio.sleep(low + share * (high - low))
        latency_s = 1e-3 * (1 + share)
        measurement = Measurement(OK, latency_s, (latency_s,) * 3, build_s=built["build_s"])
        self._tally.end([measurement], "")
        return {"measurement": write_measurement(measurement)}

    async def compare(self, setup_text: str, built: Sequence[Form], num_turns: int) -> list[Form]:
        """One after the other."""
        return await self.run_on(0, setup_text, built, None, "")
