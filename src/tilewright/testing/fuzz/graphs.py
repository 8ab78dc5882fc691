"""Random ONNX graphs against onnxruntime, or against the reference evaluator of onnx where that is not installed.

    python -m tilewright.testing.fuzz graphs --cases 1000

A graph that cannot be compiled, and an output that differs, is a failure. A difference that rounding explains is none:
see `tilewright.testing.random_graphs.rounding`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from tilewright.errors import TilewrightError
from tilewright.graph.compilation import naive_trace
from tilewright.graph.pipeline import compile_network
from tilewright.graph.session import InferenceSession
from tilewright.testing.random_graphs import RandomGraph, random_graph
from tilewright.testing.random_graphs.draft import Array
from tilewright.testing.random_graphs.rounding import is_within, with_other_roundings
from tilewright.testing.random_graphs.shrinking import shrink, text_of

# Relative to an element, and to the largest of its output.
_TOLERANCE = {"float16": (4e-3, 2e-3), "float32": (2e-5, 2e-6), "float64": (1e-12, 1e-13)}
# The reference evaluator computes some functions of float64, such as Erf, in float32.
_LOOSE = {**_TOLERANCE, "float64": _TOLERANCE["float32"]}
_EVALUATOR, _ONNXRUNTIME = "the reference evaluator", "onnxruntime"
_NUM_ROUNDINGS = 6
_PLAIN_EVERY = 5
_TOLERANT = ("tilewright.space.derivation", "tilewright.graph.kernel_workers")


class DifferenceError(AssertionError):
    """An output is not what it should be."""


class DroppedError(AssertionError):
    """A sketch or a program gave way to a plainer one: nobody sees that, but it is no less a fault."""


class Graphs:
    """A case is one graph, compiled as a user would have it; one in a few with plain loops."""

    def run(self, seed: int) -> str:
        graph = random_graph(seed)
        try:
            return check(graph, seed)
        except (AssertionError, TilewrightError) as error:
            kind = type(error)
            small = shrink(graph, lambda part: _fails(part, seed, kind))
            error.add_note(f"the smallest part that fails so:\n{text_of(small.model)}")
            raise

    def content(self, seed: int) -> tuple[str, bytes]:
        return ".onnx", random_graph(seed).model.SerializeToString()


def check(graph: RandomGraph, seed: int) -> str:
    """How a graph compares with onnxruntime; it raises where it does not."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with _dropped() as dropped:
            outputs = run_compiled(graph, seed)
        label = compare(graph, outputs, seed)
    if dropped:
        raise DroppedError("; ".join(dropped))
    return label


def _fails(graph: RandomGraph, seed: int, kind: type[BaseException]) -> bool:
    try:
        check(graph, seed)
    except (AssertionError, TilewrightError) as error:
        return type(error) is kind
    return False


class _Collector(logging.Handler):
    def __init__(self, messages: list[str]) -> None:
        super().__init__()
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append(record.getMessage())


@contextlib.contextmanager
def _dropped() -> Iterator[list[str]]:
    """What the makers of programs say that they have left out."""
    messages: list[str] = []
    handler = _Collector(messages)
    loggers = [logging.getLogger(name) for name in _TOLERANT]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        logger.addHandler(handler)
    try:
        yield messages
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def run_compiled(graph: RandomGraph, seed: int) -> list[Any]:
    """What tilewright computes."""
    compiled = compile_network(
        graph.model,
        threads=1 + seed % 2,
        shapes=dict(graph.shapes),
        default_trace=naive_trace if seed % _PLAIN_EVERY == 0 else None,
    )
    return InferenceSession(compiled).run(None, dict(graph.inputs))


def compare(graph: RandomGraph, outputs: Sequence[Any], seed: int) -> str:
    """How the outputs compare with those of onnxruntime; DifferenceError where nothing explains a difference."""
    names = [value.name for value in graph.model.graph.output]
    if not has_onnxruntime():
        return _compared(graph, names, outputs, [graph.values[name] for name in names], seed, _EVALUATOR)
    try:
        expected = run_onnxruntime(graph.model, graph)
    except OnnxruntimeError:
        expected = [graph.values[name] for name in names]
        _compared(graph, names, outputs, expected, seed, _EVALUATOR)
        return f"not run by {_ONNXRUNTIME}; same as {_EVALUATOR}"
    return _compared(graph, names, outputs, expected, seed, _ONNXRUNTIME)


def _compared(
    graph: RandomGraph, names: Sequence[str], outputs: Sequence[Any], expected: Sequence[Any], seed: int, other: str
) -> str:
    tolerance = _TOLERANCE if other == _ONNXRUNTIME else _LOOSE
    differing = [n for n, pair in enumerate(zip(outputs, expected, strict=True)) if not is_close(*pair, tolerance)]
    if not differing:
        return f"same as {other}"
    rng = np.random.default_rng([seed, 2])
    others = [_rerun(with_other_roundings(graph.model, graph.values, rng), graph, other) for _ in range(_NUM_ROUNDINGS)]
    for n in differing:
        if outputs[n].dtype != expected[n].dtype or not is_within(
            outputs[n], expected[n], [results[n] for results in others if results]
        ):
            raise DifferenceError(f"{names[n]} differs from {other}: {described(outputs[n], expected[n])}")
    return f"within the rounding of {other}"


def _rerun(model: ModelProto, graph: RandomGraph, other: str) -> list[Any]:
    if other == _ONNXRUNTIME:
        return run_onnxruntime(model, graph)
    return list(ReferenceEvaluator(model).run(None, dict(graph.inputs)))


def is_close(got: Any, expected: Any, tolerance: Mapping[str, tuple[float, float]] = _TOLERANCE) -> bool:
    """Whether two outputs are the same but for the last digits, which are few."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    if got.dtype.name not in tolerance:
        return bool(np.array_equal(got, expected))
    rtol, atol = tolerance[got.dtype.name]
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(1.0, float(finite.max(initial=0)))
    return bool(np.allclose(got, expected, rtol, atol * scale, equal_nan=True))


def described(got: Array, expected: Array) -> str:
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
    with np.errstate(all="ignore"):
        wrong = ~np.isclose(got.astype(np.float64), expected.astype(np.float64), rtol=1e-5, equal_nan=True)
    pairs = list(zip(got[wrong].tolist()[:5], expected[wrong].tolist()[:5], strict=True))
    return f"{int(wrong.sum())} of {wrong.size} elements of {got.dtype}{list(got.shape)}, such as {pairs}"


# --- onnxruntime -----------------------------------------------------------------------------------------------------


class OnnxruntimeError(Exception):
    """The graph does not run there."""


def has_onnxruntime() -> bool:
    return importlib.util.find_spec("onnxruntime") is not None


def run_onnxruntime(model: ModelProto, graph: RandomGraph) -> list[Any]:
    """The outputs of a model for the inputs of a graph."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    nameless = ModelProto()
    nameless.CopyFrom(model)
    for node in nameless.graph.node:
        node.name = ""  # onnxruntime wants names of nodes to differ; ONNX does not
    try:
        session = onnxruntime.InferenceSession(
            nameless.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        found: list[Any] = session.run(None, dict(graph.inputs))
    except Exception as error:  # its errors have no class of their own to be caught by
        raise OnnxruntimeError(str(error)) from error
    return found
