"""Values of 16 bits between QuantizeLinear and DequantizeLinear: rounded in floats, as the integers are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from tests.graph.onnx_models import model, node, tensor
from tests.graph.passes.checking import ops, run
from tilewright.graph import Graph
from tilewright.graph.onnx import load_model
from tilewright.network import partition_network
from tilewright.partition import Fallback
from tilewright.testing.graph_reference import evaluate

ROUNDED = ["Div", "Max", "Min", "Round"]


def there_and_back(
    dtype: str, scale: Any, zero: Any, back: Any = None, outputs: tuple[str, ...] = ("y",)
) -> ModelProto:
    """A value rounded along its second axis, and read with other zero points where `back` gives them."""
    constants = {"scale": np.asarray(scale, np.float32), "zero": np.asarray(zero, dtype)}
    constants["back"] = np.asarray(zero if back is None else back, dtype)
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "back"], ["y"]),
    ]
    return model(nodes, [tensor("x", [2, 3, 5])], list(outputs), constants, opset=21)


def fallbacks(proto: ModelProto) -> list[str]:
    return [part.node.op for part in partition_network(proto).parts if isinstance(part, Fallback)]


@pytest.mark.parametrize(
    ("dtype", "scale", "zero"),
    [
        ("int16", 1e-2, 0),
        ("int16", 2e-5, -20000),
        ("uint16", 3e-5, 30000),
        ("uint16", [1e-2, 2e-5, 1e-4], [0, 5, 65535]),
    ],
)
def test_what_is_read_as_floats_alone_is_rounded_in_floats(dtype: str, scale: Any, zero: Any) -> None:
    proto = there_and_back(dtype, scale, zero)
    assert ops(run(proto)) == [*ROUNDED, "Mul"]
    assert fallbacks(proto) == []


def test_another_zero_point_of_the_reader_moves_the_result() -> None:
    proto = there_and_back("uint16", 1e-3, 100, 70)
    assert ops(run(proto)) == [*ROUNDED, "Add", "Mul"]


def test_middles_go_to_even_steps_and_values_beyond_the_range_to_its_ends() -> None:
    graph: Graph = run(there_and_back("int16", 0.5, 32760))
    x = np.zeros((2, 3, 5), np.float32)
    x[0, 0] = [0.25, 0.75, 1e30, -np.inf, 3.5]
    (y,) = evaluate(graph, {"x": x}).values()
    np.testing.assert_array_equal(y[0, 0], [0, 1, 3.5, -32764, 3.5])


def test_two_readers_share_what_is_rounded() -> None:
    constants = {"scale": np.float32(0.01), "zero": np.uint16(9), "other": np.float32(0.02)}
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
        node("DequantizeLinear", ["q", "other", "zero"], ["z"]),
    ]
    found = run(model(nodes, [tensor("x", [2, 3])], ["y", "z"], constants, opset=21))
    assert ops(found) == [*ROUNDED, "Mul", "Mul"]


def test_what_is_seen_as_integers_stays_integers() -> None:
    proto = there_and_back("int16", 0.01, 3, outputs=("y", "q"))
    assert ops(run(proto)) == ["QuantizeLinear", "DequantizeLinear"]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes_stay_bytes(dtype: str) -> None:
    assert "QuantizeLinear" in ops(run(there_and_back(dtype, 0.05, 3)))


def test_scales_that_only_the_run_knows_stay_where_they_are() -> None:
    nodes = [node("QuantizeLinear", ["x", "s", "zero"], ["q"]), node("DequantizeLinear", ["q", "s", "zero"], ["y"])]
    proto = model(nodes, [tensor("x", [2, 3]), tensor("s", [])], ["y"], {"zero": np.int16(3)}, opset=21)
    assert [each.op for each in load_model(proto).nodes] == ["QuantizeLinear", "DequantizeLinear"]
    assert fallbacks(proto) == ["QuantizeLinear", "DequantizeLinear"]
