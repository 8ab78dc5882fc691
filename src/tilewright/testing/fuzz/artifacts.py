"""Files of compiled models, changed in ways that their checksums do not tell: each is refused, or runs.

The manifest is changed in its values and as text, the header and the weights in their bytes. A kernel is cut or
replaced as a whole, never in an instruction: code does what it does, and whoever loads a file trusts it.
"""

from __future__ import annotations

import base64
import json
import math
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np

from tilewright.cli.inspect_compiled import describe_file
from tilewright.deploy import artifact
from tilewright.deploy.artifact import ALIGNMENT, FORMAT_VERSION, HEADER, MAGIC
from tilewright.deploy.compiled import Value
from tilewright.errors import TilewrightError
from tilewright.operators import TensorType
from tilewright.testing.fuzz.artifact_models import MODELS

Json: TypeAlias = Any
_MOST_ELEMENTS = 1 << 20
_DEPTH = 200_000


@dataclass(slots=True)
class Parts:
    """A file taken apart."""

    manifest: Json
    code: bytes
    data: bytes
    version: int = FORMAT_VERSION
    text: bytes | None = None
    """The manifest as text, if that is not simply its JSON."""

    @staticmethod
    def of(content: bytes) -> Parts:
        _, version, _, nbytes = HEADER.unpack_from(content)
        manifest = json.loads(content[HEADER.size : HEADER.size + nbytes])
        begin = HEADER.size + nbytes
        end = begin + manifest["sections"]["code"]["nbytes"]
        return Parts(manifest, content[begin:end], content[end:], version)

    def describe_sections(self) -> None:
        """Make the manifest say how large the sections are, and what their checksums are."""
        for name, content in (("code", self.code), ("data", self.data)):
            self.manifest["sections"][name] = {"nbytes": len(content), "crc32": zlib.crc32(content)}

    def join(self) -> bytes:
        """The file, with checksums that fit."""
        text = json.dumps(self.manifest).encode() if self.text is None else self.text
        text += b" " * (-(HEADER.size + len(text)) % ALIGNMENT)
        return HEADER.pack(MAGIC, self.version, zlib.crc32(text), len(text)) + text + self.code + self.data


# --- the values of a manifest -----------------------------------------------------------------------------------------

_Place: TypeAlias = tuple[Any, Any]  # a list or object, and an index or key in it

_VALUES: list[Json] = [
    *(0, 1, -1, 2, 7, 63, 64, 65, 128, 4096, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 10**30),
    *(0.0, 0.5, 1.0, -1e-320, 1e308, float("nan"), float("inf"), -float("inf")),
    *("", "x", "0", "arena", "weight", "argument", "\ud800", "\0", "float32", "string", "object", "bfloat16", "int64"),
    *(
        None,
        True,
        False,
        [],
        {},
        [[]],
        [0],
        [2**63],
        ["x"],
        {"": 0},
        [1] * 70,
        [0, 2**40, 2**40],
        [2**31, 2**31, 2**31],
    ),
]


def _places(value: Json) -> Iterator[_Place]:
    """Every value inside of one."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _copy(value: Json) -> Json:
    return json.loads(json.dumps(value))


def _edit(manifest: Json, random: Random) -> None:
    """Change one value, in one of several ways."""
    places = list(_places(manifest))
    if not places:
        return
    holder, key = random.choice(places)
    way = random.randrange(10)
    if way <= 3:
        holder[key] = _copy(random.choice(_VALUES))
    elif way <= 5:
        holder[key] = _nudged(holder[key], random)
    elif way == 6:
        del holder[key]
    elif way == 7:
        other, other_key = random.choice(places)
        holder[key], other[other_key] = _copy(other[other_key]), _copy(holder[key])
    elif way == 8:
        other, other_key = random.choice(places)
        holder[key] = _copy(other[other_key])
    elif isinstance(holder, list):
        holder.insert(random.randrange(len(holder) + 1), _copy(holder[key]))


def _nudged(value: Json, random: Random) -> Json:
    """Something near."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice(
            [value + 1, value - 1, value + 64, value - 64, value * 2, value // 2, -value, float(value)]
        )
    if isinstance(value, str):
        return random.choice([value + "x", value[:-1], value.upper(), value * 2])
    if isinstance(value, list):
        return random.choice([value[::-1], value[1:], value[:-1], value * 2, [*value, 1]])
    return value


# --- its text, the header, the sections -------------------------------------------------------------------------------


def _flipped(content: bytes, random: Random) -> bytes:
    """A few bytes of it changed, cut or added."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(changed) + 1)
        way = random.randrange(4)
        if way == 0:
            changed[at:at] = random.randbytes(random.randint(1, 8))
        elif way == 1:
            del changed[at : at + random.randint(1, 8)]
        elif at < len(changed):
            changed[at] = random.choice([0, 0x7F, 0x80, 0xFF, changed[at] ^ 1 << random.randrange(8)])
    return bytes(changed)


def _change_values(parts: Parts, random: Random) -> None:
    for _ in range(random.choice([1, 1, 1, 2, 2, 3])):
        _edit(parts.manifest, random)


def _change_nodes(parts: Parts, random: Random) -> None:
    """The messages of nodes that have no kernel."""
    for step in parts.manifest["model"]["steps"]:
        if step["kind"] == "fallback" and random.randrange(2):
            message = _flipped(base64.b64decode(step["node"]["onnx"]), random)
            step["node"]["onnx"] = base64.b64encode(message).decode()


def _change_text(parts: Parts, random: Random) -> None:
    text = json.dumps(parts.manifest).encode()
    digits = b"9" * 5000
    ways: list[Callable[[], bytes]] = [
        lambda: _flipped(text, random),
        lambda: text[: random.randrange(len(text))],
        lambda: b"",
        lambda: random.randbytes(random.randrange(200)),
        lambda: b"[" * _DEPTH,
        lambda: b'{"model":' * _DEPTH,
        lambda: b"[" * _DEPTH + b"]" * _DEPTH,
        lambda: text.replace(b": 1,", b": " + digits + b",", 1),
        lambda: text.replace(b": 0,", b": 1e400,", 1),
        lambda: text.replace(b'"name"', b'"name": 3, "name"'),
        lambda: b"\xef\xbb\xbf" + text,
        lambda: text.decode().encode("utf-16"),
        lambda: b"null",
    ]
    parts.text = random.choice(ways)()


def _change_header(parts: Parts, random: Random) -> None:
    parts.version = random.choice([0, 1, 3, 2**31, 2**32 - 1])


def _change_data(parts: Parts, random: Random) -> None:
    parts.data = _flipped(parts.data, random) if random.randrange(2) else _noise(parts.data, random)
    parts.describe_sections()
    if random.randrange(4) == 0:
        _change_values(parts, random)


def _noise(content: bytes, random: Random) -> bytes:
    """Other bytes of the same number: large numbers, negative ones, and NaN."""
    at = random.randrange(len(content) + 1)
    filler = random.choice([b"\xff", b"\x7f", b"\x00", b"\x80", random.randbytes(13)])
    end = min(len(content), at + random.choice([8, 64, 1 << 20]))
    return content[:at] + (filler * (end - at))[: end - at] + content[end:]


def _change_code(parts: Parts, random: Random) -> None:
    places = parts.manifest["object_codes"]
    if not places:
        return
    kernels = [parts.code[place["offset"] : place["offset"] + place["nbytes"]] for place in places]
    at = random.randrange(len(kernels))
    kernel = kernels[at]
    line = kernel[: kernel.index(b"\n") + 1]
    ways: list[Callable[[], bytes]] = [
        lambda: kernel[: random.randrange(len(kernel))],
        lambda: line,
        lambda: b"",
        lambda: random.randbytes(len(kernel)),
        lambda: line + random.randbytes(len(kernel) - len(line)),
        lambda: line + kernel[len(line) :][: random.randrange(len(kernel) - len(line))],
        lambda: line + b"\x7fELF" + bytes(len(kernel)),
        lambda: random.choice(kernels),
        lambda: kernel[len(line) :],
    ]
    kernels[at] = random.choice(ways)()
    parts.code = b""
    for place, content in zip(places, kernels, strict=True):
        place.update(offset=len(parts.code), nbytes=len(content))
        parts.code += content + bytes(-len(content) % ALIGNMENT)
    parts.describe_sections()


_CHANGES: list[tuple[int, Callable[[Parts, Random], None]]] = [
    (70, _change_values),
    (10, _change_nodes),
    (6, _change_text),
    (2, _change_header),
    (7, _change_data),
    (5, _change_code),
]


# --- the subject ------------------------------------------------------------------------------------------------------


@dataclass
class Artifacts:
    """Changed files of a few small models, which are compiled once."""

    files: list[bytes] = field(default_factory=lambda: [_compiled(text) for text in MODELS])

    def content(self, seed: int) -> tuple[str, bytes]:
        random = Random(seed)
        parts = Parts.of(random.choice(self.files))
        weights, changes = zip(*_CHANGES, strict=True)
        random.choices(changes, weights)[0](parts, random)
        return artifact.SUFFIX, parts.join()

    def run(self, seed: int) -> str:
        suffix, content = self.content(seed)
        with tempfile.NamedTemporaryFile(suffix=suffix) as file:
            file.write(content)
            file.flush()
            return run_file(file.name, seed)


def _compiled(text: str) -> bytes:
    """The file of a model that is given as text."""
    from onnx.parser import parse_model

    from tilewright.network import compile_network

    with tempfile.NamedTemporaryFile(suffix=artifact.SUFFIX) as file:
        artifact.save(compile_network(parse_model(text), threads=2), file.name)
        return Path(file.name).read_bytes()


def run_file(path: str, seed: int) -> str:
    """Describe a model, load it, and run it on random inputs: whether it ran, or how it was refused."""
    from tilewright.network import InferenceSession

    try:
        describe_file(path)
        with warnings.catch_warnings(action="ignore"):
            session = InferenceSession(path)
    except TilewrightError:
        return "refused"
    inputs = _inputs(session.model.inputs, np.random.default_rng(seed))
    if inputs is None:
        return "too large to try"
    try:
        session.run(None, inputs)
    except TilewrightError:
        return "refused as it ran"
    return "ran"


def _inputs(values: Sequence[Value], rng: np.random.Generator) -> dict[str, Any] | None:
    """Arrays of the types that the inputs have; None if they are too large to try."""
    types = {value.name: value.type or TensorType("float32", (2, 3)) for value in values}
    if sum(math.prod(known.shape) for known in types.values()) > _MOST_ELEMENTS:
        return None
    return {name: _array(known, rng) for name, known in types.items()}


def _array(known: TensorType, rng: np.random.Generator) -> np.ndarray:
    numbers = rng.integers(0, 5, known.shape)
    if known.dtype == "string":
        return numbers.astype(np.str_).astype(object)
    return numbers.astype(artifact.numpy_dtype(known.dtype))
