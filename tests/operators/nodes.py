"""One node in the tests of operators: made, run by a kernel in either layout, or by ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from tilewright.operators import OWN
from tilewright.testing.operators import run_node

OPSET = 21


def make(op: str, num_inputs: int, num_outputs: int, domain: str = "", **attributes: Any) -> onnx.NodeProto:
    """A node with inputs x0, x1, ... and outputs y0, y1, ..."""
    names = [f"x{n}" for n in range(num_inputs)], [f"y{n}" for n in range(num_outputs)]
    return onnx.helper.make_node(op, *names, domain=domain, **attributes)


def run(
    op: str,
    inputs: Sequence[NDArray[Any]],
    num_outputs: int = 1,
    opset: int = OPSET,
    domain: str = "",
    **attributes: Any,
) -> list[NDArray[Any]]:
    """The outputs of a node, by a compiled kernel."""
    node = make(op, len(inputs), num_outputs, domain, **attributes)
    return run_node(node, {f"x{n}": array for n, array in enumerate(inputs)}, opset)


def reference(
    op: str, inputs: Sequence[NDArray[Any]], num_outputs: int = 1, opset: int = OPSET, **attributes: Any
) -> list[NDArray[Any]]:
    """The outputs of a node, by ONNX's own evaluator."""
    evaluator = ReferenceEvaluator(make(op, len(inputs), num_outputs, **attributes), opsets={"": opset})
    results = evaluator.run(None, {f"x{n}": array for n, array in enumerate(inputs)})
    return [np.asarray(result) for result in results]


def run_channels_last(
    op: str,
    inputs: Sequence[NDArray[Any]],
    weights: dict[int, tuple[int, ...]] | None = None,
    num_outputs: int = 1,
    opset: int = OPSET,
    **attributes: Any,
) -> list[NDArray[Any]]:
    """The outputs of the channels-last form for operands of the ONNX form, with channels first again.

    `weights` gives for the positions of weights how their axes are transposed.
    """
    order = {0: (0, *range(2, inputs[0].ndim), 1), **(weights or {})}
    given = [np.transpose(array, order[n]) if n in order else array for n, array in enumerate(inputs)]
    outputs = run(op, given, num_outputs, opset, OWN, **attributes)
    return [np.moveaxis(array, -1, 1) if array.ndim == inputs[0].ndim else array for array in outputs]


def conv_weights(ndim: int) -> dict[int, tuple[int, ...]]:
    """The weights [M, C, *kernel] of a convolution as [*kernel, C, M]."""
    return {1: (*range(2, ndim), 1, 0)}


def transposed_weights(ndim: int) -> dict[int, tuple[int, ...]]:
    """The weights [C, M, *kernel] of a transposed convolution as [*kernel, C, M]."""
    return {1: (*range(2, ndim), 0, 1)}


def uniform(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> NDArray[Any]:
    return rng.uniform(-1, 1, shape).astype(dtype)


def check(actual: Sequence[NDArray[Any]], *expected: NDArray[Any], rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """Raise AssertionError unless the outputs are the expected ones."""
    assert [array.dtype for array in actual] == [array.dtype for array in expected]
    assert [array.shape for array in actual] == [array.shape for array in expected]
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a.astype("float64"), e.astype("float64"), rtol=rtol, atol=atol)
