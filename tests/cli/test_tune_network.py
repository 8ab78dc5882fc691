"""`tilewright tune MODEL`: what it writes and prints, how it resumes, and what is refused."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.tiny_model import NUM_TASKS, write_tiny_model
from tilewright.cli import main, tune_network
from tilewright.deploy import choice
from tilewright.deploy.artifact import load
from tilewright.records import read_records
from tilewright.runtime import Timing
from tilewright.tuning.task_scheduler import NetworkProgress

TRIALS = 2 * NUM_TASKS
COMMAND = ["tune", "tiny.onnx", "--trials", str(TRIALS), "--threads", "1"]


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path)
    measure_as(monkeypatch, untuned_s=2e-3, tuned_s=1e-3)


def measure_as(monkeypatch: pytest.MonkeyPatch, untuned_s: float, tuned_s: float) -> None:
    """What the comparison at the end finds, whatever this machine is busy with."""
    found = choice.Choice(Timing(1, (untuned_s,)), Timing(1, (tuned_s,)))
    monkeypatch.setattr(choice, "compare", lambda *_: found)


def test_the_tuned_model_is_written_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "-o", "tuned.tw"]) == 0
    printed = capsys.readouterr()
    lines = dict(line.split(": ", 1) for line in printed.out.splitlines())
    assert list(lines) == ["before", "after", "trials", "records", "artifact", "use it"]
    assert f"{NUM_TASKS} tasks, {NUM_TASKS} tuned and 0 with the default program" in lines["trials"]
    assert lines["records"] == "tiny.jsonl"
    assert lines["use it"] == "tilewright run tuned.tw --input x.npz --output y.npz"
    assert f"trial {TRIALS}/{TRIALS}" in printed.err
    assert {record.workload.split("/")[0] for record in read_records("tiny.jsonl")} == {"tiny"}
    assert len(load("tuned.tw").kernels) == NUM_TASKS
    assert main(["run", "tuned.tw", "--random"]) == 0


@pytest.mark.parametrize(("arguments", "context"), [([], "cold-"), (["--context", "warm"], "warm")])
def test_weights_are_cold_unless_the_context_says_otherwise(
    arguments: list[str], context: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMAND, *arguments]) == 0
    assert f"{NUM_TASKS} tuned and 0 with the default program" in capsys.readouterr().out, "their programs are used"
    found = {record.workload: record.context for record in read_records("tiny.jsonl")}
    assert len(found) == NUM_TASKS
    without_weights = {name for name, used in found.items() if used == "warm" and "pool" in name}
    assert all(used.startswith(context) for name, used in found.items() if name not in without_weights)
    assert all(used.startswith(context) for name, used in found.items() if "onv" in name or "emm" in name)


def test_a_tuned_network_that_is_slower_is_not_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure_as(monkeypatch, untuned_s=1e-3, tuned_s=1.05e-3)
    assert main([*COMMAND, "-o", "tuned.tw"]) == 0
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert list(lines) == ["before", "after", "trials", "kept", "records", "artifact", "use it"]
    assert lines["before"] == "1 ms with zero trials, measured"
    assert lines["after"].startswith("1.05 ms, measured in turns; 0.95 times as fast")
    assert lines["kept"] == "the programs with zero trials, which are faster in the network; tune it for longer"
    assert main(["compile", "tiny.onnx", "--threads", "1", "-o", "untuned.tw"]) == 0
    assert Path("tuned.tw").read_bytes() == Path("untuned.tw").read_bytes()


def test_without_a_gain_the_next_command_leaves_the_records_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure_as(monkeypatch, untuned_s=1e-3, tuned_s=1.05e-3)
    assert main(COMMAND) == 0
    assert "use it: tilewright compile tiny.onnx --threads 1 -o tiny.tw" in capsys.readouterr().out


def test_an_interrupt_is_saved_and_the_same_command_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show = tune_network.Display.show

    def interrupted(display: tune_network.Display, progress: NetworkProgress) -> None:
        if progress.num_trials == TRIALS - 1:
            raise KeyboardInterrupt
        show(display, progress)

    monkeypatch.setattr(tune_network.Display, "show", interrupted)
    assert main(COMMAND) == 130
    printed = capsys.readouterr()
    assert "every finished trial is in tiny.jsonl: the same command goes on from there" in printed.err
    assert printed.out == ""
    before = list(read_records("tiny.jsonl"))
    assert before
    monkeypatch.setattr(tune_network.Display, "show", show)
    assert main(COMMAND) == 0
    assert list(read_records("tiny.jsonl"))[: len(before)] == before
    assert "use it: tilewright compile tiny.onnx --records tiny.jsonl --threads 1 -o tiny.tw" in capsys.readouterr().out


def start_tuner(trials: int) -> subprocess.Popen[str]:
    """The command in a process of its own; interrupts work there even if they are ignored here."""
    command = ["env", "--default-signal=INT", sys.executable, "-m", "tilewright", *COMMAND, "-o", "my model.tw"]
    command[command.index("--trials") + 1] = str(trials)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_tasks(num_tasks: int) -> None:
    """Until the records tell of so many tasks."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        if Path("tiny.jsonl").exists() and len({record.task for record in read_records("tiny.jsonl")}) >= num_tasks:
            return
        time.sleep(0.02)
    pytest.fail(f"no records of {num_tasks} tasks within a minute")


def check_command_of_what_was_found(errors: str) -> None:
    """The last line has a command that writes the model that was asked for."""
    *_, last = errors.splitlines()
    _, command = last.split("the model with what was found so far: tilewright ")
    assert command == "compile tiny.onnx --records tiny.jsonl --threads 1 -o 'my model.tw'"
    assert not Path("my model.tw").exists()
    assert main(shlex.split(command)) == 0
    assert len(load("my model.tw").kernels) == NUM_TASKS


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_tuner_that_is_stopped_goes_on_with_the_next_task_and_measures_nothing_again(stop: signal.Signals) -> None:
    tuner = start_tuner(600)
    wait_for_tasks(2)
    tuner.send_signal(stop)
    _, errors = tuner.communicate(timeout=60)
    if stop == signal.SIGINT:
        assert tuner.returncode == 130
        assert "Traceback" not in errors
        assert "every finished trial is in tiny.jsonl: the same command goes on from there" in errors
        check_command_of_what_was_found(errors)
    before = list(read_records("tiny.jsonl"))
    num_trials = len(before) + 24
    resumed = start_tuner(num_trials)
    output, errors = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, errors
    assert f"{NUM_TASKS} tasks, {NUM_TASKS} tuned and 0 with the default program" in output
    after = list(read_records("tiny.jsonl"))
    assert after[: len(before)] == before
    trials = {(record.task, record.trace) for record in after[:num_trials]}
    assert len(trials) == num_trials, "each is another program"
    finalists = {(record.task, record.trace) for record in after[num_trials:]}
    assert finalists <= trials, "only these are measured once more, against each other"
    assert len({record.task for record in after}) == NUM_TASKS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tiny.onnx", "--trials", "0"], "--trials is 0"),
        (["tiny.onnx", "--budget", "5"], "--budget is '5'"),
        (["tiny.onnx", "--objective", "f2"], "need each other"),
        (["tiny.onnx", "--required-ms", "1"], "need each other"),
        (["tiny.onnx", "-o", "no/such/tiny.tw"], "there is no folder"),
        (["tiny.tw"], "is compiled already"),
        (["tiny.onnx", "--context", "cool"], "the context is 'cool'; it must be 'warm', or 'cold-' and a size"),
        (["gmm:8x8x8", "--context", "cold-0"], "the context is 'cold-0'"),
        (["missing.onnx"], "there is no such file"),
        (["gmm:8x8x8", "-o", "gmm.tw"], "--output is for models"),
    ],
)
def test_wrong_usage_exits_with_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.onnx"]
