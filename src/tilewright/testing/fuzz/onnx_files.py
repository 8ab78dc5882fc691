"""Changed ONNX files: each is imported, compiled and run, or refused by an error of ours."""

from __future__ import annotations

import math
import random
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto

from tilewright.deploy.compilation import compile_model
from tilewright.errors import TilewrightError
from tilewright.graph import Graph
from tilewright.graph.onnx import load_model
from tilewright.graph.passes import optimize
from tilewright.graph.verify import verifying
from tilewright.network import InferenceSession
from tilewright.operators import Node, TensorType
from tilewright.partition import partition
from tilewright.target import Target
from tilewright.testing.fuzz.onnx_corpus import WEIGHTS, WEIGHTS_FILE, all_models
from tilewright.testing.fuzz.onnx_mutations import mutated

LARGEST_TO_OPTIMIZE = 2**24
LARGEST_TO_RUN = 2**14
# A window may be far larger than its image: a model's right too.
MOST_WORK_TO_RUN = 2**30
# More are compiled by several processes, which take long to start.
MOST_KERNELS_TO_RUN = 3
# Compiling takes ten times as long as all before it, so that is done for one in so many.
COMPILED_ONE_IN = 2


@dataclass(frozen=True, slots=True)
class OnnxFiles:
    """Cases that begin with one of the models of `corpus`."""

    corpus: tuple[bytes, ...] = field(default_factory=all_models, repr=False)

    def run(self, seed: int) -> str:
        with warnings.catch_warnings(), verifying():
            warnings.simplefilter("ignore")  # of fallbacks, and NumPy's
            try:
                return _tried(self._case(seed), random.Random(seed + 1))
            except TilewrightError as error:
                return f"refused: {type(error).__name__}"

    def content(self, seed: int) -> tuple[str, bytes]:
        return ".onnx", self._case(seed)

    def _case(self, seed: int) -> bytes:
        rng = random.Random(seed)
        return mutated(ModelProto.FromString(rng.choice(self.corpus)), rng)


def _tried(data: bytes, rng: random.Random) -> str:
    graph = _loaded(data)
    if _num_elements(graph) > LARGEST_TO_OPTIMIZE:
        return "imported: large"
    cut = partition(optimize(graph))
    if _num_elements(graph) > LARGEST_TO_RUN or len(cut.tasks) > MOST_KERNELS_TO_RUN:
        return "cut into kernels: large"
    if rng.randrange(COMPILED_ONE_IN):
        return "cut into kernels"
    session = InferenceSession(compile_model(cut, {}, Target.native(), 1), threads=1)
    if any(_may_run_for_ever(node) for node in cut.graph.nodes):
        return "compiled: has a loop"
    if sum(item.weight * item.task.flop for item in cut.tasks) > MOST_WORK_TO_RUN:
        return "compiled: much work"
    types = [cut.graph.types.get(name) for name in cut.graph.inputs]
    if None in types:
        return "compiled: takes a sequence"
    numbers = np.random.default_rng(rng.randrange(2**32))
    session.run(None, {n: _values(t, numbers) for n, t in zip(cut.graph.inputs, types, strict=True) if t is not None})
    return "ran"


def _loaded(data: bytes) -> Graph:
    if WEIGHTS_FILE.encode() not in data:
        return load_model(data)
    with tempfile.TemporaryDirectory(prefix="tilewright-fuzz-") as folder:
        Path(folder, WEIGHTS_FILE).write_bytes(WEIGHTS)
        path = Path(folder, "model.onnx")
        path.write_bytes(data)
        return load_model(path)


def _num_elements(graph: Graph) -> int:
    return sum(math.prod(known.shape) for known in graph.types.values() if known is not None)


def _may_run_for_ever(node: Node) -> bool:
    """Whether a model may say so: that is a Loop's right."""
    return node.op == "Loop" or any(_has_loop(graph) for graph in _graphs(node.attributes.values()))


def _graphs(attributes: Any) -> Iterator[GraphProto]:
    for value in attributes:
        if isinstance(value, GraphProto):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, GraphProto))


def _has_loop(graph: GraphProto) -> bool:
    return any(
        node.op_type == "Loop" or any(_has_loop(inner) for a in node.attribute for inner in (a.g, *a.graphs))
        for node in graph.node
    )


def _values(known: TensorType, rng: np.random.Generator) -> Any:
    """Numbers for an input: small ones, so that what they say of a shape fits into memory, and some that are odd."""
    if known.dtype == "string":
        return np.array(rng.choice(["", "a", "tensor"], known.shape), object)
    if known.dtype == "bool":
        return rng.random(known.shape) < 0.5
    if known.dtype == "bfloat16":
        return rng.standard_normal(known.shape).astype(np.float32).view(np.uint32).astype(np.uint16)
    dtype = np.dtype(known.dtype)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-3 if dtype.kind == "i" else 0, 5, known.shape).astype(dtype)
    numbers = rng.standard_normal(known.shape).astype(np.float32)
    return np.where(rng.random(known.shape) < 0.05, np.float32(np.nan), numbers).astype(dtype)
