"""`tilewright dataset collect`: what it measures, prints and refuses, and how it ends early."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.tiny_model import NUM_TASKS, write_tiny_model
from tilewright.cli import main
from tilewright.cli.dataset_collect import status
from tilewright.records.dataset import DatasetFolder, read_folder
from tilewright.tuning.collection import CollectProgress
from tilewright.workloads import parse

COMMAND = ["dataset", "collect", "tiny.onnx", "gmm:16x16x16", "--programs", "4", "--threads", "1", "-o", "data"]


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path)


def test_programs_are_measured_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--again", "0.5"]) == 0
    out, err = capsys.readouterr()
    num = 4 * (NUM_TASKS + 1)
    assert "programs: " in out
    assert "failures: " in out
    assert f"collecting {NUM_TASKS + 1} tasks of 2 networks and workloads" in err
    assert "programs/s" not in out
    dataset = read_folder("data")
    assert NUM_TASKS + 1 <= len(dataset) <= num
    assert dataset.num_valid >= NUM_TASKS
    names = {network.name: network.is_workload for network in DatasetFolder("data").networks()}
    assert names == {"tiny": False, "gmm:16x16x16": True}
    assert main([*COMMAND, "--again", "0.5"]) == 0
    assert "measured: 0 " in capsys.readouterr().out


def test_another_target_adds_a_device() -> None:
    short = [*COMMAND[:2], *COMMAND[3:]]
    assert main(short) == 0
    assert main([*short, "--target", "llvm -mcpu=nehalem", "--device", "old"]) == 0
    assert "old" in {device.name for device in DatasetFolder("data").devices()}
    assert len(read_folder("data")) == 8


def test_sizes_of_a_network_of_the_zoo(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["dataset", "collect", "zoo:dcgan", "--shape", "input=2x100x1x1", "--budget", "0.001s", "-o", "data"]
    assert main([*command, "--shape", "input=2x100x1x1"]) == 1
    assert "the time was up before that; give more --budget" in capsys.readouterr().err
    (network,) = DatasetFolder("data").networks()
    assert network.title == "dcgan[input=2x100x1x1]"
    tasks = [DatasetFolder("data").task(digest) for digest in network.weights]
    assert 2 in {task.outputs[0].shape[0] for task in tasks}


def test_an_interrupt_keeps_what_was_measured() -> None:
    command = [sys.executable, "-m", "tilewright", *COMMAND[:2], "gmm:16x16x16", "--programs", "500", "-o", "data"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline_s = time.monotonic() + 60
    while not list(Path("data").glob("devices/*/*.npz")) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    err = _interrupted(process)
    assert process.returncode == 130
    assert "the same command goes on" in err
    assert 1 <= len(read_folder("data")) < 500


def _interrupted(process: subprocess.Popen[str]) -> str:
    """What it says at its end. Python drops an interrupt that comes inside a destructor: then it gets another."""
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=5)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=60)[1]


def test_a_killed_run_goes_on() -> None:
    command = [sys.executable, "-m", "tilewright", *COMMAND[:2], "gmm:16x16x16", "--programs", "500", "-o", "data"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    deadline_s = time.monotonic() + 60
    while not list(Path("data").glob("devices/*/*.npz")) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    process.kill()
    process.wait()
    before = len(read_folder("data"))
    assert before >= 1
    assert main([*COMMAND[:2], "gmm:16x16x16", "--programs", str(before + 3), "-o", "data"]) == 0
    assert len(read_folder("data")) == before + 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--programs", "0"], "--programs is 0"),
        (["--programs", "1000000000"], "it must be a whole number from 1 to 100000"),
        (["--again", "2"], "--again is 2"),
        (["--seed", "-1"], "--seed is -1"),
        (["--budget", "long"], "--budget is 'long'"),
        (["--budget", "0.0s"], "--budget is '0.0s'; it must be above 0"),
        (["--context", "tepid"], "the context is 'tepid'"),
        (["--device", "a b"], "the device is called 'a b'"),
        (["--threads", "0"], "--threads"),
        (["-o", "none/data"], "there is no folder"),
        (["-o", "tiny.onnx"], "which is a file; name a folder"),
        (["-o", "."], "something else in it"),
        (["--shape", "input=8"], "input"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_measured(
    changed: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMAND, *changed]) in (1, 2)
    assert message in capsys.readouterr().err
    assert not Path("data").exists()


@pytest.mark.parametrize("source", ["none.onnx", "zoo:none", "model.tw", "whatever"])
def test_an_unknown_network_or_workload_is_refused(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND[:2], source, "-o", "data"]) == 2
    assert source.removeprefix("zoo:") in capsys.readouterr().err


def test_two_networks_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    assert main([*COMMAND[:3], write_tiny_model(tmp_path / "other"), "-o", "data"]) == 2
    assert "two of the networks are called tiny" in capsys.readouterr().err


def test_a_network_and_a_workload_in_two_spellings_are_one(capsys: pytest.CaptureFixture[str]) -> None:
    twice = ["./tiny.onnx", "tiny.onnx", "gmm:16x16x16", "gmm:016x16x16", "--programs", "1", "--threads", "1"]
    assert main([*COMMAND[:2], *twice, "-o", "data"]) == 0
    assert f"collecting {NUM_TASKS + 1} tasks of 2 networks and workloads" in capsys.readouterr().err
    assert [network.name for network in DatasetFolder("data").networks()] == ["gmm:16x16x16", "tiny"]


def test_two_collectors_do_not_meet(capsys: pytest.CaptureFixture[str]) -> None:
    with DatasetFolder.create("data").writing():
        assert main(COMMAND) == 2
    assert "another process is writing" in capsys.readouterr().err


def test_the_display_says_how_fast_how_far_and_how_long() -> None:
    progress = CollectProgress(parse("gmm:16x16x16"), 10.0, 160, 760, 60, {"OK": 57, "RUN_TIMEOUT": 3})
    assert status(progress) == ("   10.0 s  programs 160/760  6.0/s  failures: RUN_TIMEOUT 3  gmm_16x16x16  left 1m40s")
