"""Which processes a process has started, as Linux tells."""

from __future__ import annotations

from pathlib import Path


def children(pid: int) -> list[int]:
    found: list[int] = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, tasks.read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """All of them, parents first."""
    below = children(pid)
    return below + [d for child in below for d in descendants(child)]


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that has ended but was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
