"""`tilewright compile`: the file and the C library that it writes, and what it says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tiny_model import NUM_TASKS, write_tiny_model
from tilewright.cli import main
from tilewright.deploy.artifact import load
from tilewright.network import partition_network
from tilewright.records import Record, RecordLog, names_of
from tilewright.schedule import Trace
from tilewright.target import Target


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return write_tiny_model(tmp_path)


def test_the_artifact_is_named_after_the_model(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", model, "--threads", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("artifact: tiny.tw, ")
    assert f"{NUM_TASKS} tasks, 0 tuned and {NUM_TASKS} with the default program" in printed.out
    assert f"compiling: {NUM_TASKS} of {NUM_TASKS} kernels" in printed.err
    compiled = load(tmp_path / "tiny.tw")
    assert (compiled.name, compiled.threads, len(compiled.kernels)) == ("tiny", 1, NUM_TASKS)


def test_recorded_programs_are_taken_and_counted(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = partition_network(model).tasks[0].task
    log = RecordLog(tmp_path / "r.jsonl")
    log.append(Record(task.hash, "tiny", str(Target.native()), 1, Trace(), "OK", 1e-3, (1e-3,)))
    arguments = ["compile", model, "--threads", "1", "-o", "default.tw"]
    assert main(arguments) == 0
    assert main([*arguments[:-1], "tuned.tw", "--records", str(log.path)]) == 0
    assert f"1 tuned and {NUM_TASKS - 1} with the default program" in capsys.readouterr().out
    codes = [[kernel.object_code for kernel in load(name).kernels] for name in ("default.tw", "tuned.tw")]
    assert codes[0][0] != codes[1][0]
    assert codes[0][1:] == codes[1][1:]


def test_a_record_that_cannot_be_used_is_named_and_compiling_goes_on(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = partition_network(model).tasks[0].task
    illegal = Trace.from_json([{"step": "unroll", "stage": "nowhere", "arguments": ["i"]}])
    log = RecordLog(tmp_path / "r.jsonl")
    log.append(Record(task.hash, "tiny", str(Target.native()), 1, illegal, "OK", 1e-3, (1e-3,), names=names_of(task)))
    assert main(["compile", model, "--threads", "1", "--records", str(log.path)]) == 0
    printed = capsys.readouterr()
    assert f"tilewright: warning: {log.path}:2: the record is set aside, since its program cannot" in printed.err
    assert f"0 tuned and {NUM_TASKS} with the default program" in printed.out


def test_a_c_library_has_a_header_and_an_example(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", model, "--format", "c", "--threads", "1"]) == 0
    assert "library: tiny_c/libtiny.so" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "tiny_c").iterdir()} == {"libtiny.so", "tiny.h", "example.c"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.onnx"], "there is no such file"),
        (["gmm:8x8x8"], "give model.onnx, or a network as zoo:resnet18"),
        (["zoo:resnet19"], "a network of the zoo is one of"),
        (["model.tw"], "is compiled already"),
        (["tiny.onnx", "-o", "no/such/model.tw"], "there is no folder"),
        (["tiny.onnx", "-o", "."], "is a folder; name a file"),
        (["tiny.onnx", "--format", "c", "-o", "tiny.onnx"], "is a file; name a folder"),
        (["tiny.onnx", "--shape", "input"], "give a name and sizes"),
        (["tiny.onnx", "--threads", "0"], "--threads is 0"),
    ],
)
def test_wrong_usage_exits_with_2(
    arguments: list[str], message: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.onnx"]


def test_a_broken_model_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\xff\xffgarbage")
    assert main(["compile", str(path), "-o", str(tmp_path / "broken.tw")]) == 1
    assert "is not an ONNX model" in capsys.readouterr().err
