"""Files of a dataset: they come back as they were, and whatever else stands in their place is refused with a reason."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.errors import RecordFormatError, TilewrightError
from tilewright.records.dataset import files
from tilewright.records.dataset.files import FORMAT, read_arrays, read_json, write_arrays, write_json

ARRAYS: dict[str, NDArray[Any]] = {
    "a": np.arange(6, dtype=np.int16).reshape(2, 3),
    "b": np.asfortranarray(np.eye(3, 2)),
    "c": np.zeros((0, 4)),
}


def header(**changes: object) -> bytes:
    return json.dumps({"format": FORMAT, "version": 1, "kind": "k", **changes}).encode()


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def npy_that_says(shape: tuple[int, ...], content: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<i8", "fortran_order": False, "shape": shape})
    return buffer.getvalue() + content


def npy_with(text: str, content: bytes = b"") -> bytes:
    """One with this in the place of its header."""
    line = f"{text}\n".encode("latin-1")
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + content


# Of these NumPy's own reader raises a TokenError, an IndexError, a MemoryError, ...
NO_ARRAY_HEADERS = [
    "",
    "{",
    "{'descr': (",
    "{'descr': (), 'fortran_order': False, 'shape': (1,), }",
    "{'descr': [()], 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': 3, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1" + "1" * 5000 + ",), }",
    "-" * 9000,
    "1 " * 9000,
    "\0",
    "\xff",
]
NO_NUMBERS = [
    f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (), }}"
    for kind in ("<V9999999999", "<M8[ns]", "<f3", "<>f8", "f8,f8", "<", "O")
]


def npz(packed: int = zipfile.ZIP_STORED, /, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packed) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


STAMP = npy(np.frombuffer(header(), np.uint8))


def test_arrays_and_json_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.npz"
    write_arrays(path, "k", {"x": [1, "é"]}, ARRAYS)
    found, arrays = read_arrays(path, "k")
    assert found["x"] == [1, "é"]
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    with np.load(path, allow_pickle=False) as plain:  # readable anywhere
        np.testing.assert_array_equal(plain["b"], ARRAYS["b"])
    write_json(tmp_path / "a.json", "k", {"y": 2})
    assert read_json(tmp_path / "a.json", "k")["y"] == 2
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in "ab":
        write_arrays(tmp_path / name, "k", {"x": 1}, ARRAYS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


WHOLE = npz(header=STAMP, a=npy(np.arange(1000)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no .npz"),
        (b"PK\x03\x04 and no more", "no .npz"),
        (pickle.dumps({"a": 1}), "no .npz"),
        (WHOLE[: len(WHOLE) // 2], "no .npz"),
        (WHOLE[: len(WHOLE) - 30], "no .npz"),
        (npz(a=npy(np.arange(3))), "no header"),
        (npz(header=npy(np.frombuffer(b"{", np.uint8))), "no .npz of numbers"),
        (npz(header=npy(np.frombuffer(b"[" * 100_000, np.uint8))), "no .npz of numbers"),
        (npz(header=STAMP, a=npy(np.array([{"pickled": 1}], dtype=object))), "arrays hold numbers"),
        (npz(header=STAMP, a=npy(np.array(["text"]))), "arrays hold numbers"),
        (npz(header=STAMP, a=npy_that_says((2**40, 2**20))), "an array of shape"),
        (npz(header=STAMP, a=npy_that_says((2**62, 4))), "an array of shape"),
        (npz(header=STAMP, a=npy_that_says((-1, 4))), "an array of shape"),
        (npz(header=STAMP, a=npy_that_says((2,), b"\0" * 15)), "an array of shape"),
        (npz(header=STAMP, a=b"\x93NUMPY\x09\x00 what"), "no .npz of numbers"),
        (npz(header=STAMP, a=b""), "no .npz of numbers"),
        *((npz(header=STAMP, a=npy_with(text)), "an array says its type") for text in NO_ARRAY_HEADERS),
        *((npz(header=STAMP, a=npy_with(text)), "arrays hold numbers") for text in NO_NUMBERS),
        (npz(header=STAMP, a=npy_that_says((0, 10**19 - 1))), "no .npz of numbers"),
        (npz(zipfile.ZIP_LZMA, header=STAMP), "is packed by the unknown method 14"),
        (npz(zipfile.ZIP_BZIP2, header=STAMP), "is packed by the unknown method 12"),
        (npz(header=npy(np.frombuffer(header(format="other"), np.uint8))), "its format is tilewright-dataset"),
        (npz(header=npy(np.frombuffer(header(version=2), np.uint8))), "version 2, and this tilewright"),
        (npz(header=npy(np.frombuffer(header(kind="device"), np.uint8))), "one of the kind 'device'"),
        (npz(header=npy(np.frombuffer(b"[]", np.uint8))), "its format is tilewright-dataset"),
    ],
)
def test_what_is_no_such_file_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(RecordFormatError, match=message) as caught:
        read_arrays(path, "k")
    assert str(path) in str(caught.value)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as member:
        for _ in range(600):
            member.write(b"\0" * 2**20)
    path.write_bytes(buffer.getvalue())
    with pytest.raises(RecordFormatError, match="at most 536870912 are read"):
        read_arrays(path, "k")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"null", b"[" * 100_000, b"7" * 10_000])
def test_what_is_no_json_of_ours_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(RecordFormatError, match=r"a\.json: .*; restore the file"):
        read_json(path, "k")


def test_what_is_not_there_or_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecordFormatError, match="it is not there"):
        read_json(tmp_path / "none", "k")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("pipe", ""):
        with pytest.raises(RecordFormatError, match="it is no regular file"):
            read_json(tmp_path / name, "k")
    with pytest.raises(RecordFormatError, match="it cannot be read: Too many levels of symbolic links"):
        read_json(tmp_path / "loop", "k")


def test_a_disk_that_refuses_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    write_json(path, "k", {"x": 1})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(TilewrightError, match="No space left"):
        write_json(path, "k", {"x": 2})
    assert read_json(path, "k")["x"] == 1
    assert os.listdir(tmp_path) == ["a.json"]


def test_an_interrupt_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    write_json(path, "k", {"x": 1})

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_json(path, "k", {"x": 2})
    assert read_json(path, "k")["x"] == 1
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_header_that_is_too_large_is_not_parsed(tmp_path: Path) -> None:
    text = b'{"format":[' + b"[]," * (11 << 20)  # some 700 MB of lists
    path = tmp_path / "a.npz"
    path.write_bytes(npz(zipfile.ZIP_DEFLATED, header=npy(np.frombuffer(text, np.uint8))))
    with pytest.raises(RecordFormatError, match=f"it holds {len(text)} bytes, and at most {1 << 25} are read"):
        read_arrays(path, "log")


@pytest.mark.parametrize("limit", ["_MAX_HEADER_BYTES", "_MAX_ARRAY_BYTES"])
def test_what_could_not_be_read_is_not_written(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, "log", {}, {"numbers": np.zeros(8)})
    before = path.read_bytes()
    monkeypatch.setattr(files, limit, 100)
    with pytest.raises(TilewrightError, match="larger than what is read; put fewer programs"):
        write_arrays(path, "log", {"more": "x" * 100}, {"numbers": np.zeros(8)})
    assert path.read_bytes() == before
