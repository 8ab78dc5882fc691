"""A Pad with zeros goes into the convolution or the average pool behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.graph.onnx_models import model, node, random, tensor
from tests.graph.passes.checking import ops, run
from tilewright.graph.passes.pads import merge_pads


def padded(
    op: str,
    pads: list[int],
    attributes: dict[str, Any],
    *,
    value: float = 0.0,
    mode: str = "constant",
    axes: Any = None,
) -> Any:
    constants: dict[str, Any] = {"pads": np.array(pads), "value": np.float32(value), "w": random((4, 3, 3, 3))}
    operands = ["x", "pads", "value"]
    if axes is not None:
        constants["axes"] = np.array(axes)
        operands.append("axes")
    reader = ["h", "w"] if op == "Conv" else ["h"]
    nodes = [node("Pad", operands, ["h"], mode=mode), node(op, reader, ["y"], **attributes)]
    return model(nodes, [tensor("x", [2, 3, 6, 6])], ["y"], constants)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Conv", {}),
        ("Conv", {"pads": [1, 0, 0, 1]}),
        ("Conv", {"auto_pad": "VALID", "strides": [2, 2]}),
        ("AveragePool", {"kernel_shape": [3, 3]}),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ],
)
def test_pad_is_merged(op: str, attributes: dict[str, Any]) -> None:
    assert ops(run(padded(op, [0, 0, 1, 2, 0, 0, 3, 0], attributes), [merge_pads])) == [op]


def test_pad_of_some_axes_is_merged() -> None:
    assert ops(run(padded("Conv", [1, 2, 1, 2], {}, axes=[-1, 2]), [merge_pads])) == ["Conv"]


@pytest.mark.parametrize(
    "proto",
    [
        padded("Conv", [0, 0, 1, 1, 0, 0, 1, 1], {}, value=1.0),
        padded("Conv", [0, 0, 1, 1, 0, 0, 1, 1], {}, mode="reflect"),
        padded("Conv", [1, 0, 1, 1, 0, 0, 1, 1], {}),
        padded("Conv", [0, 0, -1, 1, 0, 0, 1, 1], {}),
        padded("Conv", [0, 0, 1, 1, 0, 0, 1, 1], {"auto_pad": "SAME_UPPER"}),
        padded("MaxPool", [0, 0, 1, 1, 0, 0, 1, 1], {"kernel_shape": [3, 3]}),
        padded("AveragePool", [0, 0, 1, 1, 0, 0, 1, 1], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ],
)
def test_pad_that_means_something_else_stays(proto: Any) -> None:
    assert ops(run(proto, [merge_pads]))[0] == "Pad"
