"""How often Python looks for reference cycles while a network is imported: many objects stay, and few are in cycles."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# New objects between two searches. The default of 700 costs a fifth of the time, 50,000 a tenth.
_NUM_OBJECTS = 500_000

_lock = threading.Lock()
_num_inside = 0
_before = gc.get_threshold()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let the collector look for cycles less often; as often as before when the last of several threads has left."""
    global _num_inside, _before
    with _lock:
        if not _num_inside:
            _before = gc.get_threshold()
            if _before[0]:  # 0 switches it off
                gc.set_threshold(max(_before[0], _NUM_OBJECTS), *_before[1:])
        _num_inside += 1
    try:
        yield
    finally:
        with _lock:
            _num_inside -= 1
            if not _num_inside:
                gc.set_threshold(*_before)
