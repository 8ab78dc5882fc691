"""The command line: what it prints where, and its exit codes."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tilewright.cli import main
from tilewright.cli import target as target_command
from tilewright.errors import CodegenError, UsageError


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"tilewright {tilewright.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["no-such-subcommand"], ["target", "--no-such-option"]])
def test_wrong_usage_exits_with_2_and_says_so_on_stderr(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    printed = capsys.readouterr()
    assert stop.value.code == 2
    assert printed.out == ""
    assert "usage: tilewright" in printed.err


@pytest.mark.parametrize(
    "arguments", [["target"], ["tune", "gmm:4x4x4"], ["inspect", "gmm:4x4x4", "--asm"], ["bench", "gmm:4x4x4"]]
)
def test_a_target_that_is_none_is_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--target", "llvm -mcpu=hasswell"]) == 2
    assert "error: --target: -mcpu names" in capsys.readouterr().err


def test_target_describes_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["target"]) == 0
    printed = dict([part.strip() for part in line.split("  ", 1)] for line in capsys.readouterr().out.splitlines())
    assert list(printed)[:13] == [
        "target",
        "triple",
        "cpu",
        "cores",
        "vector width",
        "vector registers",
        "fused multiply-add",
        "L1 data cache",
        "L2 cache",
        "L3 cache",
        "cache line",
        "core",
        "calibrated",
    ]
    assert int(printed["cores"]) >= 1


def test_target_describes_another_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["target", "--target", "llvm -mcpu=nehalem"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-2:] for line in lines if line.startswith("vector width")] == [["128", "bits"]]
    assert [line.split()[-1] for line in lines if line.startswith("fused")] == ["no"]


@pytest.mark.parametrize(("error", "exit_code"), [(CodegenError("no such thing"), 1), (UsageError("no such thing"), 2)])
def test_errors_go_to_stderr_with_their_exit_code(
    error: Exception, exit_code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: argparse.Namespace) -> None:
        raise error

    monkeypatch.setattr(target_command, "run", fail)
    assert main(["target"]) == exit_code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "tilewright: error: no such thing\n"


def test_what_the_system_refuses_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: argparse.Namespace) -> None:
        raise OSError(24, "Too many open files", "model.npz")

    monkeypatch.setattr(target_command, "run", fail)
    assert main(["target"]) == 1
    message = "tilewright: error: the system refuses: [Errno 24] Too many open files: 'model.npz'; check the place"
    assert capsys.readouterr().err.startswith(message)


LONG = "x" * 256


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dataset", "info", LONG], "a dataset is a folder, and"),
        (["dataset", "import", LONG, "--device", "a", "-o", "data"], "there is no such file or folder"),
        (["dataset", "import", ".", "--device", "a", "-o", LONG], "cannot be: File name too long; name another place"),
        (["dataset", "import", ".", "--device", "a", "-o", f"{LONG}/data"], "there is no folder"),
        (["model", "train", "boosted-trees", "--data", LONG, "-o", "model.npz"], "a dataset is a folder, and"),
        (["model", "train", "boosted-trees", "--data", ".", "-o", LONG], "cannot be: File name too long"),
        (["model", "train", "boosted-trees", "--data", ".", "-o", ""], "-o is empty; name a file"),
        (["dataset", "import", ".", "--device", "a", "-o", ""], "-o is empty; name a folder"),
        (["records", "merge", "r.jsonl", "-o", ""], "-o is empty; name a file"),
        (["records", "merge", "r.jsonl", "-o", "."], "-o is ., which is a folder; name a file"),
        (["records", "merge", "r.jsonl", "-o", "/dev/full"], "which is a device or a pipe; name a file"),
        (["records", "merge", "r.jsonl", "-o", "none/r.jsonl"], "there is no folder"),
        (["compile", "zoo:dcgan", "-o", LONG], "cannot be: File name too long"),
        (["compile", "zoo:dcgan", "-o", f"{LONG}/model.tw"], "there is no folder"),
    ],
)
def test_names_that_cannot_be_are_wrong_usage(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: argparse.Namespace) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(target_command, "run", interrupt)
    assert main(["target"]) == 130


def test_an_interrupt_before_a_subcommand_runs_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tilewright.cli.program.build_parser", interrupt)
    assert main(["target"]) == 130


def test_an_interrupt_in_an_import_is_the_exit_code_and_no_signal(tmp_path: Path) -> None:
    """As in that of a module with dataclasses: those are made by evaluating a text. So it is with python -m alone."""
    (tmp_path / "interrupted.py").write_text(
        "import sys\n"
        "from tilewright.cli import main, target\n"
        "target.run = lambda _: exec('raise KeyboardInterrupt')\n"
        "sys.exit(main(['target']))\n"
    )
    done = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, check=False)
    assert done.returncode == 130


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "tilewright", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tilewright {tilewright.__version__}\n"
