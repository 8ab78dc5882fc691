"""What was measured of a core: where the file is, when it counts, and files that are none."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tilewright.errors import UsageError
from tilewright.target import (
    CALIBRATION_VARIABLE,
    Calibration,
    Target,
    calibration_path,
    read_calibration,
    read_machine,
    write_calibration,
)

NUMBERS = {"clock_hz": 2.5e9, "l2_bytes_per_cycle": 41.5, "region_cycles": 3300.0}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this user's calibration is."""
    file = tmp_path / "calibration.json"
    monkeypatch.setenv(CALIBRATION_VARIABLE, str(file))
    return file


def of_this_machine(**changes: Any) -> Calibration:
    native = Calibration(read_machine().processor, str(Target.native().uncalibrated), NUMBERS)
    return replace(native, **changes)


def content() -> dict[str, Any]:
    return {"format": "tilewright calibration", "version": 1, "processor": "p", "target": "llvm", "core": dict(NUMBERS)}


def test_native_takes_up_what_was_measured_of_it(path: Path) -> None:
    plain = Target.native()
    assert plain.core == plain.uncalibrated.core
    write_calibration(path, of_this_machine())
    target = Target.native()
    assert target.core.changes_from(plain.core) == NUMBERS
    assert target != plain
    assert target.uncalibrated == plain
    assert target == Target.parse("llvm -mcpu=native") == Target.parse("llvm")


def test_the_string_says_what_was_measured_wherever_it_is_read(path: Path) -> None:
    write_calibration(path, of_this_machine())
    target = Target.native()
    path.unlink()
    assert Target.parse(str(target)) == target
    assert str(target).endswith(" -core=clock_hz:2.5e+09,l2_bytes_per_cycle:41.5,region_cycles:3300")


def test_other_cores_and_numbers_of_its_own_leave_the_rest_calibrated(path: Path) -> None:
    write_calibration(path, of_this_machine())
    target = Target.parse("llvm -mcpu=native -num-cores=77 -core=region_cycles:5,window:9")
    assert target.core.changes_from(target.uncalibrated.core) == NUMBERS | {"region_cycles": 5.0, "window": 9.0}


@pytest.mark.parametrize(
    "changes",
    [
        {"processor": "Another Processor 9000"},
        {"target": "aarch64"},
        {"target": "llvm"},
        {"target": "no target"},
        {"target": str(Target.native()) + " -vector-bits=64"},
        {"target": str(Target.native()).replace("-l2=", "-l2=1")},
    ],
)
def test_what_was_measured_of_another_processor_is_left_alone(changes: dict[str, str], path: Path) -> None:
    write_calibration(path, of_this_machine(**changes))
    assert Target.native().core == Target.native().uncalibrated.core


def test_shorter_vectors_are_not_those_that_were_measured(path: Path) -> None:
    write_calibration(path, of_this_machine())
    target = Target.parse("llvm -mcpu=native -vector-bits=64")
    assert target.core == target.uncalibrated.core


def test_a_named_processor_never_reads_the_file(path: Path) -> None:
    path.write_text("broken")
    native = Target.parse(f"llvm -mcpu={Target.parse('haswell').cpu} -num-cores=2")
    assert native.core == native.uncalibrated.core


BROKEN: list[tuple[str, bytes, str]] = [
    ("empty", b"", "Expecting value"),
    ("cut off", json.dumps(content()).encode()[:-20], "Expecting|Unterminated"),
    ("no text", b"\xff\xfe\x00", "."),
    ("deep", b"[" * 60_000, "."),
    ("long", b" " * 70_000, "more than 65536 bytes"),
    ("a list", b"[]", "its format is not"),
    ("another format", json.dumps(content() | {"format": "x"}).encode(), "its format is not"),
    ("a later version", json.dumps(content() | {"version": 2}).encode(), "its version is 2, and this program reads 1"),
    ("no processor", json.dumps(content() | {"processor": None}).encode(), "'processor' is missing"),
    ("no numbers", json.dumps(content() | {"core": [1]}).encode(), "'core' is missing or of the wrong kind"),
    ("an unknown number", json.dumps(content() | {"core": {"speed": 1}}).encode(), "no number 'speed'"),
    ("a negative number", json.dumps(content() | {"core": {"window": -1}}).encode(), "window of a core is a number"),
    ("no number", json.dumps(content() | {"core": {"window": float("nan")}}).encode(), "window of a core"),
    ("a text", json.dumps(content() | {"core": {"window": "1"}}).encode(), "window of a core"),
    ("a huge number", b'{"format": "tilewright calibration", "version": ' + b"9" * 5000 + b"}", "."),
]


@pytest.mark.parametrize(("data", "reason"), [pytest.param(d, r, id=name) for name, d, r in BROKEN])
def test_a_broken_file_is_named_and_ignored(data: bytes, reason: str, path: Path) -> None:
    path.write_bytes(data)
    with pytest.raises(UsageError, match=f"calibration.json is not a calibration .*{reason}.*--calibrate"):
        read_calibration(path)
    with pytest.warns(UserWarning, match="the calibration is ignored: .*calibration.json .* remove the file"):
        target = Target.native()
    assert target.core == target.uncalibrated.core


def test_a_folder_and_a_pipe_are_no_calibrations(path: Path) -> None:
    path.mkdir()
    with pytest.raises(UsageError, match="it is not a regular file"):
        read_calibration(path)
    path.rmdir()
    os.mkfifo(path)  # nobody writes to it: to open it would wait for ever
    with pytest.raises(UsageError, match="it is not a regular file"):
        read_calibration(path)


def test_no_file_is_no_calibration(path: Path) -> None:
    assert read_calibration(path) is None
    assert read_calibration(path / "under a file that is not there") is None


def test_a_file_comes_back_as_it_was_written(path: Path) -> None:
    write_calibration(path, of_this_machine())
    assert read_calibration(path) == of_this_machine()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_folders_are_made(path: Path) -> None:
    deep = path.parent / "a" / "b" / "c.json"
    write_calibration(deep, of_this_machine())
    assert stat.S_ISREG(deep.stat().st_mode)


def test_what_cannot_be_written_leaves_what_was_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_calibration(path, of_this_machine())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UsageError, match="calibration.json cannot be written: .*No space left.*--calibration"):
        write_calibration(path, of_this_machine(processor="other"))
    assert read_calibration(path) == of_this_machine()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_file_is_where_the_rules_of_xdg_put_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CALIBRATION_VARIABLE)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    assert calibration_path() == Path("/elsewhere/tilewright/calibration.json")
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_CONFIG_HOME", ignored)
        assert calibration_path() == Path("/home/somebody/.config/tilewright/calibration.json")


def test_the_environment_variable_names_the_file_or_says_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CALIBRATION_VARIABLE, "mine.json")
    assert calibration_path() == Path("mine.json")
    monkeypatch.setenv(CALIBRATION_VARIABLE, "")
    assert calibration_path() is None
