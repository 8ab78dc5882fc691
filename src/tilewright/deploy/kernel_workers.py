"""Compiling the kernels of a network on all processors.

LLVM compiles one module at a time in a process, and lowering is Python: threads would gain a tenth. So this process
compiles together with others, each of which answers one job after the other. A process that is lost costs nothing but
time: its job is done here.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import TypeAlias

from tilewright.codegen import KernelBinary, compile_schedule
from tilewright.errors import CodegenError, LoweringError, ScheduleError, TilewrightError
from tilewright.schedule import Trace
from tilewright.target import Target, default_threads, runs_here
from tilewright.te import Task

DefaultTrace: TypeAlias = Callable[[Task], Trace]

_LOGGER = logging.getLogger(__name__)

# Starting a process takes about as long as compiling this many kernels. Of fewer than twice that, two processes would
# gain nothing.
_JOBS_A_PROCESS = 4
_FEWEST_JOBS = 2 * _JOBS_A_PROCESS
# The interpreter finds what this one finds, whatever has been done to sys.path since it started.
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from tilewright.deploy.kernel_workers import serve
serve(int(sys.argv[2]))
"""


@dataclass(frozen=True, slots=True)
class KernelJob:
    """One kernel to compile: by its trace, or by the one that `default_trace` chooses.

    `last_resort` takes the place of a trace that cannot be compiled.
    """

    task: Task
    trace: Trace | DefaultTrace
    target: Target
    threads: int
    symbol_prefix: str
    last_resort: Trace | None = None


@dataclass(frozen=True, slots=True)
class CompiledJob:
    """A kernel, its twin for this machine, which packs the constants here, and what is in the place of its sums."""

    binary: KernelBinary
    packer: KernelBinary
    algorithms: tuple[str, ...]


def compile_kernels(jobs: Sequence[KernelJob], on_done: Callable[[int], None]) -> list[CompiledJob | TilewrightError]:
    """What comes of each job: its kernel, or why there is none.

    `on_done` is called with how many are done, by one thread at a time. A function that chooses
    traces runs in the other processes too if they can import it.
    """
    num_workers = min(default_threads() - 1, len(jobs) // _JOBS_A_PROCESS) if len(jobs) >= _FEWEST_JOBS else 0
    if num_workers > 0:
        jobs = [job if _is_portable(job.trace) else replace(job, trace=_chosen(job)) for job in jobs]
    work = _Work(jobs, on_done)
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(_worker_process()) for _ in range(num_workers)]
        stack.callback(work.stop)
        feeders = [threading.Thread(target=work.feed, args=(connection,), daemon=True) for connection in connections]
        for feeder in feeders:
            feeder.start()
        work.compile_here()
        for feeder in feeders:
            feeder.join()
        work.compile_here()  # what a lost process has left
    return work.results()


class _Work:
    """The jobs that wait, and what has come of the others."""

    def __init__(self, jobs: Sequence[KernelJob], on_done: Callable[[int], None]) -> None:
        self._jobs = jobs
        self._on_done = on_done
        self._waiting = deque(range(len(jobs)))
        self._done: dict[int, CompiledJob | TilewrightError] = {}
        self._lock = threading.Lock()

    def compile_here(self) -> None:
        for index in self._take():
            self._put(index, try_job(self._jobs[index]))

    def feed(self, connection: Connection) -> None:
        """Have another process compile, for as long as there are jobs and it lives."""
        for index in self._take():
            try:
                connection.send(self._jobs[index])
                answer = connection.recv()
            except (EOFError, OSError):
                self._waiting.append(index)
                return
            self._put(index, answer)

    def stop(self) -> None:
        self._waiting.clear()

    def results(self) -> list[CompiledJob | TilewrightError]:
        return [self._done[index] for index in range(len(self._jobs))]

    def _take(self) -> Iterator[int]:
        with contextlib.suppress(IndexError):
            while True:
                yield self._waiting.popleft()

    def _put(self, index: int, result: CompiledJob | TilewrightError) -> None:
        with self._lock:
            self._done[index] = result
            self._on_done(len(self._done))


def try_job(job: KernelJob) -> CompiledJob | TilewrightError:
    """Compile one kernel in this process, or tell why it cannot be."""
    try:
        return compile_job(job)
    except TilewrightError as error:
        return error


def compile_job(job: KernelJob) -> CompiledJob:
    """Compile one kernel in this process."""
    try:
        return _compiled(job, _chosen(job))
    except (ScheduleError, LoweringError, CodegenError) as error:
        if job.last_resort is None:
            raise
        _LOGGER.debug("the default program of task %s cannot be compiled: %r", job.task.name, error)
        return _compiled(job, job.last_resort)


def _compiled(job: KernelJob, trace: Trace) -> CompiledJob:
    compiled = compile_schedule(trace.apply(job.task), job.target, job.threads, job.symbol_prefix)
    binary = KernelBinary.of(compiled)
    if not binary.packs or runs_here(job.target):
        return CompiledJob(binary, binary, trace.algorithms)
    # The packed layout is the schedule's: it is the same on every target.
    here = compile_schedule(trace.apply(job.task), Target.native(), 1, job.symbol_prefix)
    return CompiledJob(binary, KernelBinary.of(here), trace.algorithms)


def serve(socket_fd: int) -> None:
    """Answer jobs until the other end closes."""
    connection = Connection(socket_fd)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            connection.send(try_job(connection.recv()))


@contextlib.contextmanager
def _worker_process() -> Iterator[Connection]:
    ours, theirs = socket.socketpair()
    with theirs:
        # A session of its own: Ctrl-C at the terminal is for this process, which ends the other.
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    connection = Connection(os.dup(ours.fileno()))
    ours.close()
    try:
        yield connection
    finally:
        process.kill()
        process.wait()
        connection.close()


def _chosen(job: KernelJob) -> Trace:
    return job.trace if isinstance(job.trace, Trace) else job.trace(job.task)


def _is_portable(trace: Trace | DefaultTrace) -> bool:
    """Whether another process can have it: this one's main program is not there."""
    if getattr(trace, "__module__", None) == "__main__":
        return False
    try:
        pickle.dumps(trace)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True
