"""The file of a compiled model: what comes back, what is refused, and what a failed write leaves."""

from __future__ import annotations

import json
import mmap
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.partition.partitions import PartitionBuilder, packing_trace, residual, residual_reference, weights
from tilewright.deploy.artifact import is_artifact, load, read_manifest, save
from tilewright.deploy.compilation import compile_model
from tilewright.deploy.compiled import CompiledModel
from tilewright.deploy.program import Program
from tilewright.errors import ArtifactError
from tilewright.operators import Node, TensorType
from tilewright.partition import Partition
from tilewright.target import Target
from tilewright.testing.fuzz.artifacts import Parts

NATIVE = Target.native()
HEADER_BYTES = 32


def compiled(partition: Partition, target: Target = NATIVE) -> CompiledModel:
    return compile_model(partition, {}, target, 2, default_trace=packing_trace)


@pytest.fixture
def model() -> CompiledModel:
    return compiled(residual())


@pytest.fixture
def path(model: CompiledModel, tmp_path: Path) -> Path:
    save(model, tmp_path / "model.tw")
    return tmp_path / "model.tw"


def fields(model: CompiledModel) -> dict[str, Any]:
    arrays = ("weights", "constants")
    return {name: getattr(model, name) for name in CompiledModel.__slots__ if name not in arrays}


def check_equal(a: CompiledModel, b: CompiledModel) -> None:
    assert fields(a) == fields(b)
    for mine, theirs in ((a.weights, b.weights), (a.constants, b.constants)):
        assert [(x.dtype, x.shape) for x in mine] == [(x.dtype, x.shape) for x in theirs]
        assert all(np.array_equal(x, y) for x, y in zip(mine, theirs, strict=True))


# --- what comes back --------------------------------------------------------------------------------------------------


def test_a_model_comes_back_as_it_was(model: CompiledModel, path: Path) -> None:
    check_equal(load(path), model)
    assert is_artifact(path)


def test_a_loaded_model_computes_the_same(model: CompiledModel, path: Path) -> None:
    x = weights(4, 8, seed=9)
    assert np.array_equal(Program(load(path))([x])[0], Program(model)([x])[0])


def test_fallbacks_and_their_constants_come_back(tmp_path: Path) -> None:
    import ml_dtypes

    net = PartitionBuilder("mixed")
    x = net.relu(net.input("x", (2, 3)), "a")
    net.constant("axis", np.array(1, np.int64))
    net.constant("words", np.array([["a", "ß"], ["", "dd"]], object))
    net.constant("half", np.array([1, 2.5], ml_dtypes.bfloat16))
    net.constant("nothing", np.zeros((0, 3), np.float32))
    attributes = {"exclusive": 1, "reverse": 0}
    net.fallback(Node("CumSum", (x, "axis"), ("sums",), attributes, "sum", opset=14), TensorType("float32", (2, 3)))
    model = compiled(net.partition(net.relu("sums", "y"), "words", "half", "nothing"))
    save(model, tmp_path / "model.tw")
    loaded = load(tmp_path / "model.tw")
    check_equal(loaded, model)
    y, words, half, nothing = Program(loaded)([np.ones((2, 3), np.float32)])
    assert y.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert words.tolist() == [["a", "ß"], ["", "dd"]]
    assert half.astype(np.float32).tolist() == [1, 2.5]
    assert nothing.shape == (0, 3)


def test_weights_are_used_where_the_file_is_mapped(path: Path) -> None:
    for array in load(path).weights:
        owner: Any = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        assert isinstance(owner.obj, mmap.mmap)
        assert array.ctypes.data % 64 == 0
        assert not array.flags.writeable


def test_loading_and_running_needs_neither_compiler_nor_onnx(path: Path) -> None:
    program = f"""
import sys
import numpy as np
from tilewright.deploy.artifact import load
from tilewright.deploy.program import Program
from tilewright.testing.fuzz.artifacts import Parts
(y,) = Program(load({str(path)!r}))([np.ones((4, 8), np.float32)])
print(repr(y.tolist()))
print(*sorted({{"onnx", "torch", "tilewright.codegen.compile", "tilewright.tuning.tuner"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    result, heavy = done.stdout.splitlines()
    assert heavy == ""
    expected = residual_reference(residual(), np.ones((4, 8), np.float32))
    np.testing.assert_allclose(json.loads(result), expected, rtol=1e-4, atol=1e-3)


def test_the_manifest_says_what_the_file_is(path: Path) -> None:
    manifest = read_manifest(path)
    assert "contains native code" in manifest["notice"]
    assert manifest["model"]["threads"] == 2
    assert set(manifest["model"]["features"]) == NATIVE.enabled_features
    assert manifest["model"]["inputs"] == [{"name": "x", "type": {"dtype": "float32", "shape": [4, 8]}}]
    assert manifest["tool_version"]


# --- what is refused --------------------------------------------------------------------------------------------------


def regions(path: Path) -> dict[str, range]:
    """Where each part of the file begins and ends."""
    sections = read_manifest(path)["sections"]
    size = path.stat().st_size
    data = size - sections["data"]["nbytes"]
    code = data - sections["code"]["nbytes"]
    limits = {"magic": 0, "version": 16, "checksum": 20, "length": 24, "manifest": HEADER_BYTES, "code": code}
    ends = [*limits.values(), data, size]
    return {name: range(ends[n], ends[n + 1]) for n, name in enumerate([*limits, "data"])}


@pytest.mark.parametrize(
    ("region", "message"),
    [
        ("magic", "is not a compiled model; it begins with"),
        ("version", "has format .* reads formats 1 and 2; compile the model again with this version"),
        ("checksum", "is damaged: its manifest does not match its checksum; copy it again"),
        ("length", "is damaged: (it ends after|its manifest does not match its checksum)"),
        ("manifest", "is damaged: its manifest does not match its checksum; copy it again"),
        ("code", "is damaged: its kernels do not match their checksum; copy it again"),
        ("data", "is damaged: its weights do not match their checksum; copy it again"),
    ],
)
def test_one_changed_byte_is_found_wherever_it_is(path: Path, region: str, message: str) -> None:
    """Every byte of the file, one after the other."""
    whole = path.read_bytes()
    places = regions(path)
    assert sum(map(len, places.values())) == len(whole)
    assert len(places[region]) > 0
    with path.open("r+b") as file:
        for position in places[region]:
            os.pwrite(file.fileno(), bytes([whole[position] ^ 1 << position % 8]), position)
            with pytest.raises(ArtifactError, match=f"^{path} {message}"):
                load(path)
            os.pwrite(file.fileno(), whole[position : position + 1], position)
    load(path)


def test_a_truncated_file_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for length in [*range(HEADER_BYTES + 2), *random.Random(1).sample(range(len(whole)), 100), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(
            ArtifactError, match=r"is damaged: it ends|is damaged: its kernels|not a compiled model|empty"
        ):
            load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(ArtifactError, match="is damaged: its kernels and weights have"):
        load(path)


@pytest.mark.parametrize("content", [b"PK\x03\x04 something else", b"\x08\x07\x12\x05torch", b"x"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "other.tw"
    other.write_bytes(content)
    assert not is_artifact(other)
    with pytest.raises(
        ArtifactError, match="is not a compiled model; it begins with .* make one with `tilewright compile"
    ):
        load(other)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="missing.tw cannot be read: No such file or directory"):
        load(tmp_path / "missing.tw")


def test_another_version_is_refused(path: Path) -> None:
    changed = bytearray(path.read_bytes())
    changed[16] = 9
    path.write_bytes(changed)
    with pytest.raises(
        ArtifactError, match="has format 9, and this version of tilewright .* reads formats 1 and 2; compile"
    ):
        load(path)


def rewrite_manifest(path: Path, edit: Any) -> None:
    """Change the manifest as a whole file of another machine or program would have it."""
    parts = Parts.of(path.read_bytes())
    edit(parts.manifest)
    path.write_bytes(parts.join())


def test_missing_features_are_named(path: Path) -> None:
    rewrite_manifest(path, lambda manifest: manifest["model"]["features"].extend(["avx9000", "warp"]))
    with pytest.raises(ArtifactError, match="this processor lacks avx9000, warp; compile the model again"):
        load(path)
    assert "warp" in load(path, check_target=False).features


def test_a_model_for_another_architecture_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.tw"
    save(compiled(residual(), Target.parse("aarch64")), path)
    with pytest.raises(ArtifactError, match=f"was compiled for aarch64 .*, and this machine is {NATIVE.arch}"):
        load(path)


# --- writing ----------------------------------------------------------------------------------------------------------

FULL_DISK = """
import resource, sys
from tilewright.errors import ArtifactError
from tilewright.deploy.artifact import load, save
model = load(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    save(model, sys.argv[2])
except ArtifactError as error:
    print(error)
"""


@pytest.mark.parametrize("was_there", [False, True])
def test_a_full_disk_leaves_nothing_half(path: Path, tmp_path: Path, was_there: bool) -> None:
    """The system's limit on the size of a file fails a write in the middle, as a full disk does."""
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "model.tw"
    if was_there:
        target.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", FULL_DISK, path, target], capture_output=True, text=True, check=True)
    assert "could not be written to" in done.stdout
    assert "File too large; nothing was left there" in done.stdout
    assert os.listdir(folder) == (["model.tw"] if was_there else [])
    assert not was_there or target.read_bytes() == b"old"


def test_a_folder_that_is_not_there_is_named(model: CompiledModel, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="could not be written to .*nowhere/model.tw: No such file or directory"):
        save(model, tmp_path / "nowhere" / "model.tw")


def test_saving_over_a_file_that_is_in_use_leaves_its_model_alone(model: CompiledModel, path: Path) -> None:
    program = Program(load(path))
    x = np.ones((4, 8), np.float32)
    (before,) = program([x])
    save(compiled(residual(width=16)), path)
    (after,) = program([x])
    assert np.array_equal(before, after)
    assert load(path).inputs[0].type == TensorType("float32", (4, 16))


def test_the_file_has_the_rights_that_new_files_get(path: Path) -> None:
    plain = path.parent / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
