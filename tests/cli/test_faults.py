"""What a user meets on the command line when a file is broken: an exit code, one line of why, and nothing left over."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.tiny_model import INPUT_SHAPE, write_tiny_model
from tilewright.cli import main
from tilewright.deploy.artifact import read_manifest

COMMANDS = {
    "inspect": ["--tasks"],
    "tune": ["--trials", "3", "--threads", "1", "-o", "out.tw"],
    "compile": ["--threads", "1", "-o", "out.tw"],
    "run": ["--random", "--threads", "1", "--output", "out.npz"],
    "bench": ["--rounds", "1", "--threads", "1"],
}
HEADER = '<ir_version: 8, opset_import: ["" : 20, "com.example" : 1]> net '


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check_refused(command: str, model: str, message: str, capsys: pytest.CaptureFixture[str], exit_code: int) -> None:
    """The command says why in its last line, which is the only one that is no progress, and writes nothing."""
    before = sorted(Path().iterdir())
    assert main([command, model, *COMMANDS[command]]) == exit_code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert printed.err.count("tilewright: error: ") == 1
    assert message in printed.err.splitlines()[-1]
    assert sorted(Path().iterdir()) == before


# --- models -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_model(command: str, share: float, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = Path(write_tiny_model(folder)).read_bytes()
    (folder / "cut.onnx").write_bytes(whole[: int(share * len(whole))])
    check_refused(command, "cut.onnx", "export or download it again", capsys, 1)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("content", [b"garbage", bytes(range(256)) * 4, b"PK\x03\x04", b"\0" * 1000])
def test_garbage(command: str, content: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "garbage.onnx").write_bytes(content)
    check_refused(command, "garbage.onnx", "export or download it again", capsys, 1)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{ y = Frobnicate(x) }", "node y (Frobnicate): there is no operator Frobnicate of ONNX's opset 20; export"),
        ("{ y = com.example.Frob(x) }", "node y (Frob): there is no operator Frob of domain com.example; export"),
        ("{ a = Add(x, b) b = Relu(a) y = Neg(b) }", "in a cycle: node a (Add) -> node b (Relu) -> node a (Add)"),
        ("{ y = Add(x, ghost) }", "node y (Add) reads ghost, which no node, input or initializer of the model gives"),
    ],
    ids=["unknown operator", "operator of another domain", "cycle", "missing input"],
)
def test_a_graph_that_does_not_hold_together(
    command: str, body: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx.parser.parse_model(f"{HEADER} (float[3] x) => (float[3] y) {body}"), folder / "net.onnx")
    check_refused(command, "net.onnx", message, capsys, 1)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_is_no_model(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "net.onnx").mkdir()
    check_refused(command, "net.onnx", "there is no such file; give model.onnx", capsys, 2)


def test_dimensions_of_zero_go_through_every_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "{ z = MatMul(x, w) y = Softmax(z) }"
    text = f"{HEADER} (float[n, 2] x) => (float[n, 2] y) <float[2, 2] w = {{1, 2, 3, 4}}> {body}"
    onnx.save(onnx.parser.parse_model(text), folder / "net.onnx")
    for command, options in COMMANDS.items():
        assert main([command, "net.onnx", "--shape", "x=0x2", *options]) == 0
    np.savez("x.npz", x=np.zeros((0, 2), np.float32))
    assert main(["run", "out.tw", "--input", "x.npz", "--output", "y.npz"]) == 0
    with np.load("y.npz") as found:
        assert found["y"].shape == (0, 2)
    assert main(["compile", "net.onnx", "--shape", "x=0x2", "--format", "c"]) == 1
    assert "takes arrays of numbers that have elements, and x of net is float32[0, 2]" in capsys.readouterr().err


def test_nothing_to_tune_leaves_no_command_that_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(onnx.parser.parse_model(f"{HEADER} (float[0] x) => (float[0] y) {{ y = Exp(x) }}"), folder / "net.onnx")
    assert main(["tune", "net.onnx", "--trials", "3", "--threads", "1"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert last == "use it: tilewright compile net.onnx --threads 1 -o net.tw"
    assert main(last.removeprefix("use it: tilewright ").split()) == 0


# --- compiled models --------------------------------------------------------------------------------------------------


@pytest.fixture
def compiled(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["compile", write_tiny_model(folder), "--threads", "1"]) == 0
    capsys.readouterr()
    return folder / "tiny.tw"


@pytest.mark.parametrize("command", ["run", "bench"])
@pytest.mark.parametrize(
    ("region", "message"),
    [
        ("magic", "tiny.tw is not a compiled model"),
        ("version", "tiny.tw has format 258, and this version of tilewright"),
        ("manifest", "tiny.tw is damaged: its manifest does not match its checksum"),
        ("code", "tiny.tw is damaged: its kernels do not match their checksum"),
        ("weights", "tiny.tw is damaged: its weights do not match their checksum"),
    ],
)
def test_an_artifact_with_one_byte_changed(
    command: str, region: str, message: str, compiled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytearray(compiled.read_bytes())
    num_weights = read_manifest(compiled)["sections"]["data"]["nbytes"]
    places = {"magic": 3, "version": 17, "manifest": 100, "code": len(content) - num_weights - 1, "weights": -1}
    content[places[region]] ^= 1
    compiled.write_bytes(content)
    check_refused(command, "tiny.tw", message, capsys, 1)


@pytest.mark.parametrize("command", ["run", "bench"])
def test_a_truncated_artifact(command: str, compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiled.write_bytes(compiled.read_bytes()[:-64])
    check_refused(command, "tiny.tw", "tiny.tw is damaged: its kernels and weights have", capsys, 1)


@pytest.mark.parametrize("command", ["run", "bench"])
def test_an_artifact_for_other_hardware(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_tiny_model(folder)
    assert main(["compile", model, "--threads", "1", "--target", "riscv64", "-o", "tiny.tw"]) == 0
    capsys.readouterr()
    check_refused(command, "tiny.tw", "tiny.tw was compiled for riscv64", capsys, 1)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((1, 3, 8, 9), np.float32), "must have shape (1, 3, 8, 8), got (1, 3, 8, 9)"),
        (np.zeros((0, *INPUT_SHAPE[1:]), np.float32), "must have shape (1, 3, 8, 8), got (0, 3, 8, 8)"),
        (np.zeros(INPUT_SHAPE, np.int32), "must be of type float32, got int32"),
        (np.full(INPUT_SHAPE, "text"), "must be of type float32, got <U4"),
    ],
)
def test_arrays_of_another_shape_or_type(
    array: np.ndarray, message: str, compiled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez("x.npz", input=array)
    assert main(["run", "tiny.tw", "--input", "x.npz", "--output", "y.npz"]) == 2
    printed = capsys.readouterr()
    assert f"tilewright: error: x.npz: network tiny: input 'input' {message}" in printed.err
    assert printed.out == ""
    assert not Path("y.npz").exists()
