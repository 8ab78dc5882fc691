"""Timing one kernel after the other in the runner process, which is replaced when a kernel brings it down."""

from __future__ import annotations

import statistics

from tilewright.measure.measurement import OK, RUN_ERROR, RUN_TIMEOUT, WRONG_RESULT, Measurement
from tilewright.measure.messages import RUNNER, Built, Ran, RunFailed, RunJob
from tilewright.measure.options import MeasureOptions
from tilewright.measure.processes import ForkServer, Worker, WorkerLostError


class Runner:
    """The one process that runs candidates. Nothing else of the measurer works while it times."""

    def __init__(self, server: ForkServer, options: MeasureOptions) -> None:
        self._server = server
        self._options = options
        self._worker: Worker | None = None
        self._is_fresh = True  # has not run a candidate yet

    def start(self) -> None:
        """Start the process, and return before it is ready: it may be computing the reference."""
        if self._worker is None:
            self._worker = self._server.fork(RUNNER)
            self._is_fresh = True

    def run(self, built: Built, best_latency_s: float | None = None, *, is_turn: bool = False) -> Measurement:
        """Time a kernel, in a short turn or for as long as it takes; one that fails beside others is tried again alone.

        A kernel that writes where it should not may spoil the process for those that run after it: only a failure in
        a process that has run nothing else is the candidate's own.
        """
        job = RunJob(built.binary, best_latency_s, is_turn)
        while True:
            is_fresh = self._worker is None or self._is_fresh
            measurement = self._run_once(job, built.build_s)
            if measurement.status not in (RUN_ERROR, WRONG_RESULT):
                return measurement
            self.discard()
            if is_fresh:
                return measurement

    def discard(self) -> None:
        """End the process, in whatever it is doing."""
        if self._worker is not None:
            self._server.end(self._worker)
            self._worker = None

    def _run_once(self, job: RunJob, build_s: float) -> Measurement:
        worker = self._send(job)
        deadline_s = self._options.run_deadline_s(job.best_latency_s)
        try:
            if not worker.connection.poll(deadline_s):
                self.discard()
                error = f"running took longer than {deadline_s:.3g} s (see run_timeout_s); the runner was stopped"
                return Measurement(RUN_TIMEOUT, error=error, build_s=build_s)
            answer: Ran | RunFailed = worker.receive()
        except WorkerLostError:
            death = self._server.end(worker)
            self._worker = None
            if death is None:  # with the fork server; no candidate did that
                return self._run_once(job, build_s)
            error = f"the runner died {death} while it ran this candidate"
            return Measurement(RUN_ERROR, error=error, build_s=build_s)
        return _judged(answer, build_s)

    def _send(self, job: RunJob) -> Worker:
        """Give the job to a runner; one that died while it had nothing to do is replaced."""
        while True:
            if self._worker is None:
                self._worker = self._server.fork_ready(RUNNER)
                self._is_fresh = True
            try:
                self._worker.wait_ready()
                self._worker.send(job)
            except WorkerLostError:
                self.discard()
                continue
            self._is_fresh = False
            return self._worker


def _judged(answer: Ran | RunFailed, build_s: float) -> Measurement:
    if isinstance(answer, RunFailed):
        return Measurement(RUN_ERROR, error=answer.error, build_s=build_s)
    if answer.mismatch:
        return Measurement(WRONG_RESULT, runs_s=answer.runs_s, error=answer.mismatch, build_s=build_s)
    return Measurement(OK, statistics.median(answer.runs_s), answer.runs_s, build_s=build_s)
