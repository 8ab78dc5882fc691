"""`run --profile` and `inspect --profile`: the time by kernel; and what `inspect` says of a compiled model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

from tests.cli.tiny_model import INPUT_SHAPE, NUM_TASKS, write_tiny_model
from tests.deploy.test_artifact_checks import put, rewritten
from tilewright.cli import main
from tilewright.cli.profile import Row, table

MIXED = """
<ir_version: 8, opset_import: ["" : 20]>
mixed (float[3, 3] x) => (float[1] y) <int64[1] zero = {0}>
{ a = Relu(x)  b = Det(a)  c = Unsqueeze(b, zero)  y = Exp(c) }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With tiny.onnx and tiny.tw, and with mixed.onnx and mixed.tw, which has a node without a kernel."""
    path = tmp_path_factory.mktemp("models")
    mixed = path / "mixed.onnx"
    mixed.write_bytes(onnx.parser.parse_model(MIXED).SerializeToString())
    for model in (write_tiny_model(path), str(mixed)):
        assert main(["compile", model, "--threads", "1", "-o", str(Path(model).with_suffix(".tw"))]) == 0
    return path


# --- profile ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "inspect"])
@pytest.mark.parametrize("model", ["tiny.tw", "tiny.onnx"])
def test_each_kernel_has_a_row(command: str, model: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = ["--random"] if command == "run" else []
    assert main([command, str(folder / model), *random, "--profile", "--threads", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("kernel "))
    assert lines[begin].split() == ["kernel", "calls", "time", "share", "GFLOP/s"]
    assert len(lines[begin:]) == 1 + NUM_TASKS + 1
    assert all(re.search(r" 1 +\d+\.\d{4} ms +\d+\.\d% +\d+\.\d$", line) for line in lines[begin + 1 : -1])
    assert re.fullmatch(r"all +3 +\d+\.\d{4} ms +100\.0%", lines[-1].rstrip())


@pytest.mark.parametrize("command", ["run", "inspect"])
def test_json_is_all_that_is_printed(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = ["--random"] if command == "run" else []
    assert main([command, str(folder / "mixed.tw"), *random, "--profile", "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["threads"] == 1
    assert printed.get("outputs", {"y": "float32[1]"}) == {"y": "float32[1]"}
    rows: dict[str, Any] = {row["name"]: row for row in printed["rows"]}
    assert set(rows) == {"0 relu", "Det (no kernel)", "1 exp"}
    assert "gflops" not in rows["Det (no kernel)"]
    assert rows["1 exp"]["calls"] == 1
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1)


def test_outputs_are_written_with_a_profile(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, written = tmp_path / "x.npz", tmp_path / "y.npz"
    np.savez(given, input=np.ones(INPUT_SHAPE, np.float32))
    arguments = ["run", str(folder / "tiny.tw"), "--input", str(given), "--output", str(written)]
    assert main([*arguments, "--profile"]) == 0
    assert capsys.readouterr().out.startswith(f"output: float32[1, 4]\noutputs: {written}\nkernel ")
    with np.load(written) as found:
        assert found["output"].shape == (1, 4)


def test_a_table_of_no_kernels_has_a_sum() -> None:
    assert table([]).splitlines()[1].split() == ["all", "0", "0.0000", "ms", "100.0%"]
    assert Row("a", 1, 0.5, 1.0).to_json() == {"name": "a", "calls": 1, "ms": 0.5, "share": 1.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "tiny.tw", "--random", "--format", "json"], "--format json is for the times by kernel; add --profile"),
        (["inspect", "tiny.tw", "--format", "table"], "--format table is for the times by kernel; add --profile"),
        (["inspect", "gmm:8x8x8", "--profile"], "--profile is for models, such as model.onnx"),
        (["inspect", "tiny.onnx", "--records", "r.jsonl"], "nothing is run; add --profile"),
        (["inspect", "tiny.onnx", "--tasks", "--profile", "--format", "json"], "leave out one of both"),
        (["inspect", "tiny.onnx", "--profile", "--threads", "0"], "--threads is 0"),
        (["inspect", "tiny.tw", "--tasks"], "--tasks was given, but tiny.tw is compiled"),
        (["inspect", "tiny.tw", "--asm"], "--asm was given, but tiny.tw is compiled"),
        (["inspect", "tiny.tw", "--records", "r.jsonl"], "--records was given for tiny.tw, which is compiled already"),
        (["inspect", "other.tw"], "MODEL is 'other.tw', and there is no such file"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(
    arguments: list[str],
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


# --- a compiled model -------------------------------------------------------------------------------------------------


def test_a_compiled_model_is_described(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(["inspect", "mixed.tw"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "network mixed"
    assert re.fullmatch(r"file mixed\.tw: [\d,]+ bytes, by tilewright \d.*", lines[1])
    assert re.fullmatch(r"target llvm .*, up to 1 thread", lines[2])
    assert lines[3:5] == ["input x: float32[3, 3]", "output y: float32[1]"]
    assert re.fullmatch(r"kernels 2, called 2 times, [\d,]+ bytes of code", lines[5])
    assert re.fullmatch(r"  0 relu: called once, [\d,]+ bytes", lines[6])
    assert lines[8:11] == ["weights 0, 0 bytes", "constants 0, 0 bytes", "arena 0 bytes"]
    assert lines[11:13] == ["fallbacks 1, by the reference evaluator of ONNX", "  b = Det(a)"]
    assert "contains native code" in lines[13]


def test_a_model_for_another_machine_is_described_and_not_run(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "other.tw")
    assert main(["compile", str(folder / "tiny.onnx"), "--target", "aarch64", "--threads", "1", "-o", path]) == 0
    assert main(["inspect", path]) == 0
    assert "target llvm -mcpu=generic -mtriple=aarch64" in capsys.readouterr().out
    assert main(["inspect", path, "--profile"]) == 1
    assert "was compiled for aarch64" in capsys.readouterr().err


def test_a_file_that_does_not_say_what_wrote_it_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.tw"
    path.write_bytes((folder / "tiny.tw").read_bytes())
    assert main(["inspect", str(rewritten(path, put("tool_version", value=None)))]) == 1
    assert "tool_version must be a string, got None" in capsys.readouterr().err
