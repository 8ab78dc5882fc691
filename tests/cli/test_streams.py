"""What becomes of the program where nobody reads its output, the disk is full, or streams are closed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.records.samples import record
from tilewright.cli import main
from tilewright.records import RecordLog

COMMANDS = ["records best r.jsonl", "records export r.jsonl", "target", "tune --help"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    RecordLog(tmp_path / "r.jsonl").extend([record(task=f"task{n}") for n in range(50)])
    return tmp_path


def run(command: str, redirection: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in a shell whose status is that of tilewright, not of what reads its output."""
    line = f"{sys.executable} -m tilewright {command} {redirection}; exit ${{PIPESTATUS[0]}}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_that_nobody_reads_ends_the_program_without_a_word(command: str, folder: Path) -> None:
    done = run(command, "| exec 0<&-", folder)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_reader_that_has_enough_ends_the_program_without_a_word(folder: Path) -> None:
    RecordLog(folder / "r.jsonl").extend([record(task=f"more{n}") for n in range(2000)])
    done = run("records best r.jsonl", "| head -n 1", folder)
    assert (done.returncode, done.stderr) == (141, "")
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_under_stdout_is_one_line_of_error(command: str, folder: Path) -> None:
    done = run(command, "> /dev/full", folder)
    assert done.returncode == 1
    assert done.stderr == "tilewright: error: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("redirection", ["2>&-", "2> /dev/full", ">&-", ">&- 2>&-", "2>&1 >&- | exec 0<&-"])
def test_streams_that_are_closed_or_full_do_not_matter_where_nothing_is_said(redirection: str, folder: Path) -> None:
    done = run("records list r.jsonl", redirection, folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("task0" in done.stdout) == (">&-" not in redirection.replace("2>&-", ""))


@pytest.mark.parametrize("redirection", ["2>&-", "2> /dev/full", "> /dev/full 2>&1"])
def test_an_error_that_cannot_be_said_is_in_the_exit_code(redirection: str, folder: Path) -> None:
    assert run("records list missing.jsonl", redirection, folder).returncode == 1


def test_text_that_stdout_has_no_letters_for_is_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = RecordLog(tmp_path / "r.jsonl")
    log.append(record(workload="gr\u00f6\u00dfe \ud800"))
    assert main(["records", "list", str(log.path)]) == 0
    assert "gr\u00f6\u00dfe \\ud800" in capsys.readouterr().out
