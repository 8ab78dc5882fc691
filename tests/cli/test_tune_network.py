"""`tilewright tune MODEL`: what it writes and prints, how it resumes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tiny_model import NUM_TASKS, write_tiny_model
from tilewright.cli import main, tune_network
from tilewright.graph.artifact import load
from tilewright.records import read_records
from tilewright.task_scheduler import NetworkProgress

TRIALS = 2 * NUM_TASKS
COMMAND = ["tune", "tiny.onnx", "--trials", str(TRIALS), "--threads", "1"]


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path)


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
    assert "use it: tilewright compile tiny.onnx --records tiny.jsonl -o tiny.tw" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tiny.onnx", "--trials", "0"], "--trials is 0"),
        (["tiny.onnx", "--budget", "5"], "--budget is '5'"),
        (["tiny.onnx", "--objective", "f2"], "need each other"),
        (["tiny.onnx", "--required-ms", "1"], "need each other"),
        (["tiny.onnx", "-o", "no/such/tiny.tw"], "there is no folder"),
        (["tiny.tw"], "is compiled already"),
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
