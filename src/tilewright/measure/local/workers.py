"""The measuring processes as the tuner sees them: started, talked to, ended. `fork_server` is the other end."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.measure.local.messages import Death, Ready, Setup, SetupFailed
from tilewright.target import Target

# The interpreter finds what this one finds, whatever has been done to sys.path since it started.
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from tilewright.measure.local.fork_server import main
main(int(sys.argv[2]), int(sys.argv[3]))
"""
# Threads of a BLAS library would keep a forked process from using it.
_SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_LAST_WISHES_S = 10.0
_ANSWER_S = 30.0  # the server's own work takes milliseconds, and its start a second
_STUCK_SHARE = 0.25
_MAX_STARTS = 3
_MAX_ATTEMPTS = 3


class WorkerLostError(Exception):
    """A worker closed its connection: it died. Never leaves this package."""


class Worker:
    """A builder or runner process."""

    def __init__(self, pid: int, connection: Connection, server: subprocess.Popen[bytes]) -> None:
        self.pid = pid
        self.connection = connection
        self.server = server
        self._is_ready = False

    def send(self, message: object) -> None:
        try:
            self.connection.send(message)
        except ConnectionError as error:
            raise WorkerLostError from error

    def receive(self) -> Any:
        try:
            return self.connection.recv()
        except (EOFError, ConnectionError) as error:
            raise WorkerLostError from error

    def _has_message(self, wait_s: float) -> bool:
        try:
            return self.connection.poll(wait_s)
        except ConnectionError as error:
            raise WorkerLostError from error

    def wait_ready(self) -> None:
        """Wait until it has set itself up, as long as that takes and it works on it."""
        if self._is_ready:
            return
        effort = Effort.of(self)
        while not self._has_message(_ANSWER_S):
            if effort.is_stuck:
                raise WorkerLostError
            effort = Effort.of(self)
        message = self.receive()
        if isinstance(message, SetupFailed):
            raise TilewrightError(message.error)
        assert isinstance(message, Ready), message
        self._is_ready = True


@dataclass(frozen=True, slots=True)
class Effort:
    """What a worker has done since: one that was stopped, or that gets no core, has not tried."""

    worker: Worker
    start_s: float
    processor_s: float

    @classmethod
    def of(cls, worker: Worker) -> Effort:
        return cls(worker, time.monotonic(), _processor_s(worker.pid))

    @property
    def is_stuck(self) -> bool:
        """Whether it has used little of the time, as nothing does that compiles or runs a kernel."""
        used_s = _processor_s(self.worker.pid) - self.processor_s
        return used_s < _STUCK_SHARE * (time.monotonic() - self.start_s)


def _processor_s(pid: int) -> float:
    """What the threads of a process have used; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class ForkServer:
    """Starts and ends workers through a process of their own; if that one is lost, another takes its place."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._process: subprocess.Popen[bytes] | None = None
        self._num_starts = 0

    def start(self) -> None:
        """Start the process, and return before it is ready."""
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = [json.dumps(sys.path), str(theirs.fileno()), str(os.getpid())]
            # A session of its own: Ctrl-C at the terminal is for the tuner, which ends its children itself.
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *arguments],
                env=os.environ | _SINGLE_THREADED,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._control = ours
        self._connection = Connection(os.dup(ours.fileno()))
        self._num_starts += 1
        with contextlib.suppress(ConnectionError):  # if it is gone already, the first fork will tell
            self._connection.send(self._target)

    def fork(self, role: str, setup: Setup) -> Worker:
        """A new worker."""
        while True:
            process = self._running()
            try:
                self._connection.send(("fork", (role, setup)))
                pid = self._answer()
                _, (fd,), _, _ = socket.recv_fds(self._control, 1, 1)
            except (EOFError, ConnectionError, ValueError):
                self._stop()
                if self._num_starts >= _MAX_STARTS:
                    raise TilewrightError(
                        f"the process that starts builders and runners ended {_MAX_STARTS} times, the last time with "
                        f"exit code {process.returncode}; its standard error says why"
                    ) from None
                self.start()
                continue
            return Worker(pid, Connection(fd), process)

    def fork_ready(self, role: str, setup: Setup) -> Worker:
        """A new worker that has set itself up, as long as that takes."""
        for _ in range(_MAX_ATTEMPTS):
            worker = self.fork(role, setup)
            try:
                worker.wait_ready()
            except WorkerLostError:
                death = self.end(worker)
                continue
            return worker
        raise TilewrightError(
            f"a {role} process died {_MAX_ATTEMPTS} times before it had anything to do, the last time "
            f"{death or 'with the process that started it'}; is there enough memory for the task?"
        )

    def end(self, worker: Worker) -> Death | None:
        """Kill the worker if it still lives, and tell how it died; None if because the fork server did."""
        worker.connection.close()
        if worker.server is not self._process:
            return None
        try:
            self._connection.send(("end", worker.pid))
            death: Death = self._answer()
        except (EOFError, ConnectionError):
            return None
        return death

    def _answer(self) -> Any:
        """One that does not answer is as good as dead: it is ended, and its workers with it."""
        if not self._connection.poll(_ANSWER_S):
            self._running().kill()
        return self._connection.recv()

    def close(self) -> None:
        """End all processes; none is left when this returns."""
        if self._process is not None:
            self._stop()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self.start()
        assert self._process is not None
        return self._process

    def _stop(self) -> None:
        """The server ends itself and its workers when the connection closes."""
        process = self._running()
        self._connection.close()
        self._control.close()
        try:
            process.wait(_LAST_WISHES_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._process = None
