"""Random ONNX graphs against onnxruntime, or against the reference evaluator of onnx where that is not installed.

    python -m tilewright.testing.fuzz graphs --cases 1000

A graph that cannot be compiled, and an output that differs, is a failure. A difference that rounding explains is none:
see `tilewright.testing.random_graphs.rounding`. Where onnxruntime and the evaluator do not agree, the evaluator's is
counted apart, with the operators: each of those is to be explained.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.deploy.compilation import naive_trace
from tilewright.errors import TilewrightError
from tilewright.graph.verify import verifying
from tilewright.network import InferenceSession, compile_network
from tilewright.testing.random_graphs import RandomGraph, random_graph
from tilewright.testing.random_graphs.draft import Array
from tilewright.testing.random_graphs.oracles import (
    TOLERANCE,
    Evaluator,
    NotRunError,
    Onnxruntime,
    Oracle,
    has_onnxruntime,
)
from tilewright.testing.random_graphs.rounding import is_within, with_other_roundings
from tilewright.testing.random_graphs.shrinking import shrink, text_of

_NUM_ROUNDINGS = 6
_PLAIN_EVERY = 5
_TOLERANT = ("tilewright.space.derivation", "tilewright.deploy.kernel_workers")


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
            if kind is DifferenceError and _is_as_evaluated(small, seed):
                operators = ", ".join(sorted({node.op_type for node in small.model.graph.node}))
                return f"unlike onnxruntime, as the reference evaluator: {operators}"
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
    """What tilewright computes; the graph is verified on its way."""
    with verifying():
        compiled = compile_network(
            graph.model,
            threads=1 + seed % 2,
            shapes=dict(graph.shapes),
            default_trace=naive_trace if seed % _PLAIN_EVERY == 0 else None,
        )
    return InferenceSession(compiled).run(None, dict(graph.inputs))


def compare(graph: RandomGraph, outputs: Sequence[Any], seed: int) -> str:
    """How the outputs compare with those of onnxruntime; DifferenceError where nothing explains a difference."""
    if not has_onnxruntime():
        return _compared(graph, outputs, _evaluated(graph), Evaluator(), seed)
    try:
        return _compared_with(Onnxruntime(), graph, outputs, seed)
    except NotRunError:
        return "not run by onnxruntime; " + _compared(graph, outputs, _evaluated(graph), Evaluator(), seed)
    except DifferenceError as difference:
        try:
            return _compared_with(Onnxruntime(rewrites=False), graph, outputs, seed)
        except DifferenceError:
            raise difference from None


def _is_as_evaluated(graph: RandomGraph, seed: int) -> bool:
    """Whether ONNX's own evaluator has the same outputs, and onnxruntime others."""
    pairs = zip(run_compiled(graph, seed), _evaluated(graph), strict=True)
    return all(is_close(*pair, Evaluator.tolerance) for pair in pairs)


def _evaluated(graph: RandomGraph) -> list[Any]:
    return [graph.values[value.name] for value in graph.model.graph.output]


def _compared_with(oracle: Oracle, graph: RandomGraph, outputs: Sequence[Any], seed: int) -> str:
    return _compared(graph, outputs, oracle.run(graph.model, graph.inputs), oracle, seed)


def _compared(graph: RandomGraph, outputs: Sequence[Any], expected: Sequence[Any], oracle: Oracle, seed: int) -> str:
    pairs = list(zip(outputs, expected, strict=True))
    differing = [n for n, pair in enumerate(pairs) if not is_close(*pair, oracle.tolerance)]
    if not differing:
        return f"same as {oracle.name}"
    rng = np.random.default_rng([seed, 2])
    noisy = [with_other_roundings(graph.model, graph.values, rng) for _ in range(_NUM_ROUNDINGS)]
    others = [oracle.run(model, graph.inputs) for model in noisy]
    for n in differing:
        if not is_within(*pairs[n], [results[n] for results in others]):
            name = graph.model.graph.output[n].name
            raise DifferenceError(f"{name} differs from {oracle.name}: {described(*pairs[n])}")
    return f"within the rounding of {oracle.name}"


def is_close(got: Any, expected: Any, tolerance: Mapping[str, tuple[float, float]] = TOLERANCE) -> bool:
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
