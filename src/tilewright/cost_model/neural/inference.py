"""The socket for what runs a network: an ONNX model of given shapes on arrays.

Without a plug it is the reference evaluator of ONNX. The package plugs in its own compiled kernels, which this folder
cannot know of: they come after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

VALUES, MASK, SCORES = "values", "mask", "scores"
"""What the inputs of programs and the output of a network are called. All other inputs are weights."""

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
Runner: TypeAlias = Callable[[Arrays], NDArray[np.float32]]
"""Gives the output for all inputs by name."""


class Engine(Protocol):
    """Makes a network ready to run."""

    def __call__(self, network: bytes, shapes: Shapes) -> Runner:
        """What runs the ONNX model for inputs of the shapes, which say every size of every input."""


def reference_engine(network: bytes, shapes: Shapes) -> Runner:
    """The reference evaluator of ONNX, which needs no shapes and no time to begin, and runs slowly."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(onnx.load_model_from_string(network))

    def run(arrays: Arrays) -> NDArray[np.float32]:
        (scores,) = evaluator.run(None, dict(arrays))
        return np.asarray(scores, np.float32)

    return run


_plugged: Engine = reference_engine


def plug(engine: Engine) -> Engine:
    """Run networks with `engine` from now on; gives the one before."""
    global _plugged
    before, _plugged = _plugged, engine
    return before


def engine() -> Engine:
    """What runs networks."""
    return _plugged
