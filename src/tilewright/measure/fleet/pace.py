"""Whether a machine is as fast as it was: others' work on its cores, or a clock that was turned down."""

from __future__ import annotations

import time
from pathlib import Path

_WAITED_MORE = 7.0  # times the processor time of a program: then others made it eight times slower
_LEAST_WAIT_S = 0.01
_SLOWER = 3.0
_LOOK_EVERY_S = 5.0
_WORK = range(10_000)
_TRIES = 5


class Contention:
    """How long the threads of a process waited for a core while it ran, by what the kernel counts."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._before = _waited_and_ran_s(pid)

    def reason(self) -> str:
        """Why what was timed since does not count; empty if it does, or nobody knows."""
        now = _waited_and_ran_s(self._pid)
        if self._before is None or now is None:
            return ""
        waited_s, ran_s = now[0] - self._before[0], now[1] - self._before[1]
        if waited_s < _LEAST_WAIT_S or waited_s < _WAITED_MORE * ran_s:
            return ""
        share = waited_s / (waited_s + ran_s)
        return f"other work had its cores for {100 * share:.0f} % of the time"


class Clock:
    """A loop that always takes the same time, unless the core is slower than it was."""

    def __init__(self) -> None:
        self.best_s = _loop_s()
        self._next_s = 0.0

    def reason(self) -> str:
        """Looks every few seconds; empty if all is well."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return ""
        seconds = _loop_s()
        self.best_s = min(self.best_s, seconds)
        if seconds > _SLOWER * self.best_s:
            return f"its core is {seconds / self.best_s:.1f} times slower than it was"
        self._next_s = now_s + _LOOK_EVERY_S
        return ""


def _loop_s() -> float:
    best_s = float("inf")
    for _ in range(_TRIES):
        started_s = time.perf_counter()
        sum(_WORK)
        best_s = min(best_s, time.perf_counter() - started_s)
    return best_s


def _waited_and_ran_s(pid: int | None) -> tuple[float, float] | None:
    """Of all threads of a process; None where the kernel does not say, or the process is gone."""
    waited = ran = 0
    try:
        for path in Path(f"/proc/{pid}/task").iterdir():
            on_core, in_queue, _ = (path / "schedstat").read_text().split()
            ran += int(on_core)
            waited += int(in_queue)
    except (OSError, ValueError):
        return None
    return waited / 1e9, ran / 1e9
