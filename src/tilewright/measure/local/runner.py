"""`LocalRunner`: times one kernel after the other in a process that is replaced when a kernel brings it down."""

from __future__ import annotations

import statistics

from tilewright.measure.context import Context
from tilewright.measure.local.messages import RUNNER, Ran, RunFailed, RunJob, Setup
from tilewright.measure.local.workers import Effort, ForkServer, Worker, WorkerLostError
from tilewright.measure.measurement import OK, RUN_ERROR, RUN_TIMEOUT, WRONG_RESULT, Measurement
from tilewright.measure.options import MeasureOptions
from tilewright.measure.protocols import Built
from tilewright.target import Target
from tilewright.te import Task


class LocalRunner:
    """The one process that runs candidates. Nothing else of the measurer works while it times."""

    def __init__(self, server: ForkServer, target: Target, threads: int, options: MeasureOptions) -> None:
        self._server = server
        self._target = target
        self._threads = threads
        self._options = options
        self._setup: Setup | None = None
        self._worker: Worker | None = None
        self._is_fresh = True  # has not run a candidate yet
        self._had_no_chance = False  # of the last one that failed the process was stopped, or killed

    @property
    def pid(self) -> int | None:
        """Of the process, if there is one now."""
        return None if self._worker is None else self._worker.pid

    def prepare(self, task: Task, context: Context) -> None:
        """Start a process for the task, and return before it is ready: it may be computing the reference."""
        if self._setup is None or task is not self._setup.task or context != self._setup.context:
            self.reset()
            self._setup = Setup(task, self._target, self._threads, self._options, context)
        if self._worker is None:
            self._worker = self._server.fork(RUNNER, self._setup)
            self._is_fresh = True

    def run(self, built: Built, best_latency_s: float | None) -> Measurement:
        """Time a kernel for as long as it is worth beside the best."""
        return self._run(RunJob(built.binary, best_latency_s, error_growth=built.error_growth), built.build_s)

    def take_turn(self, built: Built) -> Measurement:
        """Time a kernel for a short while."""
        return self._run(RunJob(built.binary, is_turn=True, error_growth=built.error_growth), built.build_s)

    def reset(self) -> None:
        """End the process, in whatever it is doing."""
        if self._worker is not None:
            self._server.end(self._worker)
            self._worker = None

    def _run(self, job: RunJob, build_s: float) -> Measurement:
        """A kernel that fails beside others is tried again alone.

        One that writes where it should not may spoil the process for those that run after it: only a failure in a
        process that has run nothing else is the candidate's own. So is one that ran all the time that it had, but not
        one of a process that was stopped or killed, or did not get a core: that one is tried again, once.
        """
        is_tried_again = False
        while True:
            is_fresh = self._worker is None or self._is_fresh
            self._had_no_chance = False
            measurement = self._run_once(job, build_s)
            if self._had_no_chance and not is_tried_again:
                is_tried_again = True
                continue
            if measurement.status not in (RUN_ERROR, WRONG_RESULT):
                return measurement
            self.reset()
            if is_fresh:
                return measurement

    def _run_once(self, job: RunJob, build_s: float) -> Measurement:
        worker = self._send(job)
        deadline_s = self._options.run_deadline_s(job.best_latency_s)
        since = Effort.of(worker)
        try:
            if not worker.connection.poll(deadline_s):
                self._had_no_chance = since.is_stuck
                self.reset()
                error = f"running took longer than {deadline_s:.3g} s (see run_timeout_s); the runner was stopped"
                return Measurement(RUN_TIMEOUT, error=error, build_s=build_s)
            answer: Ran | RunFailed = worker.receive()
        except WorkerLostError:
            death = self._server.end(worker)
            self._worker = None
            if death is None:  # with the fork server; no candidate did that
                return self._run_once(job, build_s)
            self._had_no_chance = death.is_killed
            error = f"the runner died {death} while it ran this candidate"
            return Measurement(RUN_ERROR, error=error, build_s=build_s)
        return _judged(answer, build_s)

    def _send(self, job: RunJob) -> Worker:
        """Give the job to a runner; one that died while it had nothing to do is replaced."""
        assert self._setup is not None, "the runner was prepared"
        while True:
            if self._worker is None:
                self._worker = self._server.fork_ready(RUNNER, self._setup)
                self._is_fresh = True
            try:
                self._worker.wait_ready()
                self._worker.send(job)
            except WorkerLostError:
                self.reset()
                continue
            self._is_fresh = False
            return self._worker


def _judged(answer: Ran | RunFailed, build_s: float) -> Measurement:
    if isinstance(answer, RunFailed):
        return Measurement(RUN_ERROR, error=answer.error, build_s=build_s)
    if answer.mismatch:
        return Measurement(WRONG_RESULT, runs_s=answer.runs_s, error=answer.mismatch, build_s=build_s)
    return Measurement(OK, statistics.median(answer.runs_s), answer.runs_s, build_s=build_s)
