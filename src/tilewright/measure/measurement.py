"""What one trial gave: a status, and a latency if the candidate ran and answered rightly."""

from __future__ import annotations

from dataclasses import dataclass

OK = "OK"
INVALID = "INVALID"  # the trace is no legal schedule of the task
BUILD_ERROR = "BUILD_ERROR"
BUILD_TIMEOUT = "BUILD_TIMEOUT"
RUN_ERROR = "RUN_ERROR"
RUN_TIMEOUT = "RUN_TIMEOUT"
WRONG_RESULT = "WRONG_RESULT"

STATUSES = (OK, INVALID, BUILD_ERROR, BUILD_TIMEOUT, RUN_ERROR, RUN_TIMEOUT, WRONG_RESULT)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one trial.

    `latency_s` is the median of `runs_s`, seconds a call; it is None unless the status is OK. `error` says why it is
    not. `build_s` is the time the compiler took.
    """

    status: str
    latency_s: float | None = None
    runs_s: tuple[float, ...] = ()
    error: str = ""
    build_s: float = 0.0
