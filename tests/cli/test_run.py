"""`tilewright run`: inputs from a file, outputs to a file, and what is refused."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tests.cli.tiny_model import INPUT_SHAPE, write_tiny_model
from tilewright import UsageError
from tilewright.cli import arrays, main

X = np.random.default_rng(0).standard_normal(INPUT_SHAPE, np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With tiny.onnx and tiny.tw."""
    path = tmp_path_factory.mktemp("models")
    assert main(["compile", write_tiny_model(path), "--threads", "1", "-o", str(path / "tiny.tw")]) == 0
    return path


@pytest.mark.parametrize("model", ["tiny.tw", "tiny.onnx"])
def test_outputs_are_those_of_the_reference(
    model: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, written = tmp_path / "x.npz", tmp_path / "y.npz"
    np.savez(given, input=X)
    assert main(["run", str(folder / model), "--input", str(given), "--output", str(written), "--threads", "1"]) == 0
    assert capsys.readouterr().out == f"output: float32[1, 4]\noutputs: {written}\n"
    (expected,) = ReferenceEvaluator(onnx.load(folder / "tiny.onnx")).run(None, {"input": X})
    with np.load(written, allow_pickle=False) as found:
        assert found.files == ["output"]
        np.testing.assert_allclose(found["output"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", ["tiny.tw", "tiny.onnx"])
def test_random_inputs_have_to_be_asked_for(model: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", str(folder / model)])
    assert stop.value.code == 2
    assert "--input --random" in capsys.readouterr().err
    assert main(["run", str(folder / model), "--random", "--threads", "1"]) == 0
    assert capsys.readouterr().out == "output: float32[1, 4]\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "input 'input' was not given"),
        ({"input": X, "more": X}, "there is no input 'more'; it takes input"),
        ({"input": X[:, :2]}, "must have shape (1, 3, 8, 8), got (1, 2, 8, 8)"),
        ({"input": X.astype(np.float64)}, "must be of type float32, got float64"),
        ({"input": np.array([{}], object)}, "is not a file of plain arrays by name"),
    ],
)
def test_arrays_that_do_not_fit_are_wrong_usage(
    given: dict[str, Any], message: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, **given)
    assert main(["run", str(folder / "tiny.tw"), "--input", str(path), "--output", str(tmp_path / "y.npz")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "y.npz").exists()


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04garbage"])
def test_a_file_that_is_no_npz_is_wrong_usage(
    content: bytes, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    assert main(["run", str(folder / "tiny.tw"), "--input", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "packing"), [(1, zipfile.ZIP_STORED), (0, 99)], ids=["encrypted", "packed in an unknown way"]
)
def test_an_archive_that_cannot_be_unpacked_is_refused(flags: int, packing: int, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, input=X)
    content = bytearray(path.read_bytes())
    for start, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.index(start) + place
        content[at : at + 4] = struct.pack("<HH", flags, packing)
    path.write_bytes(content)
    with pytest.raises(UsageError, match="x.npz is not a file of plain arrays by name"):
        arrays.read_npz(str(path))


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': (",
        "{'descr': (), 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999999999999), }",
        "  x\n y",
        "-" * 9000,
    ],
)
def test_an_array_whose_header_is_no_header_is_refused(header: str, tmp_path: Path) -> None:
    line = f"{header}\n".encode()
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("input.npy", b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line)
    with pytest.raises(UsageError, match="x.npz is not a file of plain arrays by name"):
        arrays.read_npz(str(tmp_path / "x.npz"))


def test_an_archive_that_is_packed_by_lzma_and_broken_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("input.npy", bytes(1000))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[50:60] = b"\xff" * 10
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(UsageError, match="x.npz is not a file of plain arrays by name"):
        arrays.read_npz(str(tmp_path / "x.npz"))


def test_an_array_that_claims_more_than_memory_is_refused(tmp_path: Path) -> None:
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(member, {"descr": "<f8", "fortran_order": False, "shape": (2**55,)})
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("input.npy", member.getvalue())
    with pytest.raises(UsageError, match="x.npz is not a file of plain arrays by name"):
        arrays.read_npz(str(tmp_path / "x.npz"))


def test_a_single_array_is_no_npz(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", X)
    assert main(["run", str(folder / "tiny.tw"), "--input", str(tmp_path / "x.npy")]) == 2
    assert "is not a file of plain arrays by name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.tw", "--random"], "there is no such file"),
        (["tiny.tw", "--input", "missing.npz"], "missing.npz cannot be read"),
        (["tiny.tw", "--random", "--output", "no/such/y.npz"], "there is no folder"),
        (["tiny.tw", "--random", "--records", "r.jsonl"], "--records was given for tiny.tw"),
        (["tiny.tw", "--random", "--shape", "input=1x3x8x8"], "--shape was given for tiny.tw"),
    ],
)
def test_wrong_usage_exits_with_2(
    arguments: list[str],
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    assert main(["run", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_damaged_artifact_exits_with_1(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray((folder / "tiny.tw").read_bytes())
    content[-100] ^= 1
    (tmp_path / "tiny.tw").write_bytes(content)
    assert main(["run", str(tmp_path / "tiny.tw"), "--random"]) == 1
    assert "is damaged" in capsys.readouterr().err


def test_any_name_and_strings_can_be_written(tmp_path: Path) -> None:
    path = str(tmp_path / "y.npz")
    arrays.write_npz(path, {"file": np.arange(3), "a/b": np.array(["x", "yz"], object)})
    found = arrays.read_npz(path)
    assert found["file"].tolist() == [0, 1, 2]
    assert found["a/b"].tolist() == ["x", "yz"]
