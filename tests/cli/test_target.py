"""`tilewright target`: what it says of a machine, and how it measures this one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tilewright.cli import main
from tilewright.measure import calibration as measuring
from tilewright.target import CALIBRATION_VARIABLE, MEASURED, Target, read_calibration

NUMBERS = {"clock_hz": 2.5e9, "loads_per_cycle": 1.5}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the calibration of this user goes; measuring takes no time."""
    monkeypatch.setattr(measuring, "calibrate", lambda target, threads: dict(NUMBERS))
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 4.0, 4.0))
    monkeypatch.setenv(CALIBRATION_VARIABLE, str(tmp_path / "mine.json"))
    return tmp_path / "mine.json"


def described(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    assert main(["target", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    return dict((part.strip() for part in line.split("  ", 1)) for line in lines)  # type: ignore[misc]


def test_it_says_what_is_known(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = described(capsys)
    assert rows["target"] == str(Target.native())
    assert rows["calibrated"] == "no, run `tilewright target --calibrate`"
    assert set(MEASURED) < set(rows)


def test_a_calibration_is_written_and_taken_up(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert described(capsys, "--calibrate")["calibrated"] == f"yes, by {path}"
    assert described(capsys)["loads_per_cycle"] == "1.5"
    found = read_calibration(path)
    assert found is not None
    assert (found.core, found.target) == (NUMBERS, str(Target.native().uncalibrated))
    described(capsys, "--calibrate")
    assert read_calibration(path) == found, "measured again, it is still of the plain target"


def test_a_calibration_may_go_elsewhere(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = path.with_name("other.json")
    assert main(["target", "--calibrate", "--calibration", str(other)]) == 0
    assert f"set {CALIBRATION_VARIABLE}={other} to use it" in capsys.readouterr().err
    assert other.exists()
    assert not path.exists()


def test_a_busy_machine_is_measured_with_a_warning(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["target", "--calibrate"]) == 0
    assert "warning" not in capsys.readouterr().err
    monkeypatch.setattr(os, "getloadavg", lambda: (1.7, 0.1, 0.1))
    assert main(["target", "--calibrate"]) == 0
    assert "warning: 1.7 cores were busy with other work" in capsys.readouterr().err


def test_the_same_for_programs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["target", "--target", "raspberry-pi-5", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    target = Target.parse("raspberry-pi-5")
    assert Target.parse(found["target"]) == target
    assert (found["num_cores"], found["l2_bytes"], found["vector_bytes"]) == (4, 512 << 10, 16)
    assert found["core"]["mad_latency"] == target.core.mad_latency
    assert found["is_calibrated"] is False


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("riscv64", "no, since it is another machine"),
        ("x86-64" if Target.native().arch == "x86_64" else "generic", "no, since .* is of another one"),
        (str(Target.native()), "no, since .* is for `native`"),
    ],
)
def test_it_says_why_a_target_is_not_calibrated(
    text: str, reason: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described(capsys, "--calibrate")
    state = described(capsys, "--target", text)["calibrated"]
    assert state.startswith(reason.partition(".*")[0])
    assert reason.rpartition(".*")[2] in state


def test_a_broken_file_is_named(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("{")
    assert main(["target"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith(f"tilewright: warning: the calibration is ignored: {path} ")
    assert f"no, since {path} is not a calibration" in printed.out
    assert described(capsys, "--calibrate")["calibrated"] == f"yes, by {path}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--calibration", "x.json"], "give both, or neither"),
        (["--calibrate", "--target", "haswell"], "got --target 'haswell'"),
        (["--calibrate", "--calibration", "/dev/null/x.json"], "/dev/null/x.json cannot be written"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["target", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_without_a_place_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CALIBRATION_VARIABLE, "")
    assert main(["target", "--calibrate"]) == 2
    assert "name a file with --calibration" in capsys.readouterr().err
