"""Interrupts that Python drops: one that comes inside a destructor is reported as ignored, and the work goes on.

While interrupts are remembered, a loop that may run for long asks between two steps whether there was one.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_seen: list[int] = []


@contextmanager
def remembered() -> Iterator[None]:
    """Remember interrupts; not where somebody else handles them, or in a thread that gets none."""
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _seen.clear()
    signal.signal(signal.SIGINT, _remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _seen.clear()


def check() -> None:
    """KeyboardInterrupt if there was one since the last check, whether it was dropped or not."""
    if _seen:
        _seen.clear()
        raise KeyboardInterrupt


def _remember(number: int, frame: FrameType | None) -> None:
    _seen.append(number)
    signal.default_int_handler(number, frame)
