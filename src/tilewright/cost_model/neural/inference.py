"""The socket for what runs a network: an ONNX model of given shapes on arrays.

Without a plug it is the reference evaluator of ONNX. The package plugs in its own compiled kernels (`model_engine`),
which this folder cannot know of: they come after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from tilewright.sockets import plugged

VALUES, MASK, SCORES = "values", "mask", "scores"
"""What the inputs of programs and the output of a network are called. All other inputs are weights."""

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
Runner: TypeAlias = Callable[[Arrays], NDArray[np.float32]]
"""Gives the output for all inputs by name."""


SOCKET = "cost_model.neural.engine"


class Engine(Protocol):
    """Makes a network ready to run."""

    def __call__(self, network: bytes, shapes: Shapes) -> Runner:
        """What runs the ONNX model for inputs of the shapes, which say every size of every input."""


_chosen: Engine | None = None


def reference_engine(network: bytes, shapes: Shapes) -> Runner:
    """The reference evaluator of ONNX, which needs no shapes and no time to begin, and runs slowly."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(onnx.load_model_from_string(network))

    def run(arrays: Arrays) -> NDArray[np.float32]:
        (scores,) = evaluator.run(None, dict(arrays))
        return np.asarray(scores, np.float32)

    return run


def engine() -> Engine:
    """What runs networks."""
    if _chosen is not None:
        return _chosen
    found = plugged(SOCKET)
    return reference_engine if found is None else cast(Engine, found)


def choose_engine(engine: Engine | None) -> Engine | None:
    """Run networks with another engine from now on, or with the one of the package; gives the one before."""
    global _chosen
    before, _chosen = _chosen, engine
    return before
