"""Manifests that whole checksums do not make right: each is refused by what is wrong in it, before any code runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.partition.partitions import PartitionBuilder, packing_trace, residual, weights
from tilewright.deploy.artifact import load, save
from tilewright.deploy.compilation import compile_model
from tilewright.deploy.compiled import CompiledModel
from tilewright.deploy.manifest import DTYPES
from tilewright.deploy.program import Program
from tilewright.errors import ArtifactError, ModelError
from tilewright.operators import Node, TensorType
from tilewright.partition import Partition
from tilewright.target import Target
from tilewright.testing.fuzz.artifacts import Parts

Json = Any
Edit = Callable[[Json], object]


def with_fallback() -> Partition:
    """relu, a node without a kernel that reads a constant, relu; a constant of strings as an output."""
    net = PartitionBuilder("mixed")
    x = net.relu(net.input("x", (2, 3)), "a")
    net.constant("axis", np.array(1, np.int64))
    net.constant("words", np.array([["a", "ß"]], object))
    net.fallback(Node("CumSum", (x, "axis"), ("sums",), {}, "sum", opset=14), TensorType("float32", (2, 3)))
    return net.partition(net.relu("sums", "y"), "words", x)


def file_of(partition: Partition, path: Path) -> Path:
    save(compile_model(partition, {}, Target.native(), 2, default_trace=packing_trace), path)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("models")
    partitions = {"residual": residual(), "mixed": with_fallback()}
    return {name: file_of(partition, folder / name).read_bytes() for name, partition in partitions.items()}


@pytest.fixture
def residual_file(files: dict[str, bytes], tmp_path: Path) -> Path:
    path = tmp_path / "model.tw"
    path.write_bytes(files["residual"])
    return path


@pytest.fixture
def mixed_file(files: dict[str, bytes], tmp_path: Path) -> Path:
    path = tmp_path / "model.tw"
    path.write_bytes(files["mixed"])
    return path


def rewritten(path: Path, edit: Edit) -> Path:
    parts = Parts.of(path.read_bytes())
    edit(parts.manifest)
    path.write_bytes(parts.join())
    return path


def put(*way: str | int, value: Json) -> Edit:
    """An edit that puts a value at the end of a way through the manifest."""

    def edit(manifest: Json) -> None:
        for key in way[:-1]:
            manifest = manifest[key]
        manifest[way[-1]] = value

    return edit


STEP = ("model", "steps", 0)
CALL = (*STEP, "calls", 0)


def test_the_edits_lead_to_what_they_mean(residual_file: Path) -> None:
    """Slots of the first call: an argument, a weight, and a value in the arena."""
    manifest = Parts.of(residual_file.read_bytes()).manifest
    assert [place for place, _ in manifest["model"]["steps"][0]["calls"][0]["slots"]] == ["argument", "weight", "arena"]
    assert manifest["model"]["steps"][0]["arena_bytes"] == 384


# --- what is no manifest ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"{'model': 1}",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"threads": ' + b"9" * 5000 + b"}",
    ],
    ids=["empty", "cut", "of another language", "not text", "lists in lists", "objects in objects", "a long number"],
)
def test_a_manifest_that_is_not_json(residual_file: Path, text: bytes) -> None:
    parts = Parts.of(residual_file.read_bytes())
    parts.text = text
    residual_file.write_bytes(parts.join())
    with pytest.raises(ArtifactError, match="model.tw must be JSON text, got b.*; compile the model again"):
        load(residual_file)


@pytest.mark.parametrize("value", [[], 3, None, "x", {}, {"model": {}}])
def test_a_manifest_of_something_else(residual_file: Path, value: Json) -> None:
    parts = Parts.of(residual_file.read_bytes())
    parts.text = json.dumps(value).encode()
    residual_file.write_bytes(parts.join())
    with pytest.raises(ArtifactError, match="model.tw must be an object with 'sections'"):
        load(residual_file)


# --- fields that are not what they have to be -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: m["model"].pop("steps"), "model must be an object with 'steps', got an object of 7"),
        (put("model", "name", value=3), "model.name must be a string, got 3"),
        (put("model", "name", value="\ud800"), "model.name must be a string, got '.ud800'"),
        (put("model", "threads", value=0), "model.threads must be a whole number from 1 to 512, got 0"),
        (put("model", "threads", value=True), "model.threads must be a whole number from 1 to 512, got True"),
        (put("model", "threads", value=2.0), "model.threads must be a whole number from 1 to 512, got 2.0"),
        (put("model", "threads", value=10**30), "model.threads must be a whole number from 1 to 512, got 10000"),
        (put("model", "features", value="avx"), "model.features must be a list, got 'avx'"),
        (put("model", "features", value=[None]), r"model.features\[0\] must be a string, got None"),
        (put("model", "inputs", 0, "type", "shape", value=[-1]), r"inputs\[0\].type.shape\[0\] must be a whole number"),
        (put("model", "inputs", 0, "type", "shape", value=[1] * 65), "shape must be at most 64 sizes"),
        (put("model", "inputs", 0, "type", "shape", value=[2**31] * 3), "for at most 2\\^48 elements"),
        (put("model", "inputs", 0, "type", "shape", value=[0, 2**31, 2**31]), "for at most 2\\^48 elements"),
        (put("model", "inputs", 0, "type", "dtype", value="object"), "dtype must be one of bfloat16, bool, .*'object'"),
        (put("model", "inputs", 0, "type", "dtype", value=["int8"]), "dtype must be one of bfloat16, bool"),
        (put("model", "outputs", 0, "is_copied", value=1), r"outputs\[0\].is_copied must be true or false, got 1"),
        (put("model", "outputs", 0, "operand", "constant", value=-1), "operand.constant must be a whole number"),
        (put(*STEP, "kind", value="python"), r"steps\[0\].kind must be one of fallback, native, got 'python'"),
        (put(*STEP, "arena_bytes", value=float("nan")), "arena_bytes must be a whole number .* got nan"),
        (put(*CALL, "kernel", value=-1), r"calls\[0\].kernel must be a whole number from 0 to"),
        (put(*CALL, "slots", 0, value=["stack", 0]), "must be one of arena, argument, weight, got 'stack'"),
        (put(*CALL, "slots", 0, value=["arena"]), "must be a list of two, got a list of 1"),
        (put(*CALL, "slots", 0, value=["arena", "0"]), "must be a whole number from 0 to 9223372036854775807, got '0'"),
        (put(*CALL, "slots", 0, value=["arena", 2**63]), "must be a whole number from 0 to 9223372036854775807"),
        (put("model", "kernels", 0, "flop", value=-1), r"kernels\[0\].flop must be a number of at least 0, got -1"),
        (put("model", "kernels", 0, "flop", value=10**400), "flop must be a number of at least 0, got 1000"),
        (put("model", "kernels", 0, "flop", value=float("nan")), "flop must be a number of at least 0, got nan"),
        (put("object_codes", value=[]), "object_codes must be a list of 3, as there are kernels, got a list of 0"),
        (put("weights", 0, "offset", value=1 << 40), r"weights\[0\].offset must be a whole number from 0 to 0"),
        (put("weights", 1, "offset", value=0), r"weights\[1\].offset must be a whole number from 256 to 256, got 0"),
        (put("weights", 0, "nbytes", value=1 << 40), r"weights\[0\].nbytes must be a whole number from 0 to 1024"),
        (put("weights", 0, "nbytes", value=200), r"weights\[0\].nbytes must be 256, for float32\[.*\], got 200"),
        (put("weights", 0, "shape", value=[3, 8]), r"weights\[0\].nbytes must be 96, for float32\[3, 8\], got 256"),
        (put("weights", 0, "dtype", value="float64"), r"weights\[0\].nbytes must be 512, for float64"),
        (lambda m: m["weights"].pop(), "sections.data.nbytes must be 768, where its last piece ends, got 1024"),
        (put("sections", "code", "nbytes", value=-64), "sections.code.nbytes must be a whole number"),
        (put("sections", "data", "crc32", value="0"), "sections.data.crc32 must be a whole number"),
    ],
)
def test_a_field_that_is_not_what_it_has_to_be(residual_file: Path, edit: Edit, message: str) -> None:
    with pytest.raises(ArtifactError, match=f"model.tw: .*{message}.*; compile the model again"):
        load(rewritten(residual_file, edit))


def test_every_element_type_of_onnx_can_be_read() -> None:
    from tilewright.graph.protos import _ELEM_TYPES

    assert set(_ELEM_TYPES) == DTYPES


# --- fields that do not fit together ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (put(*CALL, "kernel", value=3), "step 0, call 0 is of kernel 3, but there are 3 kernels"),
        (put(*CALL, "kernel", value=1), "call 0 has 3 arguments, but its kernel has 1 inputs and 1 outputs"),
        (lambda m: m["model"]["steps"][0]["calls"][0]["slots"].pop(), "call 0 has 2 arguments, but its kernel has 2"),
        (
            put(*CALL, "workspace_offset", value=2**62),
            "has a workspace at 4611686018427387904 of the arena, which has 384",
        ),
        (put(*CALL, "slots", 0, value=["argument", 2]), "has an argument at argument 2, but there are 2"),
        (put(*CALL, "slots", 0, value=["argument", 1]), "reads argument 1, which no call before it writes"),
        (
            put(*CALL, "slots", 0, value=["arena", 0]),
            "reads 128 bytes at 0 of the arena, where no such value is written",
        ),
        (put(*CALL, "slots", 0, value=["weight", 0]), "needs 128 bytes as an argument, but weight 0 has 256"),
        (put(*CALL, "slots", 1, value=["weight", 9]), "has an argument at weight 9, but there are 4"),
        (put(*CALL, "slots", 1, value=["argument", 0]), "needs 256 bytes as an argument, but argument 0 has 128"),
        (
            put(*CALL, "slots", 2, value=["arena", 320]),
            "writes 128 bytes at 320 of the arena, which must be a multiple",
        ),
        (put(*CALL, "slots", 2, value=["arena", 32]), "writes 128 bytes at 32 of the arena, which must be a multiple"),
        (put(*CALL, "slots", 2, value=["argument", 0]), "writes argument 0, which must only be read"),
        (
            put(*STEP, "calls", 1, "slots", 1, value=["arena", 0]),
            "at 0 of the arena, where it has other arguments",
        ),
        (lambda m: m["model"]["steps"][0]["calls"].reverse(), "where no such value is written"),
        (lambda m: m["model"]["steps"][0]["calls"].pop(), "step 0 must write its output d1, but no call does"),
        (put(*STEP, "arena_bytes", value=128), "end within its 128 bytes"),
        (
            put(*STEP, "arena_bytes", value=2**40),
            "an arena of 1099511627776 bytes, but its calls take no more than",
        ),
        (put(*STEP, "inputs", 0, "name", value="other"), "step 0 reads 'other', which nothing before it gives"),
        (put("model", "inputs", 0, "type", "shape", value=[8, 8]), "step 0 reads x as .*, but that is .*8, 8"),
        (put("model", "inputs", 0, "type", value=None), "step 0 reads x as .*, but that is None"),
        (
            put(*STEP, "outputs", 0, "type", "dtype", value="string"),
            "is native code, which cannot .* d1 of type",
        ),
        (put(*STEP, "outputs", 0, "type", "shape", value=[0, 8]), "is native code, which cannot .* d1 of type"),
        (
            put(*STEP, "outputs", 0, "type", "shape", value=[8, 8]),
            "needs 128 bytes as an argument, but argument 1",
        ),
        (
            put(*STEP, "outputs", 0, "name", value="x"),
            "an output of step 0 must have a name of its own, got 'x'",
        ),
        (put("model", "outputs", 0, "operand", "name", value="z"), "output y reads 'z', which nothing before it gives"),
        (put("model", "outputs", 0, "operand", "constant", value=0), "output y reads constant 0, but there are 0"),
        (put("model", "outputs", 0, "operand", "type", "shape", value=[9]), "output y reads d1 as .*, but that is"),
        (put("model", "outputs", 0, "operand", "name", value="x"), "output y must be a copy"),
        (
            lambda m: m["model"]["inputs"].append(m["model"]["inputs"][0]),
            "an input must have a name of its own, got 'x'",
        ),
    ],
)
def test_fields_that_do_not_fit_together(residual_file: Path, edit: Edit, message: str) -> None:
    with pytest.raises(ArtifactError, match=f"model.tw: .*{message}.*; compile the model again"):
        load(rewritten(residual_file, edit))


FALLBACK = ("model", "steps", 1)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (put(*FALLBACK, "node", "onnx", value="*"), "node.onnx must be a node of ONNX"),
        (put(*FALLBACK, "node", "onnx", value="/////w=="), "node.onnx must be a node of ONNX"),
        (put(*FALLBACK, "node", "onnx", value="CgF4"), "step 1 must have an operand for each input of its node"),
        (put(*FALLBACK, "node", "opset", value=2**40), "node.opset must be a whole number from 0 to 2147483647"),
        (put(*FALLBACK, "operands", value=[]), "step 1 must have an operand for each input of its node, got 0"),
        (put(*FALLBACK, "operands", 0, value=None), "step 1 must have an operand for each input of its node"),
        (put(*FALLBACK, "operands", 0, "name", value="y"), "step 1 reads 'y', which nothing before it gives"),
        (put(*FALLBACK, "operands", 1, "constant", value=7), "step 1 reads constant 7, but there are 2"),
        (put(*FALLBACK, "operands", 1, "type", "dtype", value="int32"), "step 1 reads a constant as .*int32.*, but"),
        (put(*FALLBACK, "output_types", value=[]), "step 1 must have a type for each output of its node, got 0"),
        (put(*FALLBACK, "output_types", 0, "shape", value=[3, 2]), "step 2 reads sums as .*, but that is"),
        (put("model", "outputs", 1, "is_copied", value=False), "output words must be a copy"),
        (put("constants", 1, "shape", value=[5]), r"constants\[1\].shape must be one for the 2 strings"),
        (lambda m: m["model"]["steps"].reverse(), "step 0 reads 'sums', which nothing before it gives"),
    ],
)
def test_fallbacks_that_do_not_fit(mixed_file: Path, edit: Edit, message: str) -> None:
    with pytest.raises(ArtifactError, match=f"model.tw: .*{message}.*; compile the model again"):
        load(rewritten(mixed_file, edit))


@pytest.mark.parametrize("content", [b"{}", b"[1, 2]", b'["a"', b"[" * 200_000, b'["a", "\\ud800"]'])
def test_strings_that_are_none(mixed_file: Path, content: bytes) -> None:
    parts = Parts.of(mixed_file.read_bytes())
    place = parts.manifest["constants"][1]
    place["nbytes"] = len(content)
    parts.data = parts.data[: place["offset"]] + content + bytes(-len(content) % 64)
    parts.describe_sections()
    mixed_file.write_bytes(parts.join())
    with pytest.raises(ArtifactError, match=r"constants\[1\], its content.* must be .*; compile the model again"):
        load(mixed_file)


def test_a_result_of_another_size_than_it_is_read_as_is_named(tmp_path: Path) -> None:
    """What a node without a kernel gives, is known only when it runs."""
    net = PartitionBuilder("late")
    net.fallback(Node("NonZero", (net.input("x", (2, 3)),), ("n",), {}, "", opset=13), None)
    net.graph.types["n"] = TensorType("int64", (2, 6))
    path = file_of(net.partition("n"), tmp_path / "model.tw")
    program = Program(load(path))
    assert program([np.ones((2, 3), np.float32)])[0].shape == (2, 6)
    with pytest.raises(ModelError, match=r"shape \(2, 0\).*check the shapes that the model states"):
        program([np.zeros((2, 3), np.float32)])


# --- code -------------------------------------------------------------------------------------------------------------


def with_first_kernel(path: Path, change: Callable[[bytes], bytes]) -> Path:
    """The file with another first kernel, and all else as that needs it."""
    parts = Parts.of(path.read_bytes())
    places = parts.manifest["object_codes"]
    kernels = [parts.code[place["offset"] : place["offset"] + place["nbytes"]] for place in places]
    kernels[0] = change(kernels[0])
    parts.code = b""
    for place, kernel in zip(places, kernels, strict=True):
        place.update(offset=len(parts.code), nbytes=len(kernel))
        parts.code += kernel + bytes(-len(kernel) % 64)
    parts.describe_sections()
    path.write_bytes(parts.join())
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda kernel: b"", "first line must be JSON text"),
        (lambda kernel: kernel[kernel.index(b"\n") + 1 :], "first line must be JSON text"),
        (lambda kernel: kernel[: kernel.index(b"\n") + 1], "is not a whole object file: its 0 bytes are fewer"),
        (lambda kernel: kernel[:-1], "is not a whole object file: its table of .* sections is not in it"),
        (lambda kernel: kernel.replace(b"\x7fELF", b"MZ\0\0"), "is not a whole object file: it begins with b'MZ"),
        (lambda kernel: kernel.replace(b"tw_0_run", b"tw_0_ran", 1), "has no function 'tw_0_ran'"),
        (lambda kernel: kernel.replace(b"[128, 256]", b"[128, 512]"), "needs 512 bytes as an argument, but weight 0"),
    ],
)
def test_a_kernel_that_is_none(residual_file: Path, change: Callable[[bytes], bytes], message: str) -> None:
    with pytest.raises(ArtifactError, match=f"{message}.*; compile the model again"):
        load(with_first_kernel(residual_file, change))


# --- format 1 ---------------------------------------------------------------------------------------------------------


def as_format_1(path: Path) -> Path:
    """The file as it was written before kernels said what memory they touch."""
    parts = Parts.of(path.read_bytes())
    code = b""
    for known, place in zip(parts.manifest["model"]["kernels"], parts.manifest["object_codes"], strict=True):
        line, _, object_code = parts.code[place["offset"] : place["offset"] + place["nbytes"]].partition(b"\n")
        known.update({key: json.loads(line)[key] for key in ("symbol", "scratch_bytes")})
        place.update(offset=len(code), nbytes=len(object_code))
        code += object_code + bytes(-len(object_code) % 64)
    parts.code, parts.version = code, 1
    parts.describe_sections()
    path.write_bytes(parts.join())
    return path


def test_a_file_of_format_1_is_read(residual_file: Path) -> None:
    x = weights(4, 8, seed=9)
    expected = Program(load(residual_file))([x])[0]
    model: CompiledModel = load(as_format_1(residual_file))
    assert [kernel.memory for kernel in model.kernels] == [None] * 3
    assert np.array_equal(Program(model)([x])[0], expected)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (put(*CALL, "kernel", value=3), "is of kernel 3, but there are 3 kernels"),
        (put(*CALL, "slots", 0, value=["argument", 2]), "has an argument at argument 2, but there are 2"),
        (put(*CALL, "slots", 0, value=["arena", 384]), "has an argument at arena 384, but there are 384"),
        (put(*CALL, "workspace_offset", value=385), "has a workspace at 385 of the arena, which has 384 bytes"),
    ],
)
def test_a_place_that_is_not_there_in_a_file_of_format_1(residual_file: Path, edit: Edit, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        load(rewritten(as_format_1(residual_file), edit))


def test_a_model_of_format_1_cannot_be_written_again(residual_file: Path, tmp_path: Path) -> None:
    model = load(as_format_1(residual_file))
    with pytest.raises(ArtifactError, match="comes from a file of format 1, .* compile the model again to write it"):
        save(model, tmp_path / "again.tw")
