"""Turns on the cores of a machine: what times has its cores alone, what builds shares them with others that build.

A turn is a lock on a file for each core, which ends with the process that holds it, in whichever way that ends. It is
the same for all fleets of a user, so that two of them on one machine do not disturb each other either.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tilewright.errors import UsageError

STATE_VARIABLE = "TILEWRIGHT_FLEET"
"""The environment variable that names the folder of what runs here."""


def state_folder() -> Path:
    """Where the fleet keeps what it has started on this machine; nobody else may write there."""
    given = os.environ.get(STATE_VARIABLE)
    path = Path(given) if given else Path(tempfile.gettempdir()) / f"tilewright-fleet-{os.getuid()}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise UsageError(f"{path} must be a folder that only you can write; name another one with {STATE_VARIABLE}")
    return path


@contextmanager
def alone(cores: Sequence[int]) -> Iterator[None]:
    """Wait for the cores, and have them alone."""
    with _locked(cores, fcntl.LOCK_EX):
        yield


@contextmanager
def shared(cores: Sequence[int]) -> Iterator[None]:
    """Wait until nobody has one of the cores alone."""
    with _locked(cores, fcntl.LOCK_SH):
        yield


def neighbours(cores: Sequence[int], root: Path = Path("/")) -> list[int]:
    """The cores, with those that share their last cache, as far as the system says: work there disturbs timing here."""
    found = set(cores)
    for core in cores:
        levels = sorted((root / f"sys/devices/system/cpu/cpu{core}/cache").glob("index*/shared_cpu_list"))
        with suppress(OSError, ValueError):
            found |= _listed(levels[-1].read_text()) if levels else set()
    return sorted(found)


def _listed(text: str) -> set[int]:
    """
    >>> sorted(_listed("0-1,8"))
    [0, 1, 8]
    """
    parts = [part.split("-") for part in text.strip().split(",")]
    return {core for ends in parts for core in range(int(ends[0]), int(ends[-1]) + 1)}


class Thinking:
    """A tuner's own share of the cores, while it thinks: nothing is timed on them meanwhile.

    `begin` and `end` may be called at any time. A tuner that is not heard of for a while is not waited for.
    """

    def __init__(self, cores: Sequence[int], longest_s: float = 10.0) -> None:
        self._cores = tuple(cores)
        self._longest_s = longest_s
        self._held = ExitStack()
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        self.end()
        if not self._cores:
            return
        with self._lock:
            self._held.enter_context(shared(self._cores))
            self._timer = threading.Timer(self._longest_s, self.end)
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._held.close()


@contextmanager
def _locked(cores: Sequence[int], kind: int) -> Iterator[None]:
    """In ascending order, so that two that want several never wait for each other."""
    folder = state_folder() / "cores"
    folder.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as stack:
        for core in sorted(set(cores)):
            file = stack.enter_context(open(folder / str(core), "a"))
            fcntl.flock(file, kind)
        yield
