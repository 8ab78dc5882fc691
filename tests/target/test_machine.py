"""Reading this machine: what Linux says in the folders /sys and /proc, whatever that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.target.trees import Index, write_tree
from tilewright.target import Caches, Target
from tilewright.target.machine import read_caches, read_machine, read_name

DEFAULT = Caches(1 << 10, 2 << 10, 3 << 10, 32)
GOOD = [Index("1", "Data", "48K"), Index("1", "Instruction", "32K"), Index("2", "Unified", "2M")]


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([], DEFAULT),
        (GOOD, Caches(48 << 10, 2 << 20, 0, 128)),
        ([*GOOD, Index("3", "Unified", "33792K")], Caches(48 << 10, 2 << 20, 33 << 20, 128)),
        ([*GOOD, Index("4", "Unified", "128M")], Caches(48 << 10, 2 << 20, 0, 128)),
        ([Index("2", "Unified", "2M")], DEFAULT),
        ([*GOOD, Index("3", "Unified", "many")], Caches(48 << 10, 2 << 20, 0, 128)),
        ([Index("one", "Data", "48K")], DEFAULT),
        ([Index("1", "Data", "48K", line="48")], DEFAULT),
        ([Index("1", "Data", "48K", line="")], DEFAULT),
        ([Index("1", "Data", "9999999G")], DEFAULT),
    ],
)
def test_caches_are_what_linux_says_if_that_can_be(indices: list[Index], expected: Caches, tmp_path: Path) -> None:
    write_tree(tmp_path, indices)
    assert read_caches(tmp_path, DEFAULT) == expected


def test_caches_without_a_size_are_the_default(tmp_path: Path) -> None:
    write_tree(tmp_path, GOOD)
    next(tmp_path.rglob("index0/size")).unlink()
    assert read_caches(tmp_path, DEFAULT) == DEFAULT


def test_the_name_of_the_processor_is_its_makers(tmp_path: Path) -> None:
    assert read_name(tmp_path / "nothing") == ""
    write_tree(tmp_path, GOOD, "Fast  Processor\t7000")
    assert read_name(tmp_path) == "Fast Processor 7000"
    (tmp_path / "other" / "proc").mkdir(parents=True)
    (tmp_path / "other" / "proc/cpuinfo").write_bytes(b"\xff\xfe: no\nprocessor : 0\n")
    assert read_name(tmp_path / "other") == ""


def test_native_is_what_was_read(tmp_path: Path) -> None:
    write_tree(tmp_path, GOOD)
    machine = read_machine(tmp_path)
    assert machine.caches == Caches(48 << 10, 2 << 20, 0, 128)
    assert (machine.arch, machine.cpu) == (Target.native().arch, Target.native().cpu)
