"""A measurer that runs nothing: a program's latency comes from its text."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable

from tilewright.measure import OK, Batch, Measurement
from tilewright.measure.protocols import Result, Ticket
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.tuning.task_collection import TURNS


def latency_of(trace: Trace) -> float:
    """From 1 to 2 ms."""
    return 1e-3 + zlib.crc32(str(trace).encode()) / 2**32 * 1e-3


def measurement_of(trace: Trace) -> Measurement:
    latency_s = latency_of(trace)
    return Measurement(OK, latency_s, (latency_s,) * 3)


class FakeMeasurer:
    """Answers in the order of the batches, and remembers what it was given. `result` may raise."""

    def __init__(self, target: Target, threads: int, result: Callable[[Trace], Measurement] = measurement_of) -> None:
        self.target = target
        self.threads = threads
        self.batches: list[Batch] = []
        self._result = result
        self._waiting: deque[tuple[Ticket, Trace]] = deque()

    @property
    def traces(self) -> list[Trace]:
        """All programs but those of comparisons."""
        return [trace for batch in self.batches if batch.turns == TURNS for trace in batch.traces]

    @property
    def has_room(self) -> bool:
        return not self._waiting

    def submit(self, batch: Batch) -> list[Ticket]:
        first = sum(len(earlier.traces) for earlier in self.batches)
        self.batches.append(batch)
        tickets = list(range(first, first + len(batch.traces)))
        self._waiting.extend(zip(tickets, batch.traces, strict=True))
        return tickets

    def next_result(self) -> Result:
        ticket, trace = self._waiting.popleft()
        return Result(ticket, self._result(trace))

    def cancel(self) -> None:
        self._waiting.clear()

    def close(self) -> None:
        self.cancel()
