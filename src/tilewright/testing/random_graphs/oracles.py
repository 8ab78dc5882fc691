"""Who says what a graph computes: onnxruntime, with and without its own rewrites of the graph, or onnx's evaluator."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from tilewright.testing.random_graphs.draft import Array

# Relative to an element, and to the largest of its output.
TOLERANCE = {"float16": (4e-3, 2e-3), "float32": (2e-5, 2e-6), "float64": (1e-12, 1e-13)}


class NotRunError(Exception):
    """The graph does not run there."""


class Oracle(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def tolerance(self) -> Mapping[str, tuple[float, float]]: ...

    def run(self, model: ModelProto, inputs: Mapping[str, Array]) -> list[Any]:
        """The outputs; NotRunError where there are none."""
        ...


def has_onnxruntime() -> bool:
    return importlib.util.find_spec("onnxruntime") is not None


class Onnxruntime:
    """Some of its rewrites give other results: a product with a transposed matrix and a vector, say."""

    tolerance: ClassVar = TOLERANCE

    def __init__(self, *, rewrites: bool = True) -> None:
        self.name = "onnxruntime" if rewrites else "onnxruntime without its rewrites"
        self._rewrites = rewrites

    def run(self, model: ModelProto, inputs: Mapping[str, Array]) -> list[Any]:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        if not self._rewrites:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        nameless = ModelProto()
        nameless.CopyFrom(model)
        for node in nameless.graph.node:
            node.name = ""  # here names of nodes have to differ; in ONNX they do not
        content = nameless.SerializeToString()
        try:
            session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            found: list[Any] = session.run(None, dict(inputs))
        except Exception as error:  # its errors have no class of their own to be caught by
            raise NotRunError(str(error)) from error
        return found


class Evaluator:
    """The reference evaluator of onnx, which computes some functions of float64, such as Erf, in float32."""

    name = "the reference evaluator"
    tolerance: ClassVar = {**TOLERANCE, "float64": TOLERANCE["float32"]}

    def run(self, model: ModelProto, inputs: Mapping[str, Array]) -> list[Any]:
        return list(ReferenceEvaluator(model).run(None, dict(inputs)))
