"""`tilewright bench MODEL`: the network and the libraries in one table, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.tiny_model import NUM_TASKS, write_tiny_model
from tilewright import peers
from tilewright.cli import main

SHORT = ["--threads", "1", "--rounds", "1"]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path)
    return "tiny.onnx"


def test_the_network_alone(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", model, *SHORT]) == 0
    first, header, row = capsys.readouterr().out.splitlines()
    assert first == f"tiny.onnx on 1 threads: {NUM_TASKS} tasks, 0 tuned and {NUM_TASKS} with the default program"
    assert header.split() == ["latency", "time", "by", "ours"]
    assert (row.split()[0], row.split()[-1]) == ("tilewright", "1.00")


def test_next_to_onnxruntime_as_json(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", model, "--against", "onnxruntime", "--format", "json", *SHORT]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in printed["rows"]] == ["tilewright", "onnxruntime"]
    assert all(row["latency_ms"] > 0 for row in printed["rows"])
    assert printed["not_run"] == {}


def test_a_compiled_model_with_what_it_was_made_of(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", model, "--threads", "1"]) == 0
    assert main(["bench", "tiny.tw", "--against", "onnxruntime", "--model", model, *SHORT]) == 0
    printed = capsys.readouterr().out
    assert "tiny.tw on 1 threads: as it was compiled" in printed
    assert "\nonnxruntime" in printed


def test_a_library_that_is_not_there_says_why(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(library: str, *_: object) -> object:
        raise peers.PeerError(f"{library} is not installed")

    monkeypatch.setattr(peers, "network_peer", missing)
    assert main(["bench", model, "--against", "openvino", *SHORT]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "openvino is not installed"


@pytest.mark.parametrize("library", peers.NETWORK_LIBRARIES)
def test_a_library_that_cannot_load_the_model_says_why(
    library: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None of them trains, and ours does so on the reference evaluator."""
    text = """<ir_version: 8, opset_import: ["" : 20, "ai.onnx.preview.training" : 1]>
    step (float r, int64 t, float[3] x, float[3] g, float[3] h) => (float[3] y, float[3] k)
    { y, k = ai.onnx.preview.training.Adagrad <epsilon = 0.5, norm_coefficient = 0.1> (r, t, x, g, h) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "step.onnx")
    assert main(["bench", "step.onnx", "--against", library, *SHORT]) == 0
    *_, row, reason = capsys.readouterr().out.splitlines()
    assert row.split()[0] == "tilewright"
    assert reason.startswith((f"{library} cannot load this model: ", f"{library} is not given this model: "))
    assert "Adagrad" in reason


def test_a_library_that_computes_something_else_is_an_error(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Wrong:
        name = "torch"

        def run(self, inputs: object) -> list[object]:
            return [np.ones((1, 4), np.float32)]

    monkeypatch.setattr(peers, "network_peer", lambda *_: Wrong())
    assert main(["bench", model, "--against", "torch", *SHORT]) == 1
    printed = capsys.readouterr()
    assert "tilewright and torch must compute the same" in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tiny.onnx", "--against", "numpy"], "is one of onnxruntime, openvino, torch, got 'numpy'"),
        (["tiny.tw", "--against", "torch"], "with --model model.onnx"),
        (["tiny.onnx", "--model", "tiny.onnx"], "--model is for compiled models"),
        (["gmm:8x8x8", "--model", "tiny.onnx"], "--model is for models"),
        (["missing.onnx"], "there is no such file"),
        (["missing.tw"], "there is no such file"),
    ],
)
def test_wrong_usage_exits_with_2(
    arguments: list[str], message: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments, *SHORT]) == 2
    assert message in capsys.readouterr().err
