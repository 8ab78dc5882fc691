"""Folders as Linux has them in /sys and /proc, to be read instead of those of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Index(NamedTuple):
    """One cache, as the files of a folder in /sys describe it."""

    level: str
    kind: str
    size: str
    line: str = "128"


def write_tree(root: Path, indices: Sequence[Index], processor: str = "") -> None:
    """Write a machine with these caches, of a processor with this name, to the folder `root`."""
    for number, index in enumerate(indices):
        folder = root / f"sys/devices/system/cpu/cpu0/cache/index{number}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in zip(("level", "type", "size", "coherency_line_size"), index, strict=True):
            (folder / name).write_text(text + "\n")
    if processor:
        (root / "proc").mkdir(exist_ok=True)
        (root / "proc/cpuinfo").write_text(f"processor\t: 0\nmodel name\t: {processor}\nflags\t\t: fpu\n")
