"""Compiling a batch of traces on all builders at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from tilewright.measure.measurement import BUILD_ERROR, BUILD_TIMEOUT
from tilewright.measure.messages import BUILDER, BuildFailed, Built
from tilewright.measure.processes import ForkServer, Worker, WorkerLostError
from tilewright.schedule import Trace


@dataclass(frozen=True, slots=True)
class _Job:
    index: int
    start_s: float


class Builders:
    """Builder processes, started when they are first needed and kept."""

    def __init__(self, server: ForkServer, num_builders: int, timeout_s: float) -> None:
        self._server = server
        self._num_builders = num_builders
        self._timeout_s = timeout_s
        self._idle: list[Worker] = []
        self._busy: dict[Connection, tuple[Worker, _Job]] = {}

    def build(self, traces: Sequence[Trace]) -> Iterator[tuple[int, Built | BuildFailed]]:
        """Each trace's index and what became of it, in the order in which they are done."""
        waiting = deque(range(len(traces)))
        while waiting or self._busy:
            while waiting and len(self._busy) < self._num_builders:
                self._give(waiting.popleft(), traces)
            for connection in wait(list(self._busy), self._time_left_s()):
                assert isinstance(connection, Connection)
                index, answer = self._take(connection)
                if answer is None:
                    waiting.appendleft(index)
                else:
                    yield index, answer
            yield from self._stop_late_ones()

    def discard(self) -> None:
        """End all builders, in whatever they are doing."""
        for worker in [*self._idle, *(worker for worker, _ in self._busy.values())]:
            self._server.end(worker)
        self._idle.clear()
        self._busy.clear()

    def _give(self, index: int, traces: Sequence[Trace]) -> None:
        while True:
            worker = self._idle.pop() if self._idle else self._server.fork_ready(BUILDER)
            try:
                worker.send(traces[index])
            except WorkerLostError:  # it died while it had nothing to do; that is no trial's fault
                self._server.end(worker)
                continue
            self._busy[worker.connection] = (worker, _Job(index, time.monotonic()))
            return

    def _take(self, connection: Connection) -> tuple[int, Built | BuildFailed | None]:
        """The answer of a builder that has one; None if it went down with the fork server."""
        worker, job = self._busy.pop(connection)
        try:
            answer: Built | BuildFailed = worker.receive()
        except WorkerLostError:
            death = self._server.end(worker)
            if death is None:
                return job.index, None
            error = f"the builder died {death} while it compiled this candidate"
            return job.index, BuildFailed(BUILD_ERROR, error, time.monotonic() - job.start_s)
        if isinstance(answer, BuildFailed) and answer.ends_worker:
            self._server.end(worker)
        else:
            self._idle.append(worker)
        return job.index, answer

    def _time_left_s(self) -> float:
        first_s = min(job.start_s for _, job in self._busy.values())
        return max(0.0, first_s + self._timeout_s - time.monotonic())

    def _stop_late_ones(self) -> Iterator[tuple[int, BuildFailed]]:
        now_s = time.monotonic()
        late = [c for c, (_, job) in self._busy.items() if now_s - job.start_s >= self._timeout_s and not c.poll()]
        for connection in late:
            worker, job = self._busy.pop(connection)
            self._server.end(worker)
            error = f"compiling took longer than build_timeout_s={self._timeout_s:g}; the builder was stopped"
            yield job.index, BuildFailed(BUILD_TIMEOUT, error, now_s - job.start_s)
