"""The process that the measuring workers are forked from.

Importing NumPy and LLVM takes a good part of a second, forking a process that has done so takes milliseconds: this one
imports them once, so that a worker that was lost is replaced at once. It has a single thread and neither compiles nor
runs a candidate, so that no lock is held when it forks. The tuner's own process could not promise that.

It serves until its parent goes away, in whichever way that ends, and takes all workers with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import signal
import socket
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

from tilewright.measure.local import builder_process, runner_process
from tilewright.measure.local.messages import BUILDER, RUNNER, Death, Setup
from tilewright.measure.local.reference import ReferenceShelf, ReferenceStore
from tilewright.target import Target

_PR_SET_PDEATHSIG = 1
# The socket closes with the parent, unless a process that the parent forked holds it too: then the parent's id tells.
_LOOK_FOR_PARENT_S = 1.0
_STDERR = 2
_LAST_WORDS_BYTES = 2000


def main(control_fd: int, parent_pid: int) -> None:
    """Serve requests on the socket `control_fd`, after a first message with the target.

    ("fork", (role, setup)) -> pid and a socket, ("end", pid) -> how it died.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with (
        contextlib.suppress(EOFError, ConnectionError),
        socket.socket(fileno=control_fd) as control,
        Connection(os.dup(control_fd)) as connection,
    ):
        server = _ForkServer(control, connection, connection.recv())
        try:
            server.serve(parent_pid)
        finally:
            server.end_all()


class _ForkServer:
    def __init__(self, control: socket.socket, connection: Connection, target: Target) -> None:
        self._control = control
        self._connection = connection
        self._target = target
        self._references = ReferenceShelf()
        self._stderr: dict[int, int] = {}  # what each worker says there, by its pid

    def serve(self, parent_pid: int) -> None:
        builder_process.warm_up(self._target)
        gc.freeze()  # what is here now stays, and is not copied to each worker by looking at it
        while True:
            if not self._connection.poll(_LOOK_FOR_PARENT_S):
                if os.getppid() != parent_pid:
                    return
                continue
            request, argument = self._connection.recv()
            if request == "fork":
                self._fork(*argument)
            else:
                self._connection.send(self._end(argument))

    def end_all(self) -> None:
        for pid in list(self._stderr):
            self._end(pid)

    def _fork(self, role: str, setup: Setup) -> None:
        ours, theirs = socket.socketpair()
        server_pid = os.getpid()
        stderr = os.memfd_create("tilewright-stderr")
        reference = self._references.of(setup.task)
        pid = os.fork()
        if pid == 0:
            os.dup2(stderr, _STDERR)
            ours.close()
            self._control.close()
            self._connection.close()
            _work(role, setup, Connection(theirs.detach()), reference, server_pid)
        self._stderr[pid] = stderr
        theirs.close()
        self._connection.send(pid)
        socket.send_fds(self._control, [b"s"], [ours.fileno()])
        ours.close()

    def _end(self, pid: int) -> Death:
        """Kill a worker if it still lives."""
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        stderr = self._stderr.pop(pid)
        size = os.fstat(stderr).st_size
        last_words = os.pread(stderr, _LAST_WORDS_BYTES, max(0, size - _LAST_WORDS_BYTES))
        os.close(stderr)
        return Death(os.waitstatus_to_exitcode(status), last_words.decode(errors="replace").strip())


def _work(role: str, setup: Setup, connection: Connection, reference: ReferenceStore, server_pid: int) -> NoReturn:
    exit_code = 1
    try:
        _die_with_parent(server_pid)
        _prefer_as_victim()
        if role == BUILDER:
            builder_process.serve(connection, setup)
        elif role == RUNNER:
            runner_process.serve(connection, setup, reference)
        exit_code = 0
    finally:
        os._exit(exit_code)  # the stack below belongs to the server


def _die_with_parent(parent_pid: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def _prefer_as_victim() -> None:
    """A crash leaves no core file, and when memory runs out it is a worker that is killed, not the tuner."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
