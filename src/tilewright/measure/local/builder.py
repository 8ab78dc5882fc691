"""`LocalBuilder`: compiles a batch of traces in all builder processes at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from tilewright.measure.context import WARM
from tilewright.measure.local.messages import BUILDER, BuildAnswer, Setup
from tilewright.measure.local.workers import Effort, ForkServer, Worker, WorkerLostError
from tilewright.measure.measurement import BUILD_ERROR, BUILD_TIMEOUT, Measurement
from tilewright.measure.options import MeasureOptions
from tilewright.measure.protocols import Built
from tilewright.schedule import Trace
from tilewright.target import Target, default_threads
from tilewright.te import Task


@dataclass(frozen=True, slots=True)
class _Job:
    index: int
    effort: Effort

    @property
    def start_s(self) -> float:
        return self.effort.start_s


class LocalBuilder:
    """Builder processes of a task, started when they are first needed and kept."""

    def __init__(self, server: ForkServer, target: Target, threads: int, options: MeasureOptions) -> None:
        self._server = server
        self._target = target
        self._threads = threads
        self._options = options
        self._num_builders = options.num_builders or default_threads()
        self._setup: Setup | None = None
        self._idle: list[Worker] = []
        self._busy: dict[Connection, tuple[Worker, _Job]] = {}

    def build(self, task: Task, traces: Sequence[Trace]) -> Iterator[tuple[int, Built | Measurement]]:
        """Each trace's index and what became of it, in the order in which they are done."""
        self._turn_to(task)
        waiting = deque(range(len(traces)))
        had_no_chance: set[int] = set()  # once: their builders were stopped or killed
        while waiting or self._busy:
            while waiting and len(self._busy) < self._num_builders:
                self._give(waiting.popleft(), traces)
            for connection in wait(list(self._busy), self._time_left_s()):
                assert isinstance(connection, Connection)
                index, answer, is_killed = self._take(connection)
                if answer is None or (is_killed and index not in had_no_chance):
                    had_no_chance |= {index} if is_killed else set()
                    waiting.appendleft(index)
                else:
                    yield index, answer
            for index, answer, is_stuck in self._stop_late_ones():
                if is_stuck and index not in had_no_chance:  # once more, with a new builder
                    had_no_chance.add(index)
                    waiting.appendleft(index)
                    self._end_idle_ones()
                else:
                    yield index, answer

    def reset(self) -> None:
        """End all builders, in whatever they are doing."""
        self._end_idle_ones()
        for worker, _ in self._busy.values():
            self._server.end(worker)
        self._busy.clear()

    def _end_idle_ones(self) -> None:
        for worker in self._idle:
            self._server.end(worker)
        self._idle.clear()

    def _turn_to(self, task: Task) -> None:
        """Builders are of one task; forking others takes milliseconds."""
        if self._setup is None or task is not self._setup.task:
            self.reset()
            self._setup = Setup(task, self._target, self._threads, self._options, WARM)

    def _give(self, index: int, traces: Sequence[Trace]) -> None:
        assert self._setup is not None, "a task was turned to"
        while True:
            worker = self._idle.pop() if self._idle else self._server.fork_ready(BUILDER, self._setup)
            try:
                worker.send(traces[index])
            except WorkerLostError:  # it died while it had nothing to do; that is no trial's fault
                self._server.end(worker)
                continue
            self._busy[worker.connection] = (worker, _Job(index, Effort.of(worker)))
            return

    def _take(self, connection: Connection) -> tuple[int, Built | Measurement | None, bool]:
        """The answer of a builder that has one, or None if the fork server took it down; and whether it was killed."""
        worker, job = self._busy.pop(connection)
        try:
            answer: BuildAnswer = worker.receive()
        except WorkerLostError:
            death = self._server.end(worker)
            if death is None:
                return job.index, None, False
            error = f"the builder died {death} while it compiled this candidate"
            failed = Measurement(BUILD_ERROR, error=error, build_s=time.monotonic() - job.start_s)
            return job.index, failed, death.is_killed
        if answer.ends_worker:
            self._server.end(worker)
        else:
            self._idle.append(worker)
        return job.index, answer.outcome, False

    def _time_left_s(self) -> float:
        first_s = min(job.start_s for _, job in self._busy.values())
        return max(0.0, first_s + self._options.build_timeout_s - time.monotonic())

    def _stop_late_ones(self) -> Iterator[tuple[int, Measurement, bool]]:
        """What took too long, and whether the builder has not even tried."""
        now_s = time.monotonic()
        timeout_s = self._options.build_timeout_s
        late = [c for c, (_, job) in self._busy.items() if now_s - job.start_s >= timeout_s and not c.poll()]
        for connection in late:
            worker, job = self._busy.pop(connection)
            is_stuck = job.effort.is_stuck
            self._server.end(worker)
            error = f"compiling took longer than build_timeout_s={timeout_s:g}; the builder was stopped"
            yield job.index, Measurement(BUILD_TIMEOUT, error=error, build_s=now_s - job.start_s), is_stuck
